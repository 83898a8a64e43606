"""Text from files and by name, tokenizers, and batches."""

from foveate.data.sources import SOURCES, Source, Splits, open_source
from foveate.data.text.batches import text_batches
from foveate.data.text.documents import Paragraph, Passage, Prose, joined, sentences
from foveate.data.text.files import read_lines, read_sentences
from foveate.data.text.labelled import Labelled, LabelledText
from foveate.data.text.lexicon import SPELLINGS, Lexicon, load_lexicon
from foveate.data.text.match_pairs import RIGHT, WRONG, Judged, judged_pairs
from foveate.data.text.parallel_corpus import ParallelText
from foveate.data.text.prose_batches import (
    encode_sentences,
)
from foveate.data.text.tagged import Tagged
from foveate.data.tokens.tokenizers import (
    TRAINERS,
    PairTokens,
    SubwordTokenizer,
    Tokens,
    join_pieces,
    load_tokenizer,
    train_bpe,
)

__all__ = [
    "RIGHT",
    "SOURCES",
    "SPELLINGS",
    "TRAINERS",
    "WRONG",
    "Judged",
    "Labelled",
    "LabelledText",
    "Lexicon",
    "PairTokens",
    "Paragraph",
    "ParallelText",
    "Passage",
    "Prose",
    "Source",
    "Splits",
    "SubwordTokenizer",
    "Tagged",
    "Tokens",
    "encode_sentences",
    "judged_pairs",
    "load_lexicon",
    "join_pieces",
    "joined",
    "load_tokenizer",
    "open_source",
    "read_lines",
    "read_sentences",
    "sentences",
    "text_batches",
    "train_bpe",
]
