"""Degradation: deeper plain nets have a higher error in training too; residual nets do not (He et al. 2016, figure 1
and figure 6, https://arxiv.org/abs/1512.03385)."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console

from foveate import run_dir, tasks
from foveate.errors import UserError, at_least
from foveate.experiments.comparison import Comparison, DeviceOptions, Table
from foveate.experiments.drawing import legend_below, line, panels
from foveate.files import read_json_lines
from foveate.tasks.loading import recipe
from foveate.tasks.recipe import Recipe
from foveate.viewer.plain_figure import PlainFigure


@dataclass
class Degradation(DeviceOptions):
    """Train plain and residual nets of two depths on images by name, and compare their errors."""

    source: str = "fashion-mnist"
    """Images by name: see `foveate data`."""
    presets: tuple[str, ...] = ("plain20", "plain56", "resnet20", "resnet56")
    """The nets."""
    size: int = 14
    """Height and width that images are scaled to."""
    epochs: int = 2
    """Passes over the training images."""
    validate_every: int = 100
    """Steps from one point of the curves to the next."""
    runs: Path = Path("runs/degradation")
    """Folder of the run folders. A run that is there already is not trained again."""


@dataclass(frozen=True)
class ErrorPoint:
    """The errors at one step of a training, in percent."""

    preset: str
    step: int
    training: float
    """Of the training images since the point before, as augmented."""
    validation: float
    """Of images that are held out."""


def run(options: Degradation, console: Console) -> Comparison:
    """Train those nets that are not trained yet. Raises UserError for options that cannot be."""
    if not options.presets:
        raise UserError("nothing to compare: give --presets at least one")
    for name in ("size", "epochs", "validate_every"):
        at_least(1, name, getattr(options, name))
    points: list[ErrorPoint] = []
    for preset in options.presets:
        folder = options.runs / preset
        if not (folder / run_dir.WEIGHTS).exists():
            tasks.train(_recipe(options, preset, folder))
        points += read_points(preset, folder / "metrics.jsonl")
        console.print(f"{preset}: training error {points[-1].training:.1f} %", highlight=False)
    return _report(options, points)


def _recipe(options: Degradation, preset: str, folder: Path) -> Recipe:
    return recipe(
        "classify-image",
        model=preset,
        out=folder,
        source=options.source,
        size=options.size,
        epochs=options.epochs,
        warmup=50,
        validate_every=options.validate_every,
        save_every=4 * options.validate_every,
        patience=None,
        device=options.device,
        threads=options.threads,
        seed=options.seed,
    )


def read_points(preset: str, log: Path) -> list[ErrorPoint]:
    """The errors that a training's metrics.jsonl tells of. Raises UserError if it tells of no validation."""
    points, since = [], []
    for entry in read_json_lines(log):
        if "validation" not in entry:
            since.append(entry.get("accuracy"))
            continue
        known = [100 * (1 - share) for share in since if share is not None]
        if known:
            error = 100 - entry["validation"]["accuracy"]
            points.append(ErrorPoint(preset, entry["step"], sum(known) / len(known), error))
        since = []
    if not points:
        raise UserError(f"{log} has no validation: validate more often, or train longer")
    return points


def _report(options: Degradation, points: list[ErrorPoint]) -> Comparison:
    table = Table(["net", "training error, %", "validation error, %"])
    for preset in options.presets:
        last = [point for point in points if point.preset == preset][-1]
        table.rows.append([f"`{preset}`", f"{last.training:.2f}", f"{last.validation:.2f}"])
    return Comparison(
        "Degradation of plain nets",
        [table],
        {"": _curves(options.presets, points)},
        [asdict(point) for point in points],
        [
            f"{options.epochs} epochs of {options.source} at {options.size} x {options.size} pixels. Errors of "
            "training are those of the images as they are learned from, moved and flipped, over the last "
            f"{options.validate_every} steps; validation is on images held out."
        ],
    )


def _curves(presets: Sequence[str], measured: list[ErrorPoint]) -> PlainFigure:
    """Training error to the left, validation error to the right."""
    figure, grid = panels(1, 2, sharey=True)
    for axes, side in zip(grid.flat, ("training", "validation"), strict=True):
        for number, preset in enumerate(presets):
            points = [point for point in measured if point.preset == preset]
            line(axes, number, [point.step for point in points], [getattr(point, side) for point in points], preset)
        axes.set(xlabel="step", title=f"{side} error, %", ylim=(0, 60))
    legend_below(figure, grid.flat[0], columns=4)
    return figure


OPTIONS = Degradation
