"""The curves of trainings, from the rows of their metrics."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

from foveate.errors import UserError, printable
from foveate.training import read_rows
from foveate.training.writers import Row

METRICS = "metrics.jsonl"
MOST_METRICS = 40
"""Metrics that are drawn and listed."""

TITLES = {
    "loss": "loss",
    "learning_rate": "learning rate",
    "gradient_norm": "norm of the gradient",
    "tokens_per_second": "tokens or examples a second",
}
"""Names on the page of what a row of a training holds."""

NO_CURVE = ("step", "epoch", "seconds", "tokens", "cross_entropy")
"""What a row holds that says little over the steps, or the same as the loss."""

Points = tuple[Sequence[float], Sequence[float]]
"""Steps, and the values there."""


def training_rows(folder: Path) -> list[Row]:
    """The rows of a training; an incomplete last line of one that runs is left out."""
    path = folder / METRICS
    if not path.is_file():
        raise UserError(f"{folder} has no {METRICS}: it is not a run of foveate's")
    rows = read_rows(path)
    if not rows:
        raise UserError(f"{path} has no rows yet")
    return rows


def curves(rows: Sequence[Row]) -> dict[str, Points]:
    """Each number of the training, and each metric of the validations, that has more than one value."""
    others = names({name: value for name, value in row.items() if number(value)} for row in rows)
    known = {}
    for name in dict.fromkeys([*TITLES, *(name for name in others if name not in NO_CURVE)]):
        known[TITLES.get(name, name)] = [(row["step"], row[name]) for row in rows if number(row.get(name))]
    checked = [(row["step"], metrics) for row in rows if (metrics := table(row.get("validation")))]
    for name in names(metrics for _, metrics in checked):
        points = [(step, metrics[name]) for step, metrics in checked if number(metrics.get(name))]
        known[f"validation: {name.replace('_', ' ')}"] = points
    drawn = {title: points for title, points in known.items() if len(points) > 1}
    return {title: ([step for step, _ in points], [value for _, value in points]) for title, points in drawn.items()}


def attention_curves(rows: Sequence[Row]) -> dict[str, dict[str, Points]]:
    """For each statistic of attention a line for each site: the mean of its heads at each validation."""
    found: dict[str, dict[str, tuple[list[float], list[float]]]] = {}
    for row in rows:
        for site, measures in table(row.get("attention")).items():
            for name, heads in table(measures).items():
                if isinstance(heads, list) and heads and all(map(number, heads)):
                    steps, values = found.setdefault(name, {}).setdefault(site, ([], []))
                    steps.append(row["step"])
                    values.append(sum(heads) / len(heads))
    return {f"attention: {name.replace('_', ' ')}": dict(lines) for name, lines in found.items()}


def chosen_curves(folders: Sequence[Path], titles: Sequence[str]) -> dict[str, dict[str, Points]]:
    """The curves with these titles, or all that the first training has; of each the points of every training that has
    it, by the name of its folder, or by its path where two have one name. Raises UserError for a title that no training
    has."""
    short = len({folder.name for folder in folders}) == len(folders)
    curves_of = {folder.name if short else str(folder): curves(training_rows(folder)) for folder in folders}
    known = list(dict.fromkeys(title for curve in curves_of.values() for title in curve))
    for title in titles:
        if title not in known:
            raise UserError(f"no training has the curve '{title}'; there are: {', '.join(known) or 'none'}")
    wanted = titles or list(next(iter(curves_of.values())))
    return {title: {name: curve[title] for name, curve in curves_of.items() if title in curve} for title in wanted}


def names(tables: Iterable[Mapping[str, Any]]) -> list[str]:
    """The names in some tables, the first ones of very many."""
    return list(dict.fromkeys(name for metrics in tables for name in metrics))[:MOST_METRICS]


def table(value: Any) -> dict[str, Any]:
    """A table with names that can be written; empty for anything else."""
    return (
        {printable(name.encode("utf-8", "replace").decode()): item for name, item in value.items()}
        if isinstance(value, dict)
        else {}
    )


def number(value: Any) -> TypeGuard[float]:
    """Returns whether a value is a number that can be drawn."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
