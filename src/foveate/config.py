"""Configurations: dataclasses filled from tables of plain values, as JSON and TOML hold them."""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import dacite
import tyro

from foveate.errors import UserError, show_value, unknown

FromData = Annotated[int, tyro.conf.Suppress]
"""The type of a model's field that the data decides, such as a vocabulary's size: not for a user to set by a flag."""

Config = TypeVar("Config")

LARGEST = 2**63
"""No whole number in a file is as large: torch could not count to it."""


def from_dict(kind: type[Config], values: Any, where: str, others: bool = False) -> Config:
    """The dataclass `kind` (a tree of them) filled from a table of plain values; `where` names their origin in errors.

    Raises UserError on a field that does not exist, is missing or has another type, and on what is not a table. With
    `others`, fields that do not exist are left out: a file of another program's may have more than we read.
    """
    if not isinstance(values, dict):
        raise UserError(f"{where}: a table of fields was expected, not {show_value(values)}")
    if others:
        values = {part.name: values[part.name] for part in fields(kind) if part.name in values}  # type: ignore[arg-type]
    try:
        found = dacite.from_dict(kind, _tuples(values), dacite.Config(strict=not others, type_hooks=HOOKS))
    except dacite.UnexpectedDataError as error:
        raise _unknown_field(min(error.keys), kind, where) from None
    except dacite.WrongTypeError as error:
        needed = _describe_type(error.field_type)
        given = show_value(_take_given(values, error.field_path or "", error.value))
        raise UserError(f"{where}: {error.field_path} is {given}, but must be {needed}") from None
    except dacite.DaciteError as error:
        raise UserError(f"{where}: {error}") from None
    except UserError:
        raise
    except OverflowError:
        raise UserError(f"{where}: a number is too large") from None
    except (TypeError, ValueError):  # dacite makes a tuple of what it finds, without looking
        raise UserError(f"{where}: a list or a single value was expected, not a table") from None
    wrong = _wrong_number(kind, found)
    if wrong is not None:
        name, value, wanted = wrong
        due = _describe_type(wanted) if isinstance(value, bool) else f"below {LARGEST:,}"
        raise UserError(f"{where}: {name.lstrip('.')} is {show_value(value)}, but must be {due}")
    return found


def _wrong_number(kind: Any, value: Any, name: str = "") -> tuple[str, Any, Any] | None:
    """The first true or false that stands for a number, or a number that is too large: its place, and the type that is
    due. To Python, and so to dacite, true is the whole number 1."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _wrong_number(parts[0], value, name)
    if origin in (Union, UnionType):
        ways = [_wrong_number(part, value, name) for part in parts if _is_instance(value, part)]
        return ways[0] if ways and None not in ways else None
    if is_dataclass(value) and isinstance(kind, type):
        hints = _hints(kind)
        inside = [
            (hints.get(part.name, Any), getattr(value, part.name), f"{name}.{part.name}") for part in fields(value)
        ]
    elif isinstance(value, Mapping) and len(parts) == 2:
        inside = [(parts[1], part, f"{name}.{key}") for key, part in value.items()]
    elif isinstance(value, list | tuple) and parts:
        kinds = parts if len(parts) == len(value) and ... not in parts else [parts[0]] * len(value)
        inside = [(one, part, name) for one, part in zip(kinds, value, strict=True)]
    elif kind in (int, float) and (isinstance(value, bool) or (isinstance(value, int) and abs(value) >= LARGEST)):
        return name, value, kind
    else:
        return None
    return next((found for one in inside if (found := _wrong_number(*one)) is not None), None)


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _is_instance(value: Any, kind: Any) -> bool:
    """Returns whether a value may be one of a union's: the outer type alone is looked at."""
    kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    kind = get_origin(kind) or kind
    return not isinstance(kind, type) or isinstance(value, kind)


def _tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _tuples(part) for key, part in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _take_given(values: Any, path: str, default: Any) -> Any:
    """The text at a path such as "training.steps", which dacite may have begun to take apart; else the default."""
    for name in path.split("."):
        values = values.get(name) if isinstance(values, dict) else None
    return values if isinstance(values, str) else default


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _path(value: Any) -> Any:
    return Path(value) if isinstance(value, str) else value


def _paths(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


HOOKS: dict[type[Any], Callable[[Any], Any]] = {float: _number, Path: _path, tuple[Path, ...]: _paths}
"""JSON and TOML know no tuples and no paths, and write 1 for 1.0; one file needs no list."""


_TYPES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", Path: "a path"}
"""What values of a type are called in errors."""


def _describe_type(kind: Any) -> str:
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _describe_type(parts[0])
    if origin is Literal:
        return " or ".join(map(repr, parts))
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(_describe_type(part) for part in parts if part is not NoneType))
    outer = origin or kind
    if outer in _TYPES or not isinstance(outer, type):
        return _TYPES.get(outer, str(kind))
    if issubclass(outer, list | tuple):
        return "a list"
    return "a table of fields" if is_dataclass(outer) or issubclass(outer, Mapping) else outer.__name__


def _unknown_field(name: str, kind: Any, where: str) -> UserError:
    """The error for a field that does not exist, with the nearest by their own names: what table each is in, is easily
    forgotten."""
    known = _field_names(kind)
    own = {field: field.split(".")[-1] for field in known}
    names = set(own.values())
    near = [name] if name in names else difflib.get_close_matches(name, sorted(names), n=3, cutoff=0.5)
    meant = sorted((field for field in known if own[field] in near), key=lambda field: near.index(own[field]))
    if not meant:
        return unknown(f"field in {where}", name, known)
    return UserError(f"unknown field in {where} '{name}'; did you mean {' or '.join(meant[:3])}?")


def _field_names(kind: Any) -> list[str]:
    """The fields of a dataclass and of the dataclasses in it that a user may set, like "width" and "training.steps"."""
    names, kinds, hints = [], get_type_hints(kind), _hints(kind)
    for name in (part.name for part in fields(kind)):
        if tyro.conf.Suppress in getattr(hints[name], "__metadata__", ()):
            continue
        inside = _field_names(kinds[name]) if is_dataclass(kinds[name]) else ()
        names += [name, *(f"{name}.{inner}" for inner in inside)]
    return names
