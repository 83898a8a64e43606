"""Four ways to process a sequence: recurrent, 1-D convolution, self-attention, restricted self-attention.

The cost of one layer in time, memory and floating-point operations by length n and width d, compared with theory
(Vaswani et al. 2017, table 1); the number of sequential steps; the length of signal paths.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from rich.console import Console
from torch import Tensor, nn

from foveate.attention import attend, window
from foveate.errors import UserError, at_least
from foveate.experiments import layers_report
from foveate.experiments.comparison import Comparison, DeviceOptions, check_growing, on_device
from foveate.experiments.flops import flops
from foveate.experiments.layers_report import LayerCost
from foveate.experiments.measuring import Run, memory, side_by_side
from foveate.nn import Recurrent

Layer = Callable[[Float[Tensor, "B T C"]], Float[Tensor, "B T C"]]


@dataclass
class Layers(DeviceOptions):
    """Compare the cost of a recurrent layer, a convolution, self-attention and restricted self-attention."""

    seeds: int = 1
    lengths: tuple[int, ...] = (128, 256, 512, 1024, 2048)
    """Lengths n to measure, at the middle one of the widths."""
    widths: tuple[int, ...] = (64, 128, 256, 512, 1024)
    """Widths d to measure, at the middle one of the lengths; multiples of the width of a head."""
    kernel: int = 3
    """Positions k that a convolution covers, an odd number."""
    radius: int = 32
    """Radius of restricted self-attention, which covers r = 2 * radius + 1 positions."""
    head_width: int = 64
    """Width of an attention head; there are d / head_width heads."""
    repeats: int = 3
    """Measurements of each time, of which the median counts."""

    def check(self) -> None:
        """Raise UserError for an invalid value."""
        check_growing("lengths", self.lengths)
        check_growing("widths", self.widths)
        for name in ("radius", "head_width", "repeats"):
            at_least(1, name, getattr(self, name))
        if self.kernel % 2 == 0 or self.kernel < 3:
            raise UserError(f"kernel is {self.kernel}, but must be an odd number of at least 3")
        for width in self.widths:
            if width % self.head_width:
                raise UserError(f"a width of {width} is not a multiple of head_width {self.head_width}")

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """All pairs of a length and a width to measure, each once."""
        length, width = self.lengths[len(self.lengths) // 2], self.widths[len(self.widths) // 2]
        return list(dict.fromkeys([(n, width) for n in self.lengths] + [(length, d) for d in self.widths]))


def recurrent(options: Layers, width: int) -> Layer:
    layer = Recurrent("gru", width, width)
    return lambda x: layer(x)[0]


def convolution(options: Layers, width: int) -> Layer:
    layer = nn.Conv1d(width, width, options.kernel, padding=options.kernel // 2)
    return lambda x: layer(x.mT).mT


def self_attention(options: Layers, width: int, radius: int | None = None, kernel: str = "auto") -> Layer:
    """Attention without projections, which would be matrix products for any kind of attention."""
    mask = None if radius is None else window(radius)

    def layer(x: Tensor) -> Tensor:
        heads = x.unflatten(-1, (-1, options.head_width)).transpose(1, 2)
        return attend(heads, heads, heads, mask=mask, kernel=kernel).transpose(1, 2).flatten(2)

    return layer


def restricted(options: Layers, width: int) -> Layer:
    return self_attention(options, width, options.radius)


def all_weights(options: Layers, width: int) -> Layer:
    return self_attention(options, width, kernel="eager")


LAYERS: dict[str, Callable[[Layers, int], Layer]] = {
    "recurrent": recurrent,
    "convolution": convolution,
    "self-attention": self_attention,
    "restricted self-attention": restricted,
    "self-attention, all weights kept": all_weights,
}


def prepare(options: Layers, name: str, size: tuple[int, int], training: bool) -> Run:
    """A run of one layer over random vectors of a length and width; in training with the backward pass."""
    torch.manual_seed(options.seed)
    length, width = size
    layer = LAYERS[name](options, width)
    x, to_output = torch.randn(1, length, width, requires_grad=training), torch.randn(1, length, width)

    def forward() -> None:
        with torch.no_grad():
            layer(x)

    def train() -> None:
        layer(x).backward(to_output)

    return train if training else forward


@on_device
def run(options: Layers, console: Console) -> Comparison:
    """Measure all layers at all sizes. Raises UserError for invalid sizes."""
    options.check()
    costs = []
    for size in options.sizes:
        console.print(f"length {size[0]:,}, width {size[1]:,}", highlight=False)
        costs += _measure(options, size)
    return layers_report.comparison(options, costs)


def _measure(options: Layers, size: tuple[int, int]) -> list[LayerCost]:
    """All layers at one size, interleaved."""
    cases = [(name, training) for training in (False, True) for name in LAYERS]
    runs = {case: prepare(options, case[0], size, case[1]) for case in cases}
    seconds = side_by_side(runs, options.repeats)
    return [
        LayerCost(*case, *size, seconds[case], memory(prepare, options, case[0], size, case[1]), flops(runs[case]))
        for case in cases
    ]


OPTIONS = Layers
