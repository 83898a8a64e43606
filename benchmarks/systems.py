"""Write docs/systems.md from recorded runs: `python benchmarks/systems.py`

A figure of that page is a record, `benchmarks/results/NAME.json`. The text around the figures is in
`benchmarks/systems.md`, where `{NAME.how}` stands for the record's command in short and `{NAME.result}` for its figure
with what it is compared with. Who measures anew changes the record, and the page of the system, and runs this.
"""

import shlex
from dataclasses import dataclass
from pathlib import Path

from foveate.config import from_dict
from foveate.files import read_json

HERE = Path(__file__).parent
PAGE, TEXT, RECORDS = HERE.parent / "docs" / "systems.md", HERE / "systems.md", HERE / "results"


@dataclass(frozen=True)
class Figure:
    """What was measured."""

    name: str
    value: float
    unit: str = ""

    @property
    def shown(self) -> str:
        return f"{self.value:g} {self.unit}".rstrip()


@dataclass(frozen=True)
class Record:
    """A figure, and all that it takes to get it again."""

    figure: Figure
    baseline: Figure
    """The strongest simple way that was measured on the same data, or what the figure is to be seen beside."""
    beside: tuple[Figure, ...]
    """What else was measured on the same data."""
    preset: str | None
    """The model that was trained; None for a comparison of several."""
    before: tuple[str, ...]
    """Commands that make what the command begins from, or is judged by."""
    command: str
    measured: str | None
    """The command that printed the figure; None where `command` did."""
    page: str
    """The page of docs that states the figure."""
    commit: str
    """Where the page names none: the first commit whose pages state the figure."""
    date: str
    machine: str | None
    """As the page says; None where it says nothing."""
    minutes: float | None
    seeds: int

    @property
    def words(self) -> list[str]:
        return shlex.split(self.command)

    @property
    def task(self) -> str | None:
        """What was trained; None for another command."""
        return self.words[2] if self.words[:2] == ["foveate", "train"] else None

    @property
    def how(self) -> str:
        """The command in short: the data by name, the model, and what it begins from."""
        words = self.words
        short = [word for place, word in enumerate(words[:4]) if place < 2 or not word.startswith(("-", "~"))]
        for flag in ("--model", "--from") if self.task else ():
            if flag in words:
                short += [flag, words[words.index(flag) + 1]]
        return f"`{' '.join(short)}`"

    @property
    def result(self) -> str:
        others = "; ".join(f"{one.name} {one.shown}" for one in (self.baseline, *self.beside))
        return f"{self.figure.name}: {self.figure.shown} ({others})"

    @property
    def value(self) -> str:
        return self.figure.shown

    @property
    def against(self) -> str:
        return f"{self.baseline.name} {self.baseline.shown}"


def records() -> dict[str, Record]:
    """All by name."""
    return {path.stem: from_dict(Record, read_json(path), str(path)) for path in sorted(RECORDS.glob("*.json"))}


def page() -> str:
    """The page as the records have it."""
    return TEXT.read_text(encoding="utf-8").format_map(records())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
