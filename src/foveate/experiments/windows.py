"""Restricted self-attention: a translator and a tagger that look at most a few positions away, by radius."""

from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console

from foveate.errors import at_least
from foveate.experiments.comparison import Comparison, DeviceOptions, Table, check_growing
from foveate.experiments.measurement_cache import conditions_note
from foveate.experiments.trained_rows import (
    RESULTS,
    SMALL_TRANSLATOR,
    TAGGER,
    TRANSLATOR,
    RowResult,
    train_row,
    translator_speeds,
)
from foveate.viewer.plain_figure import PlainFigure

LONG = 1024
"""Tokens of the source and of the target whose time is measured: emoji names and sentences are short."""


@dataclass
class WindowRadii(DeviceOptions):
    """Train a translator (emoji names) and a tagger (Brown corpus) with self-attention in a window, by its radius.

    Rows that are already in `--out` are not trained again; an interrupted training is resumed.
    """

    radii: tuple[int, ...] = (1, 2, 4)
    """Positions that self-attention sees on either side; without a window comes last."""
    translator_steps: int = 600
    """Training steps of each translator, of up to 1,024 tokens."""
    tagger_steps: int = 600
    """Training steps of each tagger, of up to 2,048 words."""
    repeats: int = 3
    """Measurements of each speed, of which the median counts."""


OPTIONS = WindowRadii


def run(options: WindowRadii, console: Console) -> Comparison:
    """Train the rows that are not trained yet, and measure all. Raises UserError for invalid options."""
    check_growing("radii", options.radii)
    for name in ("translator_steps", "tagger_steps", "repeats"):
        at_least(1, name, getattr(options, name))
    windows = {**{str(radius): radius for radius in options.radii}, "all": None}
    folders = {
        (task, name): options.out / "windows" / f"{task}-{name}" for task in ("translate", "tag") for name in windows
    }
    results: dict[tuple[str, str], RowResult] = {}
    for (task, name), folder in folders.items():
        architecture: dict[str, Any] = {"window": windows[name]}
        recipe, steps = TAGGER, options.tagger_steps
        if task == "translate":
            architecture |= SMALL_TRANSLATOR
            recipe, steps = TRANSLATOR, options.translator_steps
        given = {key: value for key, value in architecture.items() if value is not None}
        results[task, name] = train_row(task, {**recipe, "architecture": given}, steps, options, folder, console)
    speeds = translator_speeds(
        {name: {**SMALL_TRANSLATOR, "window": radius} for name, radius in windows.items()},
        LONG,
        1,
        options.repeats,
        options.device,
    )
    table = Table(["radius", "BLEU", "chrF", "tagging, %", f"training step of {LONG:,} tokens, ms"])
    for name in windows:
        translated, tagged = results["translate", name].metrics, results["tag", name].metrics
        cells = f"{translated['bleu']:.1f}", f"{translated['chrf']:.1f}", f"{tagged['accuracy']:.2f}"
        table.rows.append([name, *cells, f"{speeds[name]:.0f}"])
    return Comparison(
        "Self-attention in a window",
        [table],
        {"": _plot(list(windows), results, speeds)},
        {"rows": {" ".join(row): asdict(result) for row, result in results.items()}, "milliseconds": speeds},
        [
            f"Translator: 2+2 blocks of width 128, {options.translator_steps:,} steps, emoji names, 500 validation "
            f"messages by greedy search; its attention to the source is not restricted. Tagger: 2 blocks of width 128, "
            f"{options.tagger_steps:,} steps, 1,000 validation sentences of the Brown corpus.",
            *conditions_note({" ".join(row): folder / RESULTS for row, folder in folders.items()}),
        ],
    )


def _plot(names: list[str], results: dict[tuple[str, str], RowResult], speeds: dict[str, float]) -> PlainFigure:
    """Quality of both, and time, by radius."""
    figure = PlainFigure(figsize=(9, 2.8), dpi=144, layout="constrained")
    rows = {
        "translator: BLEU": [results["translate", name].metrics["bleu"] for name in names],
        "tagger: accuracy, %": [results["tag", name].metrics["accuracy"] for name in names],
        f"ms for {LONG:,} tokens": [speeds[name] for name in names],
    }
    for axes, (title, numbers) in zip(figure.subplots(1, 3), rows.items(), strict=True):
        axes.plot(names, numbers, marker="o")
        axes.set(title=title, xlabel="radius")
        axes.spines[["top", "right"]].set_visible(False)
    return figure
