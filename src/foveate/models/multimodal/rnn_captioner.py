"""Captions by a recurrent decoder over the places of an image (Show, Attend and Tell, Xu et al. 2015).

https://arxiv.org/abs/1502.03044. Attention is soft, the weighted mean of all places, or hard, one sampled place.
Without attention, the mean of all places gives the first state, and this vector is an input of every step.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import Additive, Hard, Memory, Score, Selection, Soft
from foveate.config import FromData
from foveate.contracts import Choices, Output
from foveate.errors import UserError, check_literals
from foveate.models.multimodal.image_places import ImagePlaces
from foveate.models.vision.image_encoder import Backbone
from foveate.nn import (
    AttentiveDecoder,
    AttentiveDecoderState,
    Dropout,
    FixedVectorDecoder,
    Recurrent,
    RecurrentDecoderState,
    concatenate_choices,
    word_vectors,
)
from foveate.nn.encoder_decoder import EncoderDecoder


@dataclass
class RNNCaptionerConfig:
    """The sizes of a recurrent captioner, and its attention. Defaults are those of the paper."""

    vocabulary: FromData
    """Size of the vocabulary."""
    image_encoder: Backbone = "vgg19"
    """The vision preset whose feature map is described."""
    channels: int = 3
    """Channels of the images: 3 for colour, 1 for grey."""
    image_size: int = 224
    """Height and width of the images, for image encoders that learn positions."""
    image_positions: Literal["none", "sinusoidal"] = "none"
    """Join waves of row and column to the features of each place."""
    embedding: int = 512
    """Width E of the word embeddings."""
    width: int = 1000
    """Width C of the recurrent state."""
    cell: Literal["lstm", "gru"] = "lstm"
    """The recurrent cell."""
    score: Literal["none", "additive"] = "additive"
    """The score of places; "none" for a decoder without attention, with the mean of all places."""
    score_activation: Literal["tanh", "relu", "sigmoid"] = "tanh"
    """With the additive score: the function g in u g(W1 k + W2 q + b)."""
    select: Literal["soft", "hard"] = "soft"
    """The weighted mean of all places, or one place, sampled in training."""
    mean_share: float = 0.5
    """With hard selection: the share of training steps that use the weighted mean instead, which helps learning."""
    gate: bool = True
    """Multiply the context by a number from 0 to 1, which the state decides (beta in section 4.2.1)."""
    coverage: bool = False
    """In training, also give how much attention each place receives in all steps, which doubly stochastic attention
    draws towards 1 (section 4.2.1)."""
    dropout: float = 0.5
    """Share of embeddings and outputs that is dropped in training."""


@dataclass
class CaptionOutput(Output):
    """Logits, and how much attention each place received in all steps of a caption."""

    coverage: Float[Tensor, "B S"] | None = None


class RNNCaptioner(EncoderDecoder, nn.Module):
    """Encodes an image and writes its caption token by token."""

    def __init__(self, config: RNNCaptionerConfig) -> None:
        super().__init__()
        check_literals(config)
        self.config = config
        self.places = ImagePlaces(config.image_encoder, config.channels, config.image_size, config.image_positions)
        states = 2 if config.cell == "lstm" else 1
        self.first = nn.ModuleList(nn.Linear(self.places.width, config.width) for _ in range(states))
        self.embedding = word_vectors(config.vocabulary, config.embedding)
        self.dropout = Dropout(config.dropout)
        self.decoder = _decoder(config, self.places.width)
        self.output = nn.Linear(config.width, config.vocabulary)

    def forward(
        self,
        pixels: Float[Tensor, "B c h w"],
        target: Int[Tensor, "B T"],
        target_lengths: Int[Tensor, "B"] | None = None,
    ) -> Output:
        """Logits of the token after each target token, and the choices of hard attention."""
        state = self.start(pixels)
        hidden, choices = self._advance(target, state)
        return CaptionOutput(self.output(hidden), choices, coverage=_coverage(state, target_lengths))

    def start(self, pixels: Float[Tensor, "B c h w"]) -> RecurrentDecoderState:
        places = self.places(pixels)
        mean = places.mean(1)
        hidden = tuple(torch.tanh(first(mean))[None] for first in self.first)
        lengths = torch.full((len(places),), places.shape[1], device=places.device)
        return self.decoder.start(hidden, places, lengths)

    def step(self, tokens: Int[Tensor, "R"], state: RecurrentDecoderState) -> Float[Tensor, "R N"]:
        hidden, _ = self._advance(tokens[:, None], state)
        return self.output(hidden).squeeze(1)

    def _advance(self, tokens: Int[Tensor, "R T"], state: RecurrentDecoderState) -> tuple[Tensor, Choices | None]:
        hidden, choices = self.decoder(self.dropout(self.embedding(tokens)), state)
        return self.dropout(hidden), choices


@dataclass
class PlacesState(AttentiveDecoderState):
    """The state of a decoder that attends to places, in training with the weights of all steps."""

    weights: list[Float[Tensor, "R 1 S"]] = field(default_factory=list)


class PlacesDecoder(AttentiveDecoder):
    """One step of Show, Attend and Tell after the other (equations 1 to 3 and 7).

    context = beta * attention of the state h to the places;    beta = sigmoid(gate h)
    h = LSTM([word, context], h);    output = tanh(W [h, context] + U word)
    """

    affects_later_steps = True

    def __init__(
        self, recurrent: Recurrent, embedding: int, source_width: int, score: Score, select: Selection, gate: bool
    ) -> None:
        width = recurrent.width
        super().__init__(recurrent, width, source_width, score, select, window=None)
        self.source_width = source_width
        self.word = nn.Linear(embedding, width, bias=False)
        self.gate = nn.Linear(width, 1) if gate else None

    def start(
        self, hidden: tuple[Tensor, ...], encoded: Float[Tensor, "B S V"], lengths: Int[Tensor, "B"]
    ) -> PlacesState:
        return PlacesState(hidden, torch.zeros_like(hidden[0][-1]), Memory(encoded, encoded, self.score), lengths)

    def forward(self, x: Float[Tensor, "R T E"], state: PlacesState) -> tuple[Tensor, Choices | None]:
        outputs, contexts, choices = [], [], []
        for word in x.split(1, 1):
            query = state.hidden[0][-1][:, None]
            attended = self.attend(query, state)
            context, *weights = attended.output.tensor_split([self.source_width], -1)
            state.weights += weights
            if self.gate is not None:
                context = torch.sigmoid(self.gate(query)) * context
            output, state.hidden = self.recurrent(torch.cat([word, context], -1), state.hidden)
            outputs.append(output)
            contexts.append(context)
            choices.append(self.choices(query, attended))
        both = torch.cat([torch.cat(outputs, 1), torch.cat(contexts, 1)], -1)
        return torch.tanh(self.combine(both) + self.word(x)), concatenate_choices(choices)


class CoveredPlacesDecoder(PlacesDecoder):
    """The same, which in training also gives the weights of each step: they are the attention to one-hot vectors."""

    def start(
        self, hidden: tuple[Tensor, ...], encoded: Float[Tensor, "B S V"], lengths: Int[Tensor, "B"]
    ) -> PlacesState:
        state = super().start(hidden, encoded, lengths)
        if self.training:
            one_hot = torch.eye(encoded.shape[1], dtype=encoded.dtype, device=encoded.device)
            values = torch.cat([encoded, one_hot.expand(len(encoded), -1, -1)], -1)
            state.source = Memory(encoded, values, self.score)
        return state


def _coverage(state: RecurrentDecoderState, lengths: Int[Tensor, "B"] | None) -> Float[Tensor, "B S"] | None:
    """The sum of each place's weights over the steps of a caption."""
    if not isinstance(state, PlacesState) or not any(part.shape[-1] for part in state.weights):
        return None
    weights = torch.cat(state.weights, 1)
    if lengths is not None:
        steps = torch.arange(weights.shape[1], device=weights.device) < lengths[:, None]
        weights = weights * steps[..., None]
    return weights.sum(1)


def _decoder(config: RNNCaptionerConfig, source_width: int) -> FixedVectorDecoder | PlacesDecoder:
    def recurrent(further_width: int) -> Recurrent:
        return Recurrent(config.cell, config.embedding + further_width, config.width)

    if config.score == "none":
        return FixedVectorDecoder(recurrent, config.width, every_step=True)
    if not 0 <= config.mean_share <= 1:
        raise UserError(f"mean_share is {config.mean_share}, but must be from 0 to 1")
    score = Additive(config.width, source_width, config.width, getattr(torch, config.score_activation))
    select = Hard(config.mean_share) if config.select == "hard" else Soft()
    kind = CoveredPlacesDecoder if config.coverage else PlacesDecoder
    return kind(recurrent(source_width), config.embedding, source_width, score, select, config.gate)


MODEL, CONFIG = RNNCaptioner, RNNCaptionerConfig

TINY = {
    "image_encoder": "resnet-light",
    "image_size": 64,
    "image_positions": "sinusoidal",
    "embedding": 64,
    "width": 128,
    "dropout": 0.0,
}

PRESETS: dict[str, dict[str, Any]] = {
    "show-tell": {"image_encoder": "googlenet", "width": 512, "score": "none"},
    "show-tell-tiny": {**TINY, "score": "none"},
    "show-attend-tell": {"coverage": True},
    "show-attend-tell-tiny": TINY,
    "show-attend-tell-hard": {"select": "hard"},
    "show-attend-tell-hard-tiny": {**TINY, "select": "hard"},
}

SIZES: dict[str, dict[str, int]] = {
    name: {"vocabulary": 10_000} for name in ("show-attend-tell", "show-attend-tell-hard")
}
"""The vocabulary of the paper, which other data replaces."""
