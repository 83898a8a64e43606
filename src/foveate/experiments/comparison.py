"""What a comparison is asked for and what it gives: tables, raw figures and pictures, printed and written."""

import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from foveate import viewer
from foveate.contracts import Picture
from foveate.errors import UserError, at_least


@dataclass
class Options:
    """What every comparison can be told."""

    out: Path = Path("runs/bench")
    """Folder for the table (.md), the raw figures (.json) and the picture (.png)."""
    threads: int = 1
    """Processor threads to compute with. With one, times are the processor's, which other programs hardly disturb."""
    seed: int = 1
    """Seed of all that is random."""


def check_growing(name: str, sizes: Sequence[int]) -> None:
    """Raise UserError for sizes by which nothing can be seen to grow."""
    at_least(2, f"the number of {name}", len(sizes))
    if list(sizes) != sorted(set(sizes)):
        raise UserError(f"{name} are {' '.join(map(str, sizes))}, but must grow from each to the next")
    at_least(1, name, sizes[0])


@dataclass
class Table:
    """Rows of text under headings; the first column names the row, the others hold figures."""

    headings: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    title: str = ""

    def markdown(self) -> str:
        """As Markdown, in which figures stand to the right."""
        rule = ["---", *["---:"] * (len(self.headings) - 1)]
        lines = [f"| {' | '.join(cells)} |" for cells in (self.headings, rule, *self.rows)]
        return "\n".join([*([f"**{self.title}**", ""] if self.title else []), *lines])


@dataclass
class Comparison:
    """What was found."""

    title: str
    tables: list[Table]
    figures: dict[str, Picture]
    """By the end of the file's name: "" for NAME.png, "steps" for NAME-steps.png."""
    raw: Any
    """All that was measured, as JSON can hold it."""
    notes: list[str] = field(default_factory=list)
    """What one has to know to read the tables, a sentence or two each."""
    conditions: str = field(default_factory=lambda: f"Measured with {conditions()}.")
    """What it was measured with, which is what the process has while a comparison is made."""

    def markdown(self) -> str:
        parts = [f"# {self.title}", *(table.markdown() for table in self.tables), *self.notes, self.conditions]
        return "\n\n".join(parts) + "\n"


def save(comparison: Comparison, name: str, options: Options) -> list[Path]:
    """Write the tables, the raw figures and the pictures; the paths of what was written.

    Raises UserError where the disk refuses.
    """
    told = {"options": asdict(options), "conditions": comparison.conditions, "measured": comparison.raw}
    texts = {f"{name}.md": comparison.markdown(), f"{name}.json": json.dumps(told, indent=1, default=str) + "\n"}
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        for file, text in texts.items():
            (options.out / file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"could not write into {options.out}: {error.strerror}") from None
    pictures = {f"{name}-{end}.png" if end else f"{name}.png": figure for end, figure in comparison.figures.items()}
    for file, figure in pictures.items():
        viewer.save(figure, options.out / file)
    return [options.out / file for file in (*texts, *pictures)]


def conditions() -> str:
    """What this process computes with."""
    threads = torch.get_num_threads()
    return f"torch {torch.__version__}, {threads} thread{'s' * (threads > 1)} of {_processor()}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
