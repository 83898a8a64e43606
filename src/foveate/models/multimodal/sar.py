"""SAR: "Show, attend and read", a reader of words in images (Li et al. 2019, https://arxiv.org/abs/1811.00751).

A residual network gives a grid of features. An LSTM over the columns of the grid gives the holistic vector, one vector
of the whole word. An LSTM decoder starts with this vector and writes the word, one character per step. At each step it
attends to the grid in two dimensions: the key of a place is a 3x3 convolution, so it includes the place's neighbours.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from foveate.attention import Additive, Memory, attend
from foveate.config import FromData
from foveate.contracts import Output
from foveate.models.vision.sizes import one_for_each_stage
from foveate.nn import ConvNorm, Dropout, Recurrent, ResidualBlock, initialize_convolutions
from foveate.nn.encoder_decoder import EncoderDecoder
from foveate.nn.recurrent import RecurrentState


@dataclass
class SARConfig:
    """The sizes of SAR. Defaults are those of the paper, with a residual network of 31 layers."""

    vocabulary: FromData
    """Number of characters, special tokens included."""
    channels: int = 3
    """Channels of the images: 3 for colour, 1 for grey."""
    stem: tuple[int, ...] = (64, 128)
    """Channels of the two first convolutions."""
    blocks: tuple[int, ...] = (1, 2, 5, 3)
    """Residual blocks of each of the four stages."""
    widths: tuple[int, ...] = (256, 256, 512, 512)
    """Channels of each of the four stages."""
    width: int = 512
    """Width C of the recurrent states, of the attention and of the character embeddings."""
    layers: int = 2
    """LSTM layers, of the encoder of the holistic vector and of the decoder."""
    dropout: float = 0.1
    """Share of the embeddings and of the decoder's outputs that is dropped in training."""


@dataclass
class ReaderState:
    """The state of the decoder, one row for each image or beam."""

    hidden: RecurrentState
    grid: Memory
    """The features of all places and their keys, row by row."""
    places: Bool[Tensor, "R 1 S"]
    """Which places belong to the image; the others are padding."""

    def reorder(self, rows: Int[Tensor, "Q"]) -> None:
        self.hidden = tuple(part[:, rows] for part in self.hidden)
        self.grid.reorder(rows)
        self.places = self.places[rows]


class SAR(EncoderDecoder, nn.Module):
    """Reads the word in an image, one character per step."""

    attends = True

    def __init__(self, config: SARConfig) -> None:
        super().__init__()
        self.config = config
        self.backbone = WordBackbone(config)
        features, width = self.backbone.grid_width, config.width
        self.encoder = Recurrent("lstm", features, width, config.layers)
        self.holistic = nn.Linear(width, width)
        self.embedding = nn.Embedding(config.vocabulary, width)
        self.dropout = Dropout(config.dropout)
        self.decoder = Recurrent("lstm", width, width, config.layers)
        self.neighbours = nn.Conv2d(features, width, 3, padding=1, bias=False)
        self.score = Additive(width, None, width)
        self.output = nn.Linear(width + features, config.vocabulary)
        initialize_convolutions(self)

    def grid_size(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns of the places of an image of this height and width in pixels."""
        return height // (2 * self.backbone.stride), width // self.backbone.stride

    def forward(self, pixels: Float[Tensor, "B c h w"], widths: Int[Tensor, "B"], target: Int[Tensor, "B T"]) -> Output:
        """Logits of the character after each target character.

        `widths` are the columns of pixels that belong to each image; the others are padding.
        """
        return Output(self._advance(target, self.start(pixels, widths)))

    def start(self, pixels: Float[Tensor, "B c h w"], widths: Int[Tensor, "B"]) -> ReaderState:
        """Read the images; the holistic vector is the decoder's first input."""
        grid = self.backbone.grid(pixels)
        columns = (-(-widths // self.backbone.stride)).clamp_max(grid.shape[3])
        _, (last, _) = self.encoder(grid.amax(2).mT, lengths=columns)
        _, hidden = self.decoder(self.holistic(last[-1])[:, None])
        features, keys = (part.flatten(2).mT for part in (grid, self.neighbours(grid)))
        inside = torch.arange(grid.shape[3], device=grid.device) < columns[:, None]
        return ReaderState(hidden, Memory(keys, features, self.score), inside.repeat(1, grid.shape[2])[:, None])

    def step(self, tokens: Int[Tensor, "R"], state: ReaderState) -> Float[Tensor, "R N"]:
        return self._advance(tokens[:, None], state).squeeze(1)

    def _advance(self, tokens: Int[Tensor, "R T"], state: ReaderState) -> Float[Tensor, "R T N"]:
        hidden, state.hidden = self.decoder(self.dropout(self.embedding(tokens)), state.hidden)
        glimpse = attend(hidden, state.grid, mask=state.places)
        return self.output(self.dropout(torch.cat([hidden, glimpse], -1)))


class WordBackbone(nn.Module):
    """The residual network: images of height h and width w become a grid of h/8 rows and w/4 columns."""

    stride = 4
    """Pixels from one column of the grid to the next; rows are 8 pixels apart."""

    def __init__(self, config: SARConfig) -> None:
        super().__init__()
        one_for_each_stage(blocks=config.blocks, widths=config.widths)
        first, width = config.stem
        self.stem = nn.Sequential(ConvNorm(config.channels, first, 3), ConvNorm(first, width, 3))
        self.stages = nn.ModuleList()
        for count, outer in zip(config.blocks, config.widths, strict=True):
            stage = nn.Sequential(*(_residual_block(outer if number else width, outer) for number in range(count)))
            self.stages.append(stage.append(ConvNorm(outer, outer, 3)))
            width = outer
        self.grid_width = width

    def grid(self, pixels: Float[Tensor, "B c h w"]) -> Float[Tensor, "B C i j"]:
        """The last feature map."""
        x = self.stem(pixels)
        for stage, window in zip(self.stages, POOLING, strict=True):
            x = stage(F.max_pool2d(x, window) if window else x)
        return x


def _residual_block(width: int, outer: int) -> ResidualBlock:
    branch = nn.Sequential(ConvNorm(width, outer, 3), ConvNorm(outer, outer, 3, activation=None))
    return ResidualBlock(branch, None if width == outer else ConvNorm(width, outer, 1, activation=None), F.relu)


POOLING = ((2, 2), (2, 2), (2, 1), None)
"""Rows and columns that max pooling joins before each stage. Columns are halved twice only: letters are narrow."""

MODEL, CONFIG = SAR, SARConfig

PRESETS: dict[str, dict[str, Any]] = {
    "sar": {},
    "sar-tiny": {
        "channels": 1,
        "stem": (8, 16),
        "blocks": (1, 1, 1, 1),
        "widths": (24, 48, 56, 64),
        "width": 112,
        "layers": 1,
        "dropout": 0.0,
    },
}

SIZES: dict[str, dict[str, int]] = {"sar": {"vocabulary": 94}}
"""The characters of the paper (digits, letters, punctuation, the end), which other data replaces."""

TRAINING = {
    "sar-tiny": {"learning_rate": 3e-3},
}
"""The settings of training that suit a preset, where they differ from its task's."""
