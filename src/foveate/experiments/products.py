"""Matrix products against convolutions with the same number of operations."""

from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch
from rich.console import Console
from torch import Tensor, nn

from foveate.errors import UserError, at_least
from foveate.experiments.comparison import Comparison, DeviceOptions, Table, on_device
from foveate.experiments.drawing import legend_below, line, panels, powers_of_two
from foveate.experiments.flops import flops
from foveate.experiments.measuring import Run, side_by_side

MODES = {False: "forward", True: "training"}

TAPS = 9
"""Positions that a 3 x 3 convolution covers. Other sizes give the others the same number of operations."""


@dataclass
class Products(DeviceOptions):
    """Compare the speed of matrix products and convolutions with the same number of floating-point operations."""

    seeds: int = 1
    widths: tuple[int, ...] = (32, 64, 128, 256)
    """Channels of the 3 x 3 convolution."""
    side: int = 24
    """Height and width of its input."""
    repeats: int = 3
    """Measurements of each time, of which the median counts."""


def matrix_product(width: int, side: int) -> tuple[nn.Module, Tensor]:
    """A row for each pixel of the image, with the inputs of a 3 x 3 convolution there."""
    return nn.Linear(TAPS * width, width, bias=False), torch.randn(side * side, TAPS * width)


def convolution(width: int, side: int) -> tuple[nn.Module, Tensor]:
    return nn.Conv2d(width, width, 3, padding=1, bias=False), torch.randn(1, width, side, side)


def one_by_one(width: int, side: int) -> tuple[nn.Module, Tensor]:
    """A 1 x 1 convolution with three times as many channels: a matrix product by another name."""
    return nn.Conv2d(3 * width, 3 * width, 1, bias=False), torch.randn(1, 3 * width, side, side)


def along_a_line(width: int, side: int) -> tuple[nn.Module, Tensor]:
    """A 1-D convolution of nine positions over the pixels of the image in a row."""
    return nn.Conv1d(width, width, TAPS, padding=TAPS // 2, bias=False), torch.randn(1, width, side * side)


def depthwise(width: int, side: int) -> tuple[nn.Module, Tensor]:
    """A depthwise convolution, over `width` images for the same number of operations."""
    layer = nn.Conv2d(width, width, 3, padding=1, groups=width, bias=False)
    return layer, torch.randn(width, width, side, side)


WAYS: dict[str, Callable[[int, int], tuple[nn.Module, Tensor]]] = {
    "matrix product": matrix_product,
    "convolution, 3 x 3": convolution,
    "convolution, 1 x 1": one_by_one,
    "convolution, 9 in a row": along_a_line,
    "depthwise convolution, 3 x 3": depthwise,
}


@dataclass(frozen=True)
class ProductSpeed:
    """The speed of one operation."""

    way: str
    training: bool
    width: int
    flops: int
    seconds: float

    @property
    def speed(self) -> float:
        """In GFLOP/s."""
        return self.flops / self.seconds / 1e9


@on_device
def run(options: Products, console: Console) -> Comparison:
    """Measure all operations at all widths. Raises UserError for invalid sizes."""
    for name in ("side", "repeats"):
        at_least(1, name, getattr(options, name))
    if not options.widths:
        raise UserError("no width to measure: give --widths at least one number")
    at_least(1, "widths", min(options.widths))
    results = []
    for width in options.widths:
        console.print(f"{width} channels", highlight=False)
        runs = {(way, training): _run(way, width, options.side, training) for training in MODES for way in WAYS}
        seconds = side_by_side(runs, options.repeats)
        # Each of the two gradients takes as many operations again. (Torch counts too many for depthwise ones.)
        operations = {case: flops(runs[case[0], False]) * (3 if case[1] else 1) for case in runs}
        results += [ProductSpeed(*case, width, operations[case], took) for case, took in seconds.items()]
    return _report(options, results)


def _run(way: str, width: int, side: int, training: bool) -> Run:
    layer, x = WAYS[way](width, side)
    x.requires_grad_(training)
    to_output = torch.randn_like(layer(x))

    def forward() -> None:
        with torch.no_grad():
            layer(x)

    return (lambda: layer(x).backward(to_output)) if training else forward


def _report(options: Products, results: list[ProductSpeed]) -> Comparison:
    def parts(way: str, training: bool) -> list[ProductSpeed]:
        return [result for result in results if (result.way, result.training) == (way, training)]

    sizes = [result.flops for result in parts("matrix product", False)]
    headings = [f"{width} channels, {mode}" for mode in MODES.values() for width in options.widths]
    table = Table(["GFLOP/s", *headings])
    figure, grid = panels(1, 2, 4.2, 3.4, sharey=True)
    for number, way in enumerate(WAYS):
        both = [parts(way, training) for training in MODES]
        table.rows.append([way, *(f"{result.speed:.1f}" for measured in both for result in measured)])
        for axes, measured in zip(grid[0], both, strict=True):
            line(axes, number, options.widths, [result.speed for result in measured], way)
    for axes, mode in zip(grid[0], MODES.values(), strict=True):
        powers_of_two(axes, options.widths)
        axes.set(title=mode, xlabel="channels of the 3 x 3 convolution", yscale="log")
    grid[0][0].set_ylabel("GFLOP/s")
    legend_below(figure, grid[0][0], 3)
    return Comparison(
        "Matrix products against convolutions of equally many operations",
        [table],
        {"": figure},
        [asdict(result) for result in results],
        [
            f"All ways in a column do the same number of operations, forward {sizes[0] / 1e6:,.0f} to "
            f"{sizes[-1] / 1e6:,.0f} MFLOP, in training three times as many. Single precision, "
            f"an image of {options.side} x {options.side} places."
        ],
    )


OPTIONS = Products
