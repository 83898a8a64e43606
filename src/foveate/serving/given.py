"""Reads what a request gives: inputs, and changes of options."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

from starlette.exceptions import HTTPException
from starlette.requests import Request

from foveate.config import from_dict
from foveate.errors import UserError, show_value, unknown
from foveate.files import utf8
from foveate.forms.answers import option_names
from foveate.viewer.protocol import File, Input, InputKind
from foveate.viewer.server.requests import read_body, read_json_body

LARGEST = {"seed": 2**63 - 1, "width": 64, "n_best": 64, "samples": 64}
"""The greatest numbers of options that decide how much a request computes."""

OTHERS = 4096
"""The greatest number of any other option."""

NAME = 120
"""Characters of the name of a file."""

FILES: Mapping[InputKind, tuple[str, ...]] = {
    "image": ("image/",),
    "question": ("image/",),
    "audio": ("audio/",),
    "text": ("text/",),
}
"""Content types of bodies that are an input by themselves."""


@dataclass(frozen=True)
class Given:
    """The inputs of a request."""

    inputs: tuple[Input, ...]
    one: bool
    """Whether it asked for the answer to one input, and not for a list."""
    options: Mapping[str, Any]
    """Changes of options."""
    others: Mapping[str, Any]
    """What else the request says, for those that look."""


async def read_given(request: Request, takes: InputKind, most_bytes: int, most_inputs: int) -> Given:
    """What a request gives: JSON with `input` or `inputs`, or the bytes of one text, image or sound.

    Raises HTTPException.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind.startswith(FILES[takes]):
        data, asked = await read_body(request, most_bytes), request.query_params.get("question", "")
        found = _text(data) if takes == "text" else _file({"data": data, "question": asked}, takes)
        return Given((found,), True, {}, {})
    body = await read_json_body(request, most_bytes)
    if ("input" in body) == ("inputs" in body):
        raise HTTPException(400, "the request must have either input or inputs")
    one = "input" in body
    values = [body.pop("input")] if one else body.pop("inputs")
    if not isinstance(values, list) or not 1 <= len(values) <= most_inputs:
        raise HTTPException(400, f"inputs must be a list of 1 to {most_inputs:,}")
    options = body.pop("options", {})
    if not isinstance(options, dict):
        raise HTTPException(400, "options must be a JSON object")
    return Given(tuple(_input(value, takes) for value in values), one, options, body)


def _input(value: Any, takes: InputKind) -> Input:
    """A text, or a file as {"data": base64, "name": ..., "question": ...}."""
    if takes == "text":
        if not isinstance(value, str):
            raise HTTPException(400, f"an input must be a text, not {show_value(value)}")
        return utf8(value.encode("utf-8", "replace").decode())
    known = {"data", "name", *(["question"] if takes == "question" else [])}
    if not isinstance(value, dict) or "data" not in value or not set(value) <= known:
        raise HTTPException(400, f"an input must be an object with {', '.join(sorted(known))}: this model reads files")
    if not all(isinstance(part, str) for part in value.values()):
        raise HTTPException(400, f"{', '.join(sorted(known))} must be texts")
    try:
        return _file({**value, "data": base64.b64decode(value["data"], validate=True)}, takes)
    except (binascii.Error, ValueError):
        raise HTTPException(400, "the data of a file must be base64") from None


def _file(value: Mapping[str, Any], takes: InputKind) -> File:
    question = str(value.get("question", ""))
    if takes == "question" and not question.strip():
        raise HTTPException(400, "a question is missing: this model answers questions about images")
    return File(str(value.get("name", "input"))[:NAME], value["data"], question)


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise HTTPException(400, "the text is not UTF-8") from None


def changed_options(options: Any, changes: Mapping[str, Any]) -> Any:
    """Options with the changes of a request.

    Raises UserError for a value of another type, for a number that would take too long, and for a file: requests name
    none.
    """
    known = open_options(options)
    for name in changes:
        if name not in known:
            raise unknown("option", name, known)
    for name, value in changes.items():
        most = LARGEST.get(name, OTHERS)
        if isinstance(value, int | float) and abs(value) > most:
            raise UserError(f"{name} is {show_value(value)}, but a request may ask for {most:,} at most")
    found = from_dict(type(options), _table(options, changes), "options")
    found.check()
    return found


def open_options(options: Any) -> dict[str, Any]:
    """The options that a request may change, and their types: those that name no file."""
    kinds: dict[str, Any] = {}
    for holder in _holders(options):
        hints = get_type_hints(type(holder))
        kinds |= {part.name: hints[part.name] for part in fields(holder)}
    closed = [name for name, kind in kinds.items() if _names_file(kind) or _is_part(kind)]
    return {name: kinds[name] for name in option_names(options) if name not in closed}


def _holders(options: Any) -> list[Any]:
    inner = [getattr(options, part.name) for part in fields(options)]
    return [options, *(one for part in inner if is_dataclass(part) for one in _holders(part))]


def _names_file(kind: Any) -> bool:
    return kind is Path or any(map(_names_file, get_args(kind)))


def _is_part(kind: Any) -> bool:
    return is_dataclass(kind) or any(map(_is_part, get_args(kind)))


def _table(options: Any, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Options with changes, as a table of plain values."""
    own = {part.name: getattr(options, part.name) for part in fields(options)}
    inner = {name: value for name, value in changes.items() if name not in own}
    return {
        name: _table(value, inner) if is_dataclass(value) else changes.get(name, value) for name, value in own.items()
    }
