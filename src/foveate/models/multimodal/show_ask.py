"""Answers to questions about images (Show, Ask, Attend, and Answer, Kazemi and Elqursh 2017).

https://arxiv.org/abs/1704.03162. The last state of an LSTM over the question attends to the places of the image by
several glimpses; question and glimpses together are classified. Without glimpses, the mean of all places is read.

Glimpses may also be stacked, as in stacked attention networks (Yang et al. 2016, https://arxiv.org/abs/1511.02274):
each is then chosen by the question and what the glimpses before it saw. "What is left of the dog?" needs two of them.
"""

from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import Additive, ScaledDot, attend
from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import check_literals
from foveate.models.multimodal.image_places import ImagePlaces
from foveate.models.vision.image_encoder import Backbone
from foveate.nn import Dropout, Recurrent


@dataclass
class ShowAskConfig:
    """The sizes of a model that answers questions. Defaults are those of the paper."""

    vocabulary: FromData
    """Size of the questions' vocabulary."""
    classes: FromData
    """How many answers there are to decide between."""
    image_encoder: Backbone = "resnet152"
    """The vision preset whose feature map is asked about."""
    channels: int = 3
    """Channels of the images: 3 for colour, 1 for grey."""
    image_size: int = 448
    """Height and width of the images, for image encoders that learn positions."""
    image_positions: Literal["none", "sinusoidal"] = "none"
    """Join waves of row and column to the features of each place."""
    embedding: int = 300
    """Width of the word embeddings."""
    width: int = 1024
    """Width C of the LSTM's state."""
    glimpses: int | None = 2
    """How often the image is attended to; None for the mean of all places, without attention."""
    stacked: bool = False
    """Each glimpse is chosen by the question and the glimpses before it, instead of by the question alone."""
    score: Literal["additive", "scaled-dot"] = "additive"
    """How places are scored: by a hidden layer, which all glimpses share, or by the product of question and place, both
    projected, for each glimpse anew."""
    hidden: int = 512
    """Width of the hidden layer that scores places, or of the projections."""
    place_norm: Literal["length", "deviation"] = "length"
    """Features of each place are divided by their length, as in the paper, or by their root mean square. Few features
    of unit length are small numbers, from which later layers learn slowly."""
    product: bool = False
    """Add to the answers' logits a layer over the product of question and glimpses, both projected: it tells whether
    what was asked for is what was seen."""
    classifier: int = 1024
    """Width of the hidden layer that decides."""
    dropout: float = 0.5
    """Share of the inputs of all layers that is dropped in training."""


class ShowAsk(nn.Module):
    """Reads an image and a question, and decides between answers."""

    def __init__(self, config: ShowAskConfig) -> None:
        super().__init__()
        check_literals(config)
        self.config = config
        self.places = ImagePlaces(config.image_encoder, config.channels, config.image_size, config.image_positions)
        self.embedding = nn.Embedding(config.vocabulary, config.embedding)
        self.question = Recurrent("lstm", config.embedding, config.width)
        self.glimpses = _glimpses(config, self.places.width) if config.glimpses else None
        count = config.glimpses or 1
        self.after = nn.ModuleList(
            nn.Linear(self.places.width, config.width) for _ in range(count - 1 if config.stacked else 0)
        )
        self.dropout = Dropout(config.dropout)
        self.hidden = nn.Linear(config.width + count * self.places.width, config.classifier)
        self.output = nn.Linear(config.classifier, config.classes)
        self.product = Product(config, count * self.places.width) if config.product else None

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
        places = F.normalize(self.places(pixels, images), dim=-1)
        if self.config.place_norm == "deviation":
            places = places * places.shape[-1] ** 0.5
        words = self.dropout(torch.tanh(self.embedding(tokens)))
        _, (state, _) = self.question(words, lengths=lengths)
        question = self.dropout(state[-1][:, None])
        seen = torch.cat(self._look(question, places), -1)
        hidden = torch.relu(self.hidden(torch.cat([question, seen], -1)))
        logits = self.output(self.dropout(hidden))
        return Output(logits if self.product is None else logits + self.product(question, seen))

    def _look(self, question: Float[Tensor, "B 1 C"], places: Float[Tensor, "B S V"]) -> list[Tensor]:
        """Returns the glimpses, (B, 1, V)."""
        if self.glimpses is None:
            return [places.mean(1, keepdim=True)]
        places, query = self.dropout(places), question
        seen: list[Tensor] = []
        for number, glimpse in enumerate(self.glimpses):
            if seen and self.config.stacked:
                query = query + self.after[number - 1](seen[-1])
            seen.append(glimpse(query, places))
        return seen


class Glimpse(nn.Module):
    """Attention of a question to all places."""

    attends = True

    def __init__(self, score: Additive) -> None:
        super().__init__()
        self.score = score

    def forward(self, question: Float[Tensor, "B 1 C"], places: Float[Tensor, "B S V"]) -> Float[Tensor, "B 1 V"]:
        return attend(question, places, places, self.score)


class DotGlimpse(nn.Module):
    """Attention of a question to all places, by the scaled product of both, projected to `hidden` numbers."""

    attends = True

    def __init__(self, query_width: int, source_width: int, hidden: int) -> None:
        super().__init__()
        self.query = nn.Linear(query_width, hidden)
        self.key = nn.Linear(source_width, hidden)

    def forward(self, question: Float[Tensor, "B 1 C"], places: Float[Tensor, "B S V"]) -> Float[Tensor, "B 1 V"]:
        return attend(self.query(question), self.key(places), places, ScaledDot())


class Product(nn.Module):
    """Logits from the product of question and glimpses, number by number (Kim et al. 2017,
    https://arxiv.org/abs/1610.04325)."""

    def __init__(self, config: ShowAskConfig, seen_width: int) -> None:
        super().__init__()
        self.question = nn.Linear(config.width, config.classifier)
        self.seen = nn.Linear(seen_width, config.classifier)
        self.output = nn.Linear(config.classifier, config.classes, bias=False)

    def forward(self, question: Float[Tensor, "B 1 C"], seen: Float[Tensor, "B 1 G"]) -> Float[Tensor, "B 1 N"]:
        return self.output(self.question(question) * self.seen(seen))


def _glimpses(config: ShowAskConfig, source_width: int) -> nn.ModuleList:
    """The glimpses; those with additive scores differ by their last layer alone: u·ReLU(W [place, question])."""
    count = config.glimpses or 0
    if config.score == "scaled-dot":
        return nn.ModuleList(DotGlimpse(config.width, source_width, config.hidden) for _ in range(count))
    scores = [Additive(config.width, source_width, config.hidden, torch.relu) for _ in range(count)]
    for score in scores[1:]:
        score.query, score.key = scores[0].query, scores[0].key
    return nn.ModuleList(map(Glimpse, scores))


MODEL, CONFIG = ShowAsk, ShowAskConfig

TINY = {
    "image_encoder": "resnet-light",
    "image_size": 64,
    "image_positions": "sinusoidal",
    "embedding": 64,
    "width": 128,
    "hidden": 128,
    "classifier": 256,
    "place_norm": "deviation",
    "dropout": 0.0,
}

PRESETS: dict[str, dict[str, Any]] = {
    "show-ask": {},
    "show-ask-tiny": TINY,
    "show-ask-stacked-tiny": {**TINY, "stacked": True, "score": "scaled-dot", "product": True},
    "show-ask-mean-tiny": {**TINY, "product": True, "glimpses": None},
}
