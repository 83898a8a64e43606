"""Heads of self-attention: many, one of full width, heads that read slices of the input, heads of unequal widths."""

from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console

from foveate.errors import at_least, unknown
from foveate.experiments.comparison import Comparison, DeviceOptions, Table
from foveate.experiments.measurement_cache import conditions_note
from foveate.experiments.trained_rows import RESULTS, SMALL_TRANSLATOR, TRANSLATOR, train_row, translator_speeds

ROWS: dict[str, dict[str, Any]] = {
    "4 heads of 32": {"heads": 4},
    "8 heads of 16": {"heads": 8},
    "1 head of 128": {"heads": 1},
    "4 heads, split": {"heads": 4, "split": True},
    "heads of 16, 16, 32, 64": {"heads": 4, "head_widths": (16, 16, 32, 64)},
}
"""What each row changes of the translator, whose width is 128."""

LENGTHS = (32, 512)
"""Tokens of source and target whose time is measured."""


@dataclass
class Heads(DeviceOptions):
    """Train translators of emoji names whose attention has other heads, and compare quality, time and size.

    Rows that are already in `--out` are not trained again; an interrupted training is resumed.
    """

    rows: tuple[str, ...] = tuple(ROWS)
    """Rows to compare."""
    steps: int = 600
    """Training steps of each row, of up to 1,024 tokens."""
    repeats: int = 5
    """Measurements of each speed, of which the median counts."""


OPTIONS = Heads


def run(options: Heads, console: Console) -> Comparison:
    """Train the rows that are not trained yet, and measure all. Raises UserError for invalid options."""
    at_least(1, "the number of rows", len(options.rows))
    for name in options.rows:
        if name not in ROWS:
            raise unknown("row", name, ROWS)
    at_least(1, "steps", options.steps)
    at_least(1, "repeats", options.repeats)
    architectures = {name: {**SMALL_TRANSLATOR, **ROWS[name]} for name in options.rows}
    folders = {name: options.out / "heads" / name.replace(", ", "-").replace(" ", "-") for name in options.rows}
    results = {
        name: train_row(
            "translate",
            {**TRANSLATOR, "architecture": architectures[name]},
            options.steps,
            options,
            folders[name],
            console,
        )
        for name in options.rows
    }
    speeds = {
        length: translator_speeds(architectures, length, max(1, LENGTHS[-1] // length), options.repeats, options.device)
        for length in LENGTHS
    }
    table = Table(["heads", "BLEU", "chrF", "parameters", *(f"step, {length} tokens, ms" for length in LENGTHS)])
    for name, row in results.items():
        quality = f"{row.metrics['bleu']:.1f}", f"{row.metrics['chrf']:.1f}"
        times = (f"{speeds[length][name]:.0f}" for length in LENGTHS)
        table.rows.append([name, *quality, f"{row.parameters:,}", *times])
    return Comparison(
        "Heads of attention",
        [table],
        {},
        {"rows": {name: asdict(row) for name, row in results.items()}, "milliseconds": speeds},
        [
            f"Translators of emoji names, 2+2 blocks of width 128, {options.steps:,} steps, 500 validation messages by "
            f"greedy search. Time: a training step of {LENGTHS[-1]} tokens of source and target in rows of "
            "the length in the heading.",
            *conditions_note({name: folder / RESULTS for name, folder in folders.items()}),
        ],
    )
