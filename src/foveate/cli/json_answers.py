"""What `foveate run --json` prints, whatever the task: an object for each input."""

from dataclasses import fields, is_dataclass
from typing import Any

from foveate.files import strict_json
from foveate.forms.answers import Answer, Failure


def answer_as_json(given: str, answer: Answer | Failure) -> str:
    """The input and the answer to it, in one line of JSON."""
    text = given.encode(errors="backslashreplace").decode()  # an argument may have bytes that are no text
    values = answer.json_values() or {"answer": answer.line}
    return strict_json({"input": text, **{name: _plain(value) for name, value in values.items()}})


def _plain(value: Any) -> Any:
    """A value as JSON has it: dataclasses are tables of their fields."""
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if is_dataclass(value):
        return {part.name: _plain(getattr(value, part.name)) for part in fields(value)}
    return value
