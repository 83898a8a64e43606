"""The options and the results of a comparison: tables, raw numbers and pictures."""

import contextlib
import functools
import json
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import torch
from rich.console import Console

from foveate import viewer
from foveate.accelerator import accelerator_names, accelerator_type
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
    seeds: int = 3
    """Compare with this many seeds, from --seed on: figures are means, with the half of their 95 % intervals. Each
    seed takes as long as one comparison; a comparison that only counts or times runs once by default."""


@dataclass
class DeviceOptions(Options):
    """The options of comparisons that compute with models or layers, and do not only count."""

    device: str = "cpu"
    """Device on which models are trained and timed, such as cuda. Times on another device than the CPU are wall-clock
    times, until it has finished."""


def made_on(device: str) -> contextlib.AbstractContextManager[object]:
    """While it is open, tensors and layers are made on this device, and times are those of it.

    The CPU's tensors are made there anyway, without what torch adds to each call.
    """
    return contextlib.nullcontext() if device == "cpu" else torch.device(device)


Made = TypeVar("Made", bound=DeviceOptions)


def on_device(run: "Callable[[Made, Console], Comparison]") -> "Callable[[Made, Console], Comparison]":
    """A comparison that makes its tensors and layers itself: those that it makes are on the device of its options."""

    @functools.wraps(run)
    def run_there(options: Made, console: Console) -> "Comparison":
        with made_on(options.device):
            return run(options, console)

    return run_there


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
    conditions: str = ""
    """The software and hardware of the measurement; by default those of this process and of the options' device."""

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


def conditions(device: str = "cpu") -> str:
    """The version of torch, the number of threads, the processor, and the device where it is another."""
    threads = torch.get_num_threads()
    here = f"torch {torch.__version__}, {threads} thread{'s' * (threads > 1)} of {processor_name()}"
    if device.partition(":")[0] == accelerator_type():
        return f"{here}, and {accelerator_names()[torch.device(device).index or 0]}"
    return here if device == "cpu" else f"{here}, and {device}"


def processor_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
