"""The tables and figures of `layers`."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from foveate.experiments import structure_report
from foveate.experiments.comparison import Comparison, Table
from foveate.experiments.drawing import legend_below, line, panels, powers_of_two
from foveate.experiments.measuring import exponent
from foveate.viewer.plain_figure import PlainFigure

THEORY = {
    "recurrent": "n d²",
    "convolution": "k n d²",
    "self-attention": "n² d",
    "restricted self-attention": "r n d",
    "self-attention, all weights kept": "n² d",
}
"""Operations of a layer, up to a constant (Vaswani et al. 2017, table 1)."""

ON_TOP = "self-attention, all weights kept"
"""Drawn dotted, because it may coincide with self-attention."""

MEASURES = {"seconds": "time, s", "memory": "memory, MiB", "flops": "FLOPs"}

MODES = {False: "forward", True: "training"}


@dataclass(frozen=True)
class LayerCost:
    """Time, memory and operations of one layer at one size."""

    layer: str
    training: bool
    length: int
    width: int
    seconds: float
    bytes: float | None
    """Memory that a run added to its process; None if unknown."""
    flops: int

    @property
    def memory(self) -> float:
        """In MiB, at least 1/64; NaN if unknown."""
        return float("nan") if self.bytes is None else max(self.bytes / 2**20, 2**-6)


@dataclass(frozen=True)
class Sweep:
    """The measurements of one layer against its length or its width, the other fixed."""

    axis: str
    sizes: list[int]
    parts: list[LayerCost]

    def values(self, measure: str) -> list[float]:
        return [float(getattr(cost, measure)) for cost in self.parts]

    def exponent(self, measure: str) -> float:
        """The exponent of growth over the upper half of the sizes, where constant costs hardly matter."""
        start = min(len(self.sizes) // 2, len(self.sizes) - 2)
        return exponent(self.sizes[start:], self.values(measure)[start:])


def comparison(options: Any, costs: Sequence[LayerCost]) -> Comparison:
    """`options` are those of `layers.Layers`."""

    def sweep(axis: str, layer: str, training: bool) -> Sweep:
        sizes = getattr(options, f"{axis}s")
        fixed = {"length": options.widths, "width": options.lengths}[axis]
        middle, other = fixed[len(fixed) // 2], {"length": "width", "width": "length"}[axis]
        parts = {
            getattr(cost, axis): cost
            for cost in costs
            if (cost.layer, cost.training, getattr(cost, other)) == (layer, training, middle)
        }
        return Sweep(axis, list(sizes), [parts[size] for size in sizes])

    memory = all(cost.bytes is not None for cost in costs)
    return Comparison(
        title="Four ways to process a sequence",
        tables=[_exponents(sweep), _largest(options, sweep), structure_report.table(options)],
        figures={"": _curves(options, sweep, memory), "steps": structure_report.figure(options)},
        raw=[asdict(cost) for cost in costs],
        notes=_notes(options, memory),
    )


Sweeps = Callable[[str, str, bool], Sweep]


def _exponents(sweep: Sweeps) -> Table:
    table = Table(
        ["layer", "theory", "FLOPs", "time, forward", "time, training", "memory, forward", "memory, training"],
        title="How cost grows with length n and width d: fitted exponents",
    )
    cases = [("flops", True), ("seconds", False), ("seconds", True), ("memory", False), ("memory", True)]
    for layer, theory in THEORY.items():
        cells = []
        for measure, training in cases:
            n, d = (sweep(axis, layer, training).exponent(measure) for axis in ("length", "width"))
            cells.append("-" if math.isnan(n + d) else f"n^{n:.2f} d^{d:.2f}")
        table.rows.append([layer, theory, *cells])
    return table


def _largest(options: Any, sweep: Sweeps) -> Table:
    length, width = options.lengths[-1], options.widths[len(options.widths) // 2]
    headings = [f"{name}, {mode}" for name in ("ms", "MiB", "GFLOP") for mode in MODES.values()]
    table = Table(["layer", *headings], title=f"One layer at n = {length:,}, d = {width:,}")
    for layer in THEORY:
        parts = [sweep("length", layer, training).parts[-1] for training in MODES]
        cells = [f"{1000 * part.seconds:,.1f}" for part in parts] + [_mebibytes(part) for part in parts]
        table.rows.append([layer, *cells, *(f"{part.flops / 1e9:,.2f}" for part in parts)])
    return table


def _mebibytes(part: LayerCost) -> str:
    return "-" if part.bytes is None else f"{part.memory:,.1f}"


def _curves(options: Any, sweep: Sweeps, memory: bool) -> PlainFigure:
    """A row of panels for each measure, without memory if it is unknown."""
    measures = {measure: label for measure, label in MEASURES.items() if memory or measure != "memory"}
    figure, grid = panels(len(measures), 4, 3.3, 2.6, sharey="row")
    columns = [(axis, training) for axis in ("length", "width") for training in MODES]
    for row, (measure, label) in zip(grid, measures.items(), strict=True):
        row[0].set_ylabel(label)
        for axes, (axis, training) in zip(row, columns, strict=True):
            for number, layer in enumerate(THEORY):
                swept = sweep(axis, layer, training)
                how = {"linestyle": ":"} if layer == ON_TOP else {}
                line(axes, number, swept.sizes, swept.values(measure), f"{layer}: {THEORY[layer]}", **how)
            axes.set_yscale("log")
            powers_of_two(axes, swept.sizes)
            axes.set_xlabel(f"{axis} {'n' if axis == 'length' else 'd'}")
    for axes, (axis, training) in zip(grid[0], columns, strict=True):
        axes.set_title(f"{MODES[training]}, by {axis}", fontsize=10)
    legend_below(figure, grid[0][0], 3)
    return figure


def _notes(options: Any, memory: bool) -> list[str]:
    start = min(len(options.lengths) // 2, len(options.lengths) - 2)
    return [
        f"Recurrent: a GRU. Convolution: k = {options.kernel}. Restricted: a window of {options.radius} to each side, "
        f"r = {2 * options.radius + 1}. Attention is measured alone, without projections, in heads of width "
        f"{options.head_width}. One sequence; exponents are fitted from n = {options.lengths[start]:,} and "
        f"d = {options.widths[min(len(options.widths) // 2, len(options.widths) - 2)]:,} on.",
        "FLOPs are counted by torch (matrix products, convolutions) and, for fused attention on a CPU, which torch "
        "does not know, by the formula 4 T S d over the pairs that the kernel visits (training: 3.5 times that, 4.5 "
        "where blocks are computed again). Softmax, gates and other elementwise work are not counted. "
        f"{'Memory is what a run adds to its process.' if memory else 'Only Linux tells how much memory a run takes.'}",
    ]
