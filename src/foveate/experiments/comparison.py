"""The options and the results of a comparison: tables, raw numbers and pictures."""

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
from foveate.files import written


@dataclass
class Options:
    """The options of all comparisons."""

    out: Path = Path("runs/bench")
    """Output folder of the table (.md), the raw numbers (.json) and the picture (.png)."""
    threads: int = 1
    """Number of CPU threads. With one thread, times are CPU times, which other programs hardly affect."""
    seed: int = 1
    """Seed of all random numbers."""


def check_growing(name: str, sizes: Sequence[int]) -> None:
    """Raise UserError unless there are at least two sizes in increasing order."""
    at_least(2, f"the number of {name}", len(sizes))
    if list(sizes) != sorted(set(sizes)):
        raise UserError(f"{name} are {' '.join(map(str, sizes))}, but must increase")
    at_least(1, name, sizes[0])


@dataclass
class Table:
    """Rows of text under headings. The first column names the row, the others contain numbers."""

    headings: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    title: str = ""

    def markdown(self) -> str:
        """As Markdown, with numbers aligned to the right."""
        rule = ["---", *["---:"] * (len(self.headings) - 1)]
        lines = [f"| {' | '.join(cells)} |" for cells in (self.headings, rule, *self.rows)]
        return "\n".join([*([f"**{self.title}**", ""] if self.title else []), *lines])


@dataclass
class Comparison:
    """The results of a comparison."""

    title: str
    tables: list[Table]
    figures: dict[str, Picture]
    """Pictures by the suffix of the file name: "" for NAME.png, "steps" for NAME-steps.png."""
    raw: Any
    """All measurements, as JSON values."""
    notes: list[str] = field(default_factory=list)
    """Notes about the tables."""
    conditions: str = field(default_factory=lambda: f"Measured with {conditions()}.")
    """The software and hardware of the measurement."""

    def markdown(self) -> str:
        parts = [f"# {self.title}", *(table.markdown() for table in self.tables), *self.notes, self.conditions]
        return "\n\n".join(parts) + "\n"


def save(comparison: Comparison, name: str, options: Options) -> list[Path]:
    """Write the tables, the raw numbers and the pictures. Returns their paths.

    Raises UserError if a file cannot be written.
    """
    content = {"options": asdict(options), "conditions": comparison.conditions, "measured": comparison.raw}
    texts = {f"{name}.md": comparison.markdown(), f"{name}.json": json.dumps(content, indent=1, default=str) + "\n"}
    for file, text in texts.items():
        with written(options.out / file) as path:
            path.write_text(text, encoding="utf-8")
    pictures = {f"{name}-{end}.png" if end else f"{name}.png": figure for end, figure in comparison.figures.items()}
    for file, figure in pictures.items():
        viewer.save_figure(figure, options.out / file)
    return [options.out / file for file in (*texts, *pictures)]


def conditions() -> str:
    """The version of torch, the number of threads and the processor."""
    threads = torch.get_num_threads()
    return f"torch {torch.__version__}, {threads} thread{'s' * (threads > 1)} of {processor_name()}"


def processor_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
