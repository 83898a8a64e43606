"""What `foveate run --json` prints, whatever the task: an object for each input."""

from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import Any

from foveate.files import strict_json
from foveate.forms.answers import Answer, Failure


def answer_as_json(given: str, prediction: Answer | Failure) -> str:
    """The input and the answer to it, in one line of JSON.

    An answer with `json_values()`, a table, decides itself. Of others it is all fields that are texts, numbers, or
    lists and tables of these; tensors are left out.
    """
    own = getattr(prediction, "json_values", None)
    values = _plain_fields(prediction) if own is None else own()
    text = given.encode(errors="backslashreplace").decode()  # an argument may have bytes that are no text
    return strict_json({"input": text, **(values or {"answer": prediction.line})})


def _plain_fields(value: Any) -> dict[str, Any]:
    kept = {}
    for one in fields(value) if is_dataclass(value) else ():
        with suppress(TypeError):
            kept[one.name] = _plain(getattr(value, one.name))
    return kept


def _plain(value: Any) -> Any:
    """A value as JSON has it. Raises TypeError for what is neither text nor number, nor made of these."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if is_dataclass(value):
        return _plain_fields(value)
    raise TypeError(type(value).__name__)
