"""Answers to questions about images (Show, Ask, Attend, and Answer, Kazemi and Elqursh 2017).

https://arxiv.org/abs/1704.03162. The last state of an LSTM over the question attends to the places of the image by
several glimpses; question and glimpses together are classified. Without glimpses, the mean of all places is read.
"""

from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import Additive, attend
from foveate.config import FromData
from foveate.contracts import Output
from foveate.models.multimodal.image_places import ImagePlaces
from foveate.nn import Dropout, Recurrent


@dataclass
class ShowAskConfig:
    """The sizes of a model that answers questions. Defaults are those of the paper."""

    vocabulary: FromData
    """Size of the questions' vocabulary."""
    classes: FromData
    """How many answers there are to decide between."""
    image_encoder: str = "resnet152"
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
    hidden: int = 512
    """Width of the hidden layer that scores places, which all glimpses share."""
    classifier: int = 1024
    """Width of the hidden layer that decides."""
    dropout: float = 0.5
    """Share of the inputs of all layers that is dropped in training."""


class ShowAsk(nn.Module):
    """Reads an image and a question, and decides between answers."""

    def __init__(self, config: ShowAskConfig) -> None:
        super().__init__()
        self.config = config
        self.places = ImagePlaces(config.image_encoder, config.channels, config.image_size, config.image_positions)
        self.embedding = nn.Embedding(config.vocabulary, config.embedding)
        self.question = Recurrent("lstm", config.embedding, config.width)
        self.glimpses = _glimpses(config, self.places.width) if config.glimpses else None
        self.dropout = Dropout(config.dropout)
        self.hidden = nn.Linear(config.width + (config.glimpses or 1) * self.places.width, config.classifier)
        self.output = nn.Linear(config.classifier, config.classes)

    def forward(
        self, pixels: Float[Tensor, "B c h w"], tokens: Int[Tensor, "B T"], lengths: Int[Tensor, "B"]
    ) -> Output:
        """Logits of the answers to the questions in `tokens`, (B, 1, N)."""
        places = F.normalize(self.places(pixels), dim=-1)
        words = self.dropout(torch.tanh(self.embedding(tokens)))
        _, (state, _) = self.question(words, lengths=lengths)
        question = self.dropout(state[-1][:, None])
        if self.glimpses is None:
            seen = [places.mean(1, keepdim=True)]
        else:
            places = self.dropout(places)
            seen = [glimpse(question, places) for glimpse in self.glimpses]
        hidden = torch.relu(self.hidden(torch.cat([question, *seen], -1)))
        return Output(self.output(self.dropout(hidden)))


class Glimpse(nn.Module):
    """Attention of a question to all places."""

    def __init__(self, score: Additive) -> None:
        super().__init__()
        self.score = score

    def forward(self, question: Float[Tensor, "B 1 C"], places: Float[Tensor, "B S V"]) -> Float[Tensor, "B 1 V"]:
        return attend(question, places, places, self.score)


def _glimpses(config: ShowAskConfig, source_width: int) -> nn.ModuleList:
    """Glimpses whose scores differ by their last layer alone: u·ReLU(W [place, question])."""
    scores = [Additive(config.width, source_width, config.hidden, torch.relu) for _ in range(config.glimpses or 0)]
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
    "dropout": 0.1,
}

PRESETS: dict[str, dict[str, Any]] = {
    "show-ask": {},
    "show-ask-tiny": TINY,
    "show-ask-mean-tiny": {**TINY, "glimpses": None},
}
