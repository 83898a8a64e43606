"""Answers to questions about images by a spatial memory network (SMem-VQA, Xu and Saenko 2016).

https://arxiv.org/abs/1511.05234. The first hop compares each word with each place: a place counts by the word that
matches it best. Later hops compare what was seen so far, together with the whole question, with each place.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import Dot, ScaledDot, Score, attend
from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import at_least, check_literals
from foveate.models.multimodal.image_places import ImagePlaces
from foveate.models.vision.image_encoder import Backbone
from foveate.nn import Dropout


@dataclass
class SMemVQAConfig:
    """The sizes of a spatial memory network. Defaults are those of the paper."""

    vocabulary: FromData
    """Size of the questions' vocabulary."""
    classes: FromData
    """How many answers there are to decide between."""
    image_encoder: Backbone = "googlenet"
    """The vision preset whose feature map is asked about."""
    channels: int = 3
    """Channels of the images: 3 for colour, 1 for grey."""
    image_size: int = 224
    """Height and width of the images, for image encoders that learn positions."""
    image_positions: Literal["none", "sinusoidal"] = "none"
    """Join waves of row and column to the features of each place."""
    width: int = 512
    """Width N of the words, of the projected places and of what was seen."""
    hops: int = 2
    """How often the image is attended to."""
    hop_score: Literal["dot", "scaled-dot"] = "dot"
    """Score of a place in later hops: its product with what was seen, as in the paper, or that divided by the root of
    the width, with which the softmax does not begin at one place."""
    longest: int = 32
    """Words of a question that have a weight of their own in its sum; all later ones share the last weight."""
    dropout: float = 0.5
    """Share of the inputs of the last layer that is dropped in training."""


class SMemVQA(nn.Module):
    """Reads an image and a question, and decides between answers."""

    def __init__(self, config: SMemVQAConfig) -> None:
        super().__init__()
        check_literals(config)
        at_least(1, "hops", config.hops)
        self.config, width = config, config.width
        self.places = ImagePlaces(config.image_encoder, config.channels, config.image_size, config.image_positions)
        self.embedding = nn.Embedding(config.vocabulary, width)
        self.word_weights = nn.Parameter(torch.ones(config.longest))
        self.question_bias = nn.Parameter(torch.zeros(width))
        self.evidence = nn.ModuleList(nn.Linear(self.places.width, width) for _ in range(config.hops))
        later = ScaledDot if config.hop_score == "scaled-dot" else Dot
        scores = [WordMaximum(self.places.width, width), *(later() for _ in range(config.hops - 1))]
        self.hops = nn.ModuleList(map(Hop, scores))
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(width, config.classes)
        # Scores are products of unscaled vectors: with words of length 1 the softmax begins almost uniform.
        nn.init.normal_(self.embedding.weight, std=width**-0.5)

    def forward(
        self,
        pixels: Float[Tensor, "I c h w"],
        tokens: Int[Tensor, "B T"],
        lengths: Int[Tensor, "B"],
        images: Int[Tensor, "B"] | None = None,
    ) -> Output:
        """Logits of the answers to the questions in `tokens`, (B, 1, N).

        `images` are the rows of `pixels` that the questions are about; by default each has its own.
        """
        places, words = self.places(pixels, images), self.embedding(tokens)
        real = torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]
        query = torch.where(real[..., None], words, words[:, :1]).flatten(1)[:, None]  # a word twice changes no maximum
        seen, keys = self._sum(words, real)[:, None], places
        for hop, embed in zip(self.hops, self.evidence, strict=True):
            values = embed(places)
            seen = seen + hop(query, keys, values)
            query, keys = seen, values
        return Output(self.output(self.dropout(torch.relu(seen))))

    def _sum(self, words: Float[Tensor, "B T C"], real: Tensor) -> Float[Tensor, "B C"]:
        """The question as one vector: the weighted sum of its words."""
        places = torch.arange(words.shape[1], device=words.device).clamp(max=self.config.longest - 1)
        return (self.word_weights[places] * real)[:, None].matmul(words)[:, 0] + self.question_bias


class WordMaximum(nn.Module, Score):
    """The greatest product of a place with any word. One query is a whole question: its words one after the other."""

    def __init__(self, key_width: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.key = nn.Linear(key_width, width)

    def keys(self, k: Float[Tensor, "... S D"]) -> Float[Tensor, "... S P"]:
        return self.key(k)

    def fits(self, query_width: int, key_width: int) -> bool:
        return query_width % self.width == 0 and key_width == self.width

    def footprint(self, width: int) -> int:
        return width // self.width

    def block(self, queries: Float[Tensor, "... T Q"], keys: Float[Tensor, "... S P"]) -> Float[Tensor, "... T S"]:
        words = queries.unflatten(-1, (-1, self.width))
        return (words @ keys.unsqueeze(-3).mT).amax(-2)


class Hop(nn.Module):
    """Attention to all places."""

    attends = True

    def __init__(self, score: Score) -> None:
        super().__init__()
        self.score = score

    def forward(
        self, query: Float[Tensor, "B 1 Q"], keys: Float[Tensor, "B S D"], values: Float[Tensor, "B S C"]
    ) -> Float[Tensor, "B 1 C"]:
        return attend(query, keys, values, self.score)


MODEL, CONFIG = SMemVQA, SMemVQAConfig

TINY = {
    "image_encoder": "resnet-light",
    "image_size": 64,
    "image_positions": "sinusoidal",
    "width": 128,
    "hop_score": "scaled-dot",
    "dropout": 0.0,
}

PRESETS = {
    "smem-vqa": {},
    "smem-vqa-tiny": TINY,
    "smem-vqa-one-hop-tiny": {**TINY, "hops": 1},
}
