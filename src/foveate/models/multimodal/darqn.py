"""DARQN: an agent with recurrent attention over image observations (Sorokin et al. 2015,
https://arxiv.org/abs/1512.01693).

A convolutional network gives a grid of features of each observed image. The agent attends to the grid with its LSTM's
state before the step as the query, and the LSTM reads the glimpse. An instruction, if there is one, joins both the
query and the input of the LSTM. Beside these glimpses it may have fixed ones, at places that do not depend on what is
sought: what stands right ahead. The outputs are one number per action: logits in imitation, values in Q-learning.
"""

from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import Additive, Biaffine, Score, attend
from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import UserError, at_least, check_literals
from foveate.models.vision.sizes import one_for_each_stage
from foveate.nn import Dropout, MeanPooling, Recurrent, initialize_convolutions
from foveate.nn.recurrent import RecurrentState


@dataclass
class DARQNConfig:
    """The sizes of a DARQN. Defaults are those of the paper, for images of 84 x 84 pixels."""

    vocabulary: FromData
    """Number of words in instructions, special tokens included."""
    actions: FromData
    """Number of actions A."""
    channels: int = 1
    """Channels of the images: 3 for colour, 1 for grey, 4 for colour and depth."""
    kernels: tuple[int, ...] = (8, 4, 3)
    """Side of the windows of each convolution, in places of its input."""
    strides: tuple[int, ...] = (4, 2, 1)
    """Places from one window to the next, of each convolution."""
    widths: tuple[int, ...] = (32, 64, 256)
    """Channels of each convolution."""
    coordinates: bool = False
    """Join the column and row of each place, from -1 to 1, to its features, so that a glimpse says where it is from
    (Liu et al. 2018, https://arxiv.org/abs/1807.03247). The paper has none."""
    width: int = 256
    """Width C of the recurrent state, of the attention and of the words."""
    dropout: float = 0.0
    """Share of the glimpses and states that is dropped in training."""
    score: Literal["additive", "biaffine"] = "additive"
    """How places are scored. The product of place and query finds "the red ball" among symbols sooner than a sum."""
    score_activation: Literal["tanh", "relu", "sigmoid"] = "tanh"
    """With the additive score: the function g in u g(W1 k + W2 q + b)."""
    glimpses: int = 1
    """Places that are looked at in each step, each with a query of its own: the goal, and what stands in the way. The
    paper has one."""
    fixed_glimpses: int | None = None
    """Places that are looked at in each step whatever is there, such as the one right ahead: Gaussian windows, whose
    centres are learned. The paper has none."""


@dataclass
class AgentState:
    """The state of the agent, one row for each world."""

    hidden: RecurrentState
    instruction: Float[Tensor, "R C"]

    def reorder(self, rows: Int[Tensor, "Q"]) -> None:
        self.hidden = tuple(part[:, rows] for part in self.hidden)
        self.instruction = self.instruction[rows]


class FixedGlimpses(nn.Module):
    """Looks at learned places, whatever is there: the weights of each are a Gaussian window over the view."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.centres = nn.Parameter(torch.empty(count, 2).uniform_(-1, 1))
        self.log_sharpness = nn.Parameter(torch.ones(count, 1))

    def forward(self, values: Float[Tensor, "B S D"], places: Float[Tensor, "S 2"]) -> Float[Tensor, "B W D"]:
        """The means of the values at the places, which are columns and rows from -1 to 1."""
        distances = (self.centres[:, None] - places).square().sum(-1)
        return (-self.log_sharpness.exp() * distances).softmax(-1) @ values


class DARQN(nn.Module):
    """Looks at one part of each observed image after the other, and chooses actions."""

    attends = True

    def __init__(self, config: DARQNConfig) -> None:
        super().__init__()
        check_literals(config)
        at_least(1, "glimpses", config.glimpses)
        self.config = config
        sizes = {name: getattr(config, name) for name in ("kernels", "strides", "widths")}
        one_for_each_stage(**sizes)
        self.convolutions, channels = nn.ModuleList(), config.channels
        for kernel, stride, outer in zip(*sizes.values(), strict=True):
            self.convolutions.append(nn.Conv2d(channels, outer, kernel, stride))
            channels = outer
        width, channels = config.width, channels + 2 * config.coordinates
        self.embedding = nn.Embedding(config.vocabulary, width)
        self.mean = MeanPooling()
        self.score: Score
        if config.score == "additive":
            self.score = Additive(2 * width, channels, width, getattr(torch, config.score_activation))
        else:
            self.score = Biaffine(2 * width, channels)
        self.queries = nn.Linear(2 * width, config.glimpses * 2 * width) if config.glimpses > 1 else None
        self.fixed = config.fixed_glimpses or 0
        self.windows = FixedGlimpses(self.fixed) if self.fixed else None
        self.dropout = Dropout(config.dropout)
        self.recurrent = Recurrent("lstm", (config.glimpses + self.fixed) * channels + width, width)
        self.output = nn.Linear(width, config.actions)
        initialize_convolutions(self)

    def forward(
        self, tokens: Int[Tensor, "B S"], lengths: Int[Tensor, "B"], pixels: Float[Tensor, "B T c h w"]
    ) -> Output:
        """Logits or values (B, T, A) of the actions at each step, given the images up to it."""
        state = self.start(tokens, lengths)
        grids = self._flat_grid(pixels.flatten(0, 1)).unflatten(0, pixels.shape[:2])
        return Output(torch.stack([self._advance(grid, state) for grid in grids.unbind(1)], 1))

    def start(self, tokens: Int[Tensor, "B S"], lengths: Int[Tensor, "B"]) -> AgentState:
        """Read the instructions, as the mean of their words' embeddings; lengths of 0 are for no instruction."""
        instruction = self.mean(self.embedding(tokens), lengths)
        hidden = instruction.new_zeros(1, len(tokens), self.config.width)
        return AgentState((hidden, hidden), instruction)

    def step(self, observation: dict[str, Tensor], state: AgentState) -> Float[Tensor, "R A"]:
        """Look at the `pixels` (R, c, h, w) of each row's world; the logits of its next action. Changes the state."""
        return self._advance(self._flat_grid(observation["pixels"]), state)

    def grid(self, pixels: Float[Tensor, "B c h w"]) -> Float[Tensor, "B C i j"]:
        """The feature map. Raises UserError for images that are too small for one."""
        x = pixels
        for layer, kernel in zip(self.convolutions, self.config.kernels, strict=True):
            if min(x.shape[2:]) < kernel:
                raise UserError(f"images of {pixels.shape[2]} x {pixels.shape[3]} pixels are too small for this model")
            x = F.relu(layer(x))
        return x

    def grid_size(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns of the feature map of images of `height` x `width` pixels."""
        for kernel, stride in zip(self.config.kernels, self.config.strides, strict=True):
            height, width = (height - kernel) // stride + 1, (width - kernel) // stride + 1
        return height, width

    def seen_size(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns of pixels, from the upper left one, that windows reach: the feature map is made of these."""
        rows, columns = self.grid_size(height, width)
        for kernel, stride in zip(self.config.kernels[::-1], self.config.strides[::-1], strict=True):
            rows, columns = (rows - 1) * stride + kernel, (columns - 1) * stride + kernel
        return rows, columns

    def _flat_grid(self, pixels: Float[Tensor, "B c h w"]) -> Float[Tensor, "B S D"]:
        """The features of the fixed glimpses, then those of each place."""
        grid = self.grid(pixels)
        rows, columns = (torch.linspace(-1, 1, size, device=grid.device, dtype=grid.dtype) for size in grid.shape[2:])
        places = torch.stack(torch.meshgrid(columns, rows, indexing="xy"))
        if self.config.coordinates:
            grid = torch.cat([grid, places.expand(len(grid), -1, -1, -1)], 1)
        flat = grid.flatten(2).mT
        return flat if self.windows is None else torch.cat([self.windows(flat, places.flatten(1).mT), flat], 1)

    def _advance(self, grid: Float[Tensor, "R S D"], state: AgentState) -> Float[Tensor, "R A"]:
        query = torch.cat([state.hidden[0][-1], state.instruction], -1)
        if self.queries is not None:
            query = self.queries(query)
        queries = query.unflatten(-1, (self.config.glimpses, -1))[:, None]
        # Glimpses are heads over one grid, so that each step has one row of weights for each.
        fixed, grid = grid[:, : self.fixed], grid[:, self.fixed :]
        glimpses = attend(queries.transpose(1, 2), grid[:, None], grid[:, None], score=self.score)
        seen = torch.cat([glimpses.flatten(1), fixed.flatten(1)], -1)
        x = torch.cat([self.dropout(seen), state.instruction], -1)[:, None]
        outputs, state.hidden = self.recurrent(x, state.hidden)
        return self.output(self.dropout(outputs[:, 0]))


MODEL, CONFIG = DARQN, DARQNConfig

PRESETS: dict[str, dict[str, Any]] = {
    "darqn": {},
    "darqn-tiny": {
        "channels": 3,
        "kernels": (8, 1, 1),
        "strides": (8, 1, 1),
        "widths": (48, 64, 64),
        "width": 96,
        "coordinates": True,
        "fixed_glimpses": 4,
    },
    "darqn-symbols": {
        "channels": 20,
        "kernels": (1, 1),
        "strides": (1, 1),
        "widths": (64, 64),
        "width": 96,
        "score": "biaffine",
        "coordinates": True,
        "glimpses": 4,
        "fixed_glimpses": 4,
    },
}
