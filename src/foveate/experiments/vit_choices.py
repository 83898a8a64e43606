"""The choices of a vision Transformer (Dosovitskiy et al. 2021): one is changed at a time, with equally many steps."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console

from foveate.errors import at_least, one_of
from foveate.experiments.comparison import Comparison, Table
from foveate.experiments.drawing import panels
from foveate.experiments.image_rows import ImageOptions, ImageRow, ImageRows
from foveate.viewer.plain_figure import PlainFigure

PRESET = "vit-tiny"

BASE: dict[str, Any] = {"patch": 2, "width": 64, "feedforward": 256, "layers": 4, "heads": 4, "dropout": 0.0}
"""What all rows have but for the choice that they change."""

CHOICES: dict[str, dict[str, dict[str, Any]]] = {
    "patch": {"7 x 7": {"patch": 7}, "2 x 2": {}, "1 x 1": {"patch": 1}},
    "width": {
        "32": {"width": 32, "feedforward": 128},
        "64": {},
        "128": {"width": 128, "feedforward": 512},
    },
    "layers": {"1": {"layers": 1}, "2": {"layers": 2}, "4": {}, "8": {"layers": 8}},
    "heads": {"1": {"heads": 1}, "2": {"heads": 2}, "4": {}, "8": {"heads": 8}},
    "positions": {
        "none": {"positions": "none"},
        "sinusoidal": {"positions": "sinusoidal"},
        "learned": {},
    },
    "radius": {"1": {"window": 1}, "2": {"window": 2}, "3": {"window": 3}, "all": {}},
    "pooling": {"class token": {}, "mean": {"pooling": "mean"}, "attention": {"pooling": "attention"}},
}
"""Each choice, and what its values change of BASE."""


@dataclass
class ViTChoices(ImageOptions):
    """Train a small vision Transformer again and again, with one choice changed: patch size, width, depth, heads,
    positions, radius of self-attention, pooling.

    Rows that are already in `--out` are not trained again.
    """

    steps: int = 250
    """Training steps of each row."""
    choices: tuple[str, ...] = tuple(CHOICES)
    """The choices to change: patch, width, layers, heads, positions, radius, pooling."""


OPTIONS = ViTChoices


def run(options: ViTChoices, console: Console) -> Comparison:
    """Train the rows that are not trained yet. Raises UserError for options that cannot be."""
    options.check()
    at_least(1, "steps", options.steps)
    for choice in options.choices:
        one_of("choice", choice, CHOICES)
    rows = ImageRows(options, options.out / "vit-choices", console)
    trained: dict[str, dict[str, ImageRow]] = {}
    for choice in options.choices:
        for value, changes in CHOICES[choice].items():
            name = f"{choice} {value}" if changes else "base"
            row = rows.train(name, PRESET, {**BASE, "image_size": options.size, **changes}, steps=options.steps)
            trained.setdefault(choice, {})[value] = row
    table = Table(["choice", "accuracy, %", "parameters", "GFLOP a step", "seconds"])
    for choice, results in trained.items():
        for value, row in results.items():
            cells = f"{row.accuracy:.1f}", f"{row.parameters:,}", f"{row.flops / row.steps / 1e9:.2f}"
            table.rows.append([f"{choice}: {value}", *cells, f"{row.seconds:.0f}"])
    return Comparison(
        "Choices of a vision Transformer",
        [table],
        {"": _plot(trained)},
        {choice: {value: asdict(row) for value, row in results.items()} for choice, results in trained.items()},
        [
            f"{options.steps:,} steps of {options.batch} images of {options.source} at {options.size} x {options.size} "
            f"pixels; accuracy on up to {options.validation_images:,} images held out. Where a row says nothing else: "
            "patches of 2 x 2, width 64, 4 layers of 4 heads that see the whole image, learned positions, class token."
        ],
    )


def _plot(trained: dict[str, dict[str, ImageRow]]) -> PlainFigure:
    """Accuracy by value, a panel for each choice."""
    columns = min(4, len(trained))
    figure, grid = panels(math.ceil(len(trained) / columns), columns, 3.0, 2.4, sharey=True)
    for axes in grid.flat[len(trained) :]:
        axes.set_axis_off()
    for axes, (choice, results) in zip(grid.flat, trained.items(), strict=False):
        axes.plot(list(results), [row.accuracy for row in results.values()], marker="o", linewidth=1.2)
        axes.set_title(choice)
    for axes in grid[:, 0]:
        axes.set_ylabel("accuracy, %")
    return figure
