"""`--data hub:NAME`: which form of text each task reads from a data set of the hub."""

from collections.abc import Sequence
from pathlib import Path

from foveate.data.sources.hub import is_hub_name
from foveate.data.sources.hub_tables import Form, hub_text
from foveate.data.sources.source import to_stderr
from foveate.data.table import ANSWER, BETTER, CONTEXT, FIRST, LABEL, QUESTION, SECOND, WORSE, Column
from foveate.errors import UserError

FORMS: dict[str, Form] = {
    "classify": "labelled",
    "translate": "parallel",
    "embed": "alike",
    "match": "parallel",
    "tag": "tagged",
    "language": "prose",
    "cloze": "prose",
    "autoencode": "prose",
    "pair": "rows",
    "ask": "rows",
    "dpo": "rows",
    "reward": "rows",
    "rlhf": "prose",
}
"""The tasks that take a data set of the hub, and the form of their text."""

TITLES: dict[str, tuple[Column, ...]] = {
    "pair": (LABEL, FIRST, SECOND),
    "ask": (CONTEXT, QUESTION, ANSWER),
    "dpo": (BETTER, WORSE),
    "reward": (BETTER, WORSE),
}
"""The columns of rows, in the order in which hub:NAME:SPLIT:COLUMN,COLUMN names them."""


def local_paths(paths: Sequence[Path], task: str | None, languages: tuple[str, str] | None = None) -> tuple[Path, ...]:
    """The paths, those that begin with "hub:" as files of text in the cache.

    Raises UserError, in one line, for a task that reads no text, and as `hub_text` does.
    """
    if any(is_hub_name(path) for path in paths) and task not in FORMS:
        raise UserError(f"--data hub:NAME is for {', '.join(FORMS)}, not for {task or 'this model'}")
    titles = tuple(column.name for column in TITLES.get(str(task), ()))
    return tuple(
        hub_text(str(path), FORMS[str(task)], languages, to_stderr, titles) if is_hub_name(path) else path
        for path in paths
    )
