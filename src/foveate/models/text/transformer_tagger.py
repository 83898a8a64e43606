"""A tag for each word, by the encoder of the Transformer alone (Vaswani et al. 2017)."""

import math
from dataclasses import dataclass

from jaxtyping import Int
from torch import Tensor, nn

from foveate.config import FromData
from foveate.contracts import Output
from foveate.nn import Dropout, EncoderConfig, TransformerEncoder, WordEmbedding, initialize


@dataclass(kw_only=True)
class TransformerTaggerConfig(EncoderConfig):
    """The sizes of the encoder, and how many words and tags there are."""

    vocabulary: FromData
    """Words with a vector of their own."""
    spellings: FromData
    """Vectors for features of spelling."""
    tags: FromData
    """How many tags there are."""


class TransformerTagger(nn.Module):
    """Sees all words of the sentence at once, and scores the tags at each."""

    def __init__(self, config: TransformerTaggerConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = WordEmbedding(config.vocabulary, config.spellings, config.width)
        self.encoder = TransformerEncoder(config)
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(config.width, config.tags)
        initialize(self, config.width)

    def forward(self, words: Int[Tensor, "B T"], spellings: Int[Tensor, "B T F"], lengths: Int[Tensor, "B"]) -> Output:
        """Logits of each word's tag."""
        # so many vectors are summed for each word, whose sum must not drown the positions
        summed = 1 + spellings.shape[-1]
        embedded = self.embedding(words, spellings) * math.sqrt(self.config.width / summed)
        return Output(self.output(self.dropout(self.encoder(embedded, lengths))))


MODEL, CONFIG = TransformerTagger, TransformerTaggerConfig

PRESETS = {
    "transformer-tagger": (
        "2 blocks, width 128, 4 heads, pre-norm, relative positions: for tens of thousands of sentences, on a laptop",
        {
            "width": 128,
            "heads": 4,
            "feedforward": 256,
            "layers": 2,
            "norm": "pre",
            "positions": "relative",
            "dropout": 0.2,
        },
    ),
    "transformer-tagger-base": (
        "6 blocks, width 512, 8 heads: the encoder of the paper's base model",
        {},
    ),
}
