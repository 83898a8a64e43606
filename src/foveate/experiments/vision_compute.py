"""Vision Transformers, hybrids and residual networks trained with equally many operations (Dosovitskiy et al. 2021,
figure 5)."""

from dataclasses import asdict, dataclass
from typing import Any

from matplotlib.ticker import LogLocator, StrMethodFormatter
from rich.console import Console

from foveate.errors import UserError
from foveate.experiments.comparison import Comparison, Table
from foveate.experiments.drawing import legend_below, line, panels
from foveate.experiments.image_rows import ImageOptions, ImageRow, ImageRows
from foveate.viewer.plain_figure import PlainFigure

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "ViT, 4 layers of width 64": (
        "vit-tiny",
        {"patch": 2, "width": 64, "feedforward": 256, "layers": 4, "dropout": 0.0},
    ),
    "ViT, 6 layers of width 128": ("vit-tiny", {"patch": 2, "dropout": 0.0}),
    "hybrid, 2 layers of width 64": ("vit-hybrid-tiny", {"width": 64, "feedforward": 256, "layers": 2}),
    "hybrid, 6 layers of width 128": ("vit-hybrid-tiny", {"width": 128, "feedforward": 512, "layers": 6}),
    "ResNet, 8 layers": ("resnet20", {"blocks": (1, 1, 1)}),
    "ResNet, 20 layers": ("resnet20", {}),
}
"""Two sizes of each kind: preset, and what is changed of it."""


@dataclass
class VisionCompute(ImageOptions):
    """Train vision Transformers, hybrids and residual networks of two sizes with equally many operations.

    Rows that are already in `--out` are not trained again.
    """

    budgets: tuple[float, ...] = (0.3, 1.2)
    """Operations of each training, in TFLOP."""


OPTIONS = VisionCompute


def run(options: VisionCompute, console: Console) -> Comparison:
    """Train the rows that are not trained yet. Raises UserError for options that cannot be."""
    options.check()
    if not options.budgets or not all(budget > 0 for budget in options.budgets):
        raise UserError(f"budgets are {options.budgets}, but must be one or more numbers above 0")
    rows = ImageRows(options, options.out / "vision-compute", console)
    trained: dict[str, list[ImageRow]] = {}
    for budget in options.budgets:
        for name, (preset, changes) in MODELS.items():
            sized = {**changes, "image_size": options.size} if preset.startswith("vit") else changes
            row = rows.train(f"{name}, {budget:g} TFLOP", preset, sized, budget=1e12 * budget)
            trained.setdefault(name, []).append(row)
    headings = [
        heading
        for budget in options.budgets
        for heading in (f"{budget:g} TFLOP: accuracy, %", "steps", "seconds", "GFLOP/s")
    ]
    table = Table(["model", "parameters", *headings])
    for name, results in trained.items():
        cells = [f"{results[0].parameters:,}"]
        for row in results:
            speed = row.flops / row.seconds / 1e9
            cells += [f"{row.accuracy:.1f}", f"{row.steps:,}", f"{row.seconds:.0f}", f"{speed:.0f}"]
        table.rows.append([name, *cells])
    return Comparison(
        "Vision Transformers, hybrids and residual networks at equal training operations",
        [table],
        {"": _plot(trained)},
        {name: [asdict(row) for row in results] for name, results in trained.items()},
        [
            f"{options.source} at {options.size} x {options.size} pixels, batches of {options.batch}; accuracy on up "
            f"to {options.validation_images:,} images held out. Seconds are those of one processor."
        ],
    )


def _plot(trained: dict[str, list[ImageRow]]) -> PlainFigure:
    """Accuracy against operations to the left, against time to the right."""
    figure, grid = panels(1, 2, 4.2, 3.2, sharey=True)
    for number, (name, results) in enumerate(trained.items()):
        accuracy = [row.accuracy for row in results]
        line(grid[0][0], number, [row.flops / 1e12 for row in results], accuracy, name)
        line(grid[0][1], number, [row.seconds for row in results], accuracy, name)
    for axes, label in zip(grid[0], ("TFLOP of the training", "seconds of one processor"), strict=True):
        axes.set(xlabel=label, xscale="log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.minorticks_off()
    grid[0][0].set_ylabel("accuracy, %")
    legend_below(figure, grid[0][0], 3)
    return figure
