"""Text from files and by name, tokenizers, and batches."""

from foveate.data.batching import PairBatches, source_batches
from foveate.data.sources import SOURCES, Source, Splits, open_source
from foveate.data.text import ParallelText, read_sentences
from foveate.data.tokenizers import SubwordTokenizer, load_tokenizer, train_bpe

__all__ = [
    "SOURCES",
    "PairBatches",
    "ParallelText",
    "Source",
    "Splits",
    "SubwordTokenizer",
    "load_tokenizer",
    "open_source",
    "read_sentences",
    "source_batches",
    "train_bpe",
]
