"""`--data hub:NAME`: which form of text each task reads from a data set of the hub."""

from collections.abc import Sequence
from pathlib import Path

from foveate.data.sources.hub import is_hub_name
from foveate.data.sources.hub_tables import Form, hub_text
from foveate.data.sources.source import to_stderr
from foveate.errors import UserError

FORMS: dict[str, Form] = {
    "classify": "labelled",
    "translate": "parallel",
    "embed": "parallel",
    "tag": "tagged",
    "language": "prose",
    "cloze": "prose",
    "autoencode": "prose",
}
"""The tasks that take a data set of the hub, and the form of their text."""


def local_paths(paths: Sequence[Path], task: str | None, languages: tuple[str, str] | None = None) -> tuple[Path, ...]:
    """The paths, those that begin with "hub:" as files of text in the cache.

    Raises UserError, in one line, for a task that reads no text, and as `hub_text` does.
    """
    if any(is_hub_name(path) for path in paths) and task not in FORMS:
        raise UserError(f"--data hub:NAME is for {', '.join(FORMS)}, not for {task or 'this model'}")
    return tuple(
        hub_text(str(path), FORMS[str(task)], languages, to_stderr) if is_hub_name(path) else path for path in paths
    )
