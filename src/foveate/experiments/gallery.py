"""The gallery of `foveate gallery`: pictures of the documentation, each made by commands of foveate.

A row is literal: its commands are those that a user would type. `{out}` stands for the folder of the row. Each command
runs in a process of its own, so that a failure ends its row and nothing else.
"""

import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from foveate.errors import UserError, unknown
from foveate.experiments.gallery_page import Entry, gallery_page
from foveate.files import check_writable, written

PAGE = "index.html"
LOG = "log.txt"
"""File in a row's folder with everything that its commands printed."""


@dataclass(frozen=True)
class Row:
    """A picture, or several, with the commands that make them."""

    name: str
    shows: str
    commands: tuple[str, ...]
    """Without the word `foveate`; `{out}` is the folder of the row."""
    results: tuple[str, ...]
    """Names of the pictures and pages that the commands write into `{out}`."""
    minutes: float
    """Time on two cores, rounded up."""
    page: str
    """The page of the documentation that explains the picture."""


SHORT = "--learning-rate 0.003 --schedule linear --warmup 100 --validate-every 200 --average 1 --threads 1"
MESSAGES = "--vocabulary 2000 --batch-tokens 1024 --validation-sentences 200 --architecture.dropout 0.1 "
MESSAGES += "--steps 900 --learning-rate 0.003 --schedule linear --warmup 100 --validate-every 300 --average 1"

MESSAGE = "woman singer dark skin tone, man in lotus position medium-light skin tone"

ROWS = (
    Row(
        "dot-scaling",
        "Entropy, gradient and variance of dot and scaled dot attention, by the width of the keys",
        ("bench dot-scaling --out {out}",),
        ("dot-scaling.png",),
        0.5,
        "docs/comparisons.md",
    ),
    Row(
        "traces",
        "Products that a translator computes one after the other, by the length of the sentence",
        ("bench traces --out {out}",),
        ("traces.png",),
        0.5,
        "docs/in-parallel.md",
    ),
    Row(
        "identity",
        "How much of a shallower net is left in the deeper plain and residual nets that contain it",
        ("bench identity --out {out}",),
        ("identity.png",),
        0.5,
        "docs/degradation.md",
    ),
    Row(
        "imagenet",
        "Published accuracy of image classifiers by their operations, counted here",
        ("bench imagenet --out {out}",),
        ("imagenet.png",),
        1,
        "docs/imagenet.md",
    ),
    Row(
        "layers",
        "Time, memory and operations of five layers by length and width; steps that wait for each other",
        ("bench layers --out {out}",),
        ("layers.png", "layers-steps.png"),
        3,
        "docs/layers.md",
    ),
    Row(
        "positions",
        "Waves of positions beside a binary counter; accuracy on sequences longer than those of the training",
        ("bench positions --out {out}",),
        ("positions-waves.png", "positions.png"),
        6,
        "docs/positions.md",
    ),
    Row(
        "products",
        "Speed of matrix products and convolutions by the number of channels",
        ("bench products --out {out}",),
        ("products.png",),
        2,
        "docs/comparisons.md",
    ),
    Row(
        "teacher-forcing",
        "Time for a known target at once and for one that is written step by step, by its length",
        ("bench teacher-forcing --out {out}",),
        ("teacher-forcing.png",),
        3,
        "docs/comparisons.md",
    ),
    Row(
        "alignment",
        "Where an RNN with attention and a Transformer look while they translate messages of emoji names",
        ("demo --out {out}",),
        ("alignment-1.png", "alignment-2.png"),
        9,
        "docs/translation.md",
    ),
    Row(
        "heads",
        "Where a small Transformer looks while it writes, and a page with every head of every layer",
        (
            f"train translate emoji --from en --to fr --model transformer-tiny {MESSAGES} --out {{out}}/run",
            "look {out}/run 'woman singer dark skin tone' --out {out}/look.html",
            f"run {{out}}/run '{MESSAGE}' --picture {{out}}/writing.gif",
        ),
        ("writing.gif", "look.html"),
        5,
        "docs/looking.md",
    ),
    Row(
        "words",
        "The words that a classifier of film reviews looks at",
        (
            f"train classify movie-sentiment --steps 400 {SHORT} --out {{out}}/run",
            "run {out}/run 'A gripping, beautifully acted drama.' --picture {out}/words.png",
        ),
        ("words.png",),
        3,
        "docs/classification.md",
    ),
    Row(
        "tags",
        "Where each word of a sentence looks in a Transformer that tags parts of speech",
        (
            f"train tag brown --model transformer-tagger --steps 400 {SHORT} --out {{out}}/run",
            "run {out}/run 'They refuse to permit us to obtain the refuse permit .' --picture {out}/tags.png",
        ),
        ("tags.png",),
        3,
        "docs/tagging.md",
    ),
)
"""In the order of the list: what needs no training first."""


def find_rows(names: Sequence[str], budget: float | None) -> list[Row]:
    """The rows of these names, or all without names; with a budget in minutes, those that fit, in order.

    Raises UserError for an unknown name and where nothing fits.
    """
    known = {row.name: row for row in ROWS}
    for name in names:
        if name not in known:
            raise unknown("picture", name, known)
    asked = [known[name] for name in dict.fromkeys(names)] if names else list(ROWS)
    if budget is None:
        return asked
    fitting, left = [], budget
    for row in asked:
        if row.minutes <= left:
            fitting.append(row)
            left -= row.minutes
    if not fitting:
        least = min(asked, key=lambda row: row.minutes)
        raise UserError(f"nothing fits in {budget:g} minutes: {least.name} takes {least.minutes:g}")
    return fitting


def build_gallery(rows: Sequence[Row], out: Path, tell: Callable[[str], None]) -> list[str]:
    """Make the rows and the page `out`/index.html, which also shows what was made there before.

    Returns the names of the rows that failed. The page is written anew after each row, so that it can be read early.
    Raises UserError where `out` cannot be written to.
    """
    check_writable(out)
    problems: dict[str, str] = {}
    for row in rows:
        tell(f"{row.name}: about {row.minutes:g} minutes")
        problem = _make(row, out / row.name)
        if problem:
            problems[row.name] = problem
            tell(f"{row.name}: {problem}")
        with written(out / PAGE) as path:
            path.write_text(gallery_page(_entries(rows, out, problems)), encoding="utf-8")
    return list(problems)


def command_line(command: str, folder: Path) -> list[str]:
    """The words of a row's command, with its folder."""
    return [word.replace("{out}", str(folder)) for word in shlex.split(command)]


def _make(row: Row, folder: Path) -> str:
    """Run the commands of a row. Returns what went wrong, or an empty text."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOG).open("w", encoding="utf-8") as log:
        for command in row.commands:
            words = command_line(command, folder)
            log.write(f"$ {shlex.join(['foveate', *words])}\n")
            log.flush()
            process = [sys.executable, "-m", "foveate", *words]
            done = subprocess.run(process, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
            if done.returncode:
                return f"`foveate {words[0]}` ended with status {done.returncode}; {folder / LOG} has its output"
    missing = [name for name in row.results if not (folder / name).is_file()]
    return f"{missing[0]} was not written; {folder / LOG} has the output" if missing else ""


def _entries(asked: Iterable[Row], out: Path, problems: dict[str, str]) -> list[Entry]:
    """What the page shows: rows that were asked for or made before, in the order of the list."""
    wanted, entries = {row.name for row in asked}, []
    for row in ROWS:
        files = [f"{row.name}/{name}" for name in row.results if (out / row.name / name).is_file()]
        if files or row.name in wanted:
            commands = [shlex.join(["foveate", *command_line(each, out / row.name)]) for each in row.commands]
            entries.append(Entry(row.name, row.shows, commands, files, row.page, problems.get(row.name, "")))
    return entries
