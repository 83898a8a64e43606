"""MDARQN: an agent that attends to several kinds of images, such as grey and depth (Qureshi et al. 2017, "Show, attend
and interact", https://arxiv.org/abs/1702.08626).

Each stream is a DARQN with convolutions, recurrent attention and an output of its own, over some channels of the
observation. The outputs of all streams, logits in imitation or values in Q-learning, are averaged.
"""

from dataclasses import dataclass, fields
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.contracts import Output
from foveate.errors import UserError
from foveate.models.multimodal.darqn import DARQN, AgentState, DARQNConfig


@dataclass
class MDARQNConfig(DARQNConfig):
    """The sizes of an MDARQN: those of the DARQN of each stream, for images of 84 x 84 pixels, and the streams."""

    channels: int = 2
    """Channels of the observation, those of all streams one after the other."""
    streams: tuple[int, ...] = (1, 1)
    """Channels of each stream: a grey one and a depth one."""


@dataclass
class StreamsState:
    """The state of each stream, one row for each world."""

    streams: list[AgentState]

    def reorder(self, rows: Int[Tensor, "Q"]) -> None:
        for state in self.streams:
            state.reorder(rows)


class MDARQN(nn.Module):
    """Looks at one part of each stream, time after time, and chooses actions by all of them."""

    def __init__(self, config: MDARQNConfig) -> None:
        super().__init__()
        if not config.streams or min(config.streams) < 1 or sum(config.streams) != config.channels:
            raise UserError(
                f"streams of {' and '.join(map(str, config.streams))} channels need observations of "
                f"{sum(config.streams)}, not {config.channels}: learn with --views grey-depth, or give other streams"
            )
        self.config = config
        sizes = {one.name: getattr(config, one.name) for one in fields(DARQNConfig)}
        self.streams = nn.ModuleList(DARQN(DARQNConfig(**{**sizes, "channels": count})) for count in config.streams)

    def forward(
        self, tokens: Int[Tensor, "B S"], lengths: Int[Tensor, "B"], pixels: Float[Tensor, "B T c h w"]
    ) -> Output:
        """Logits or values (B, T, A) of the actions at each step, given the images up to it."""
        parts = zip(self.streams, pixels.split(self.config.streams, 2), strict=True)
        return Output(torch.stack([stream(tokens, lengths, part).logits for stream, part in parts]).mean(0))

    def start(self, tokens: Int[Tensor, "B S"], lengths: Int[Tensor, "B"]) -> StreamsState:
        """Read the instructions; see `DARQN.start`."""
        return StreamsState([self._stream(number).start(tokens, lengths) for number in range(len(self.streams))])

    def step(self, observation: dict[str, Tensor], state: StreamsState) -> Float[Tensor, "R A"]:
        """Look at the `pixels` (R, c, h, w) of each row's world; the logits of its next action. Changes the state."""
        parts = observation["pixels"].split(self.config.streams, 1)
        steps = [
            self._stream(number).step({"pixels": part}, state.streams[number]) for number, part in enumerate(parts)
        ]
        return torch.stack(steps).mean(0)

    def grid_size(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns of the feature map of images of `height` x `width` pixels."""
        return self._stream(0).grid_size(height, width)

    def seen_size(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns of pixels that the feature map is made of."""
        return self._stream(0).seen_size(height, width)

    def _stream(self, number: int) -> DARQN:
        stream = self.streams[number]
        assert isinstance(stream, DARQN)
        return stream


MODEL, CONFIG = MDARQN, MDARQNConfig

PRESETS: dict[str, dict[str, Any]] = {
    "mdarqn": {},
    "mdarqn-tiny": {
        "kernels": (8, 1, 1),
        "strides": (8, 1, 1),
        "widths": (48, 64, 64),
        "width": 96,
        "coordinates": True,
    },
}
