"""Tasks: one page each, which brings data, model, training, decoding and sight together.

The rows are read from the text of the pages; a page is imported when its task is asked for.
"""

import ast
import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from foveate.errors import unknown
from foveate.lazy import import_late
from foveate.models import text

if TYPE_CHECKING:
    from foveate.tasks.learning import train as train
    from foveate.tasks.loading import load as load
    from foveate.tasks.loading import opener as opener
    from foveate.tasks.task import Task

__getattr__ = import_late(
    __name__,
    {"load": "foveate.tasks.loading", "opener": "foveate.tasks.loading", "train": "foveate.tasks.learning"},
)


@dataclass(frozen=True)
class TaskRow:
    """Where a task is, and what it trains."""

    module: str
    families: tuple[str, ...]
    """The families of models that can be trained so."""
    head: str | None = None
    """What they predict, where a family's `head` chooses."""
    also: str = ""
    """What the field calls the task, where it has another name."""


def _rows() -> Iterator[tuple[str, TaskRow]]:
    """The rows of the pages that have a `TASK`, whose fields are read without running the page."""
    for path in sorted(Path(__file__).parent.glob("*.py")):
        page = path.read_text(encoding="utf-8")
        if "\nTASK = Task(" not in page:
            continue
        call = next(
            node.value
            for node in ast.parse(page).body
            if isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Call)
            and ast.unparse(node.targets[0]) == "TASK"
        )
        values = {word.arg: word.value for word in call.keywords}
        fields = {name: ast.literal_eval(values[name]) for name in ("head", "also") if name in values}
        families = tuple(_families(values["families"]))
        yield ast.literal_eval(values["name"]), TaskRow(f"{__name__}.{path.stem}", families, **fields)


def _families(node: ast.expr) -> Iterator[str]:
    """The names in a tuple, and those of a group of families that stands in it or for it, such as CAUSAL."""
    if isinstance(node, ast.Tuple):
        for part in node.elts:
            yield from _families(part.value if isinstance(part, ast.Starred) else part)
    elif isinstance(node, ast.Name):
        yield from getattr(text, node.id)
    else:
        yield ast.literal_eval(node)


ORDER = (
    *("translate", "classify", "tag", "embed", "match", "pair", "autoencode", "cloze", "language", "ask", "answer"),
    *("caption", "draw", "match-image", "gan", "classify-image", "complete-image", "read", "walk", "control"),
    *("classify-sound", "transcribe", "speak", "reward", "dpo", "rlhf", "detect"),
)
"""The order in which tasks are listed."""

TASKS: dict[str, TaskRow] = dict(sorted(_rows(), key=lambda row: (*ORDER, row[0]).index(row[0])))
"""The row of each task."""


def find_task(name: str) -> "Task":
    """A task by its name. Raises UserError for one that does not exist."""
    if name not in TASKS:
        raise unknown("task", name, TASKS)
    task: Task = importlib.import_module(TASKS[name].module).TASK
    return task
