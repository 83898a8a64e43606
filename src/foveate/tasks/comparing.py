"""Is one run better than another? All answer the same examples, which are then drawn anew."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from foveate.contracts import Picture
from foveate.data.dataset import Dataset
from foveate.errors import UserError
from foveate.forms.form import OutputForm
from foveate.metrics.resampling import Interval, ResampledFigures, compare_by_resampling, over_seeds
from foveate.tasks.evaluation import heading
from foveate.tasks.skill import Skill
from foveate.tasks.training_data import notes_of

NOT_COMPARED = ("out", "seed", "log_every", "save_every", "threads", "device", "processes")
"""Settings that say nothing of how well a model learns, or that differ in all runs."""


@dataclass(frozen=True)
class RunComparison:
    """What runs reach on the same examples."""

    names: list[str]
    examples: int
    unit: str
    metric: str
    higher_is_better: bool
    found: ResampledFigures
    settings: dict[str, list[str]]
    """Settings that differ, and the value of each run."""
    notes: list[str]

    def rows(self) -> list[list[str]]:
        """A row for each run: the figure, its interval, the difference from the first and its probability by chance."""
        parts = zip(self.names, self.found.figures, self.found.differences, self.found.chances, strict=True)
        return [
            [
                name,
                _text(one.value),
                _range(one),
                *(_difference(apart, chance, _digits(one.value)) if number else ["", "", ""]),
            ]
            for number, (name, one, apart, chance) in enumerate(parts)
        ]

    @property
    def headings(self) -> list[str]:
        return ["run", heading(self.metric), "95 % interval", "minus the first", "95 % interval", "p"]

    def verdicts(self) -> list[str]:
        """A sentence for each run but the first."""
        found = []
        for name, apart, chance in list(zip(self.names, self.found.differences, self.found.chances, strict=True))[1:]:
            better = (apart.value > 0) == self.higher_is_better
            if chance >= DECIDED or apart.value == 0:
                found.append(f"{name} and {self.names[0]}: the difference may be chance")
            else:
                found.append(f"{name} is {'better' if better else 'worse'} than {self.names[0]}")
        return found

    def json_values(self) -> dict[str, Any]:
        """All of it as JSON values."""
        parts = zip(self.names, self.found.figures, self.found.differences, self.found.chances, strict=True)
        runs = [
            {
                "run": name,
                "value": one.value,
                "interval": one[1:],
                "difference": apart.value,
                "difference_interval": apart[1:],
                "p": chance,
            }
            for name, one, apart, chance in parts
        ]
        shared = {"metric": self.metric, "higher_is_better": self.higher_is_better, self.unit: self.examples}
        return {**shared, "runs": runs, "draws": self.found.draws, "settings": self.settings}

    def picture(self) -> Picture:
        """The figures with their intervals."""
        from foveate.viewer.intervals import draw_intervals  # imports matplotlib, which takes a while

        title = f"{heading(self.metric)} of {self.examples:,} {self.unit}"
        return draw_intervals(self.names, self.found.figures, title)


LARGE = 10
"""From this size on, a figure has one digit behind the point; else three."""

DECIDED = 0.05
"""Below this probability, a difference is taken for more than chance."""


def compare_runs(
    skills: Sequence[Any], names: Sequence[str], data: Sequence[Path] = (), console: Console | None = None
) -> RunComparison:
    """What runs of one task reach on a user's data, or on what the first one was measured or validated on.

    Raises UserError for runs of several tasks, or that learned from different data where none are given, and for a task
    whose examples are only measured together.
    """
    first = skills[0]
    _check_alike(skills, names, bool(data))
    dataset, note = _examples(first, data)
    writes = first.processor.writes
    answered = []
    for skill, name in zip(skills, names, strict=True):
        usable = skill.answerable(dataset)
        if len(usable) != len(dataset):
            raise UserError(
                f"{name} can read {len(usable):,} of {len(dataset):,} {dataset.unit}: compare on shorter ones"
            )
        if console is not None:
            console.print(f"{name} answers {len(dataset):,} {dataset.unit}", markup=False, highlight=False)
        measured = skill.measured(list(dataset), skill.processor.writes.measure_options(), console)
        if measured is None:
            raise UserError(f"runs of {first.task.name} are measured as a whole: see foveate eval of each")
        answered.append(measured)
    found = compare_by_resampling(answered, writes.metric)
    settings = differing_settings([skill.description.get("recipe", {}) for skill in skills])
    return RunComparison(
        [*names], answered[0].count, dataset.unit, writes.metric, writes.higher_is_better, found, settings, note
    )


def _check_alike(skills: Sequence[Any], names: Sequence[str], has_data: bool) -> None:
    first = skills[0]
    for skill, name in zip(skills, names, strict=True):
        if skill.task.name != first.task.name:
            raise UserError(f"{names[0]} is a model of {first.task.name}, but {name} of {skill.task.name}")
        mine, other = (one.recipe.examples for one in (first, skill))
        if not has_data and (mine.source, mine.data, mine.validation) != (other.source, other.data, other.validation):
            raise UserError(f"{names[0]} and {name} learned from different data: give --data to compare them on")


def _examples(skill: Any, data: Sequence[Path]) -> tuple[Dataset[Any], list[str]]:
    """What to compare on, and what to say of it."""
    options = skill.processor.writes.measure_options()
    dataset = skill.test_examples(skill.task.part_to_measure(data), options)
    return skill.answerable(dataset), notes_of(skill, data)


def differing_settings(recipes: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """The settings that all recipes have and in which they differ, by name, and the value of each."""
    tables = [dict(_flat(recipe)) for recipe in recipes]
    names = [name for name in tables[0] if all(name in table for table in tables)]
    found = {name: [table[name] for table in tables] for name in names}
    return {
        name: values
        for name, values in found.items()
        if len(set(values)) > 1 and name.rpartition(".")[2] not in NOT_COMPARED
    }


def _flat(values: Mapping[str, Any], before: str = "") -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for name, value in values.items():
        rows += _flat(value, f"{before}{name}.") if isinstance(value, Mapping) else [(f"{before}{name}", str(value))]
    return rows


def short_names(folders: Sequence[Path]) -> list[str]:
    """The names of folders, or their whole paths where two have the same name."""
    names = [folder.name for folder in folders]
    return names if len(set(names)) == len(names) and all(names) else [*map(str, folders)]


def are_compared(task: Any) -> bool:
    """Whether runs of a task are measured example by example, and not only as a whole."""
    kind = Skill if task.skill is None else task.skill()
    return kind.measured is not Skill.measured or type(task.writes).metrics is not OutputForm.metrics


def whole_figures(skills: Sequence[Any], console: Console | None = None) -> list[float]:
    """What each of some runs reaches on the examples that validated the first one, measured as a whole."""
    dataset, _ = _examples(skills[0], ())
    found = []
    for skill in skills:
        writes = skill.processor.writes
        examples = list(skill.answerable(dataset))
        found.append(float(skill.measure(examples, writes.measure_options(), console)[1][writes.metric]))
    return found


def seeds_line(metric: str, figures: Sequence[float]) -> str:
    """The mean of trainings that differ in their seeds alone."""
    mean = over_seeds(figures)
    half = f"{mean.high - mean.value:.{_digits(mean.value)}f}"
    return f"{heading(metric)}, mean of {len(figures)} seeds: {_text(mean.value)} ± {half} (half of its 95 % interval)"


def _digits(value: float) -> int:
    """Digits behind the point that a figure of this size needs."""
    return 1 if abs(value) >= LARGE else 3


def _text(value: float) -> str:
    return f"{value:.{_digits(value)}f}"


def _range(one: Interval) -> str:
    digits = _digits(one.value)
    return f"{one.low:.{digits}f} to {one.high:.{digits}f}"


def _difference(apart: Interval, chance: float, digits: int) -> list[str]:
    value, low, high = (f"{number:+.{digits}f}" for number in apart)
    return [value, f"{low} to {high}", f"{chance:.3f}"]
