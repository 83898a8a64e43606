"""Configurations: dataclasses filled from tables of plain values, as JSON and TOML hold them."""

import difflib
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import dacite
import tyro

from foveate.errors import UserError, unknown

FromData = Annotated[int, tyro.conf.Suppress]
"""The type of a model's field that the data decides, such as a vocabulary's size: not for a user to set by a flag."""

Config = TypeVar("Config")


def from_dict(kind: type[Config], values: Any, where: str) -> Config:
    """The dataclass `kind` (a tree of them) filled from a table of plain values; `where` names their origin in errors.

    Raises UserError on a field that does not exist, is missing or has another type, and on what is no table.
    """
    if not isinstance(values, dict):
        raise UserError(f"{where}: {values!r} stands where a table of fields must be")
    try:
        return dacite.from_dict(kind, _tuples(values), dacite.Config(strict=True, type_hooks=HOOKS))
    except dacite.UnexpectedDataError as error:
        raise _unknown_field(min(error.keys), kind, where) from None
    except dacite.WrongTypeError as error:
        needed = _told(error.field_type)
        raise UserError(f"{where}: {error.field_path} is {error.value!r}, but must be {needed}") from None
    except dacite.DaciteError as error:
        raise UserError(f"{where}: {error}") from None
    except UserError:
        raise
    except OverflowError:
        raise UserError(f"{where}: a number is larger than any that can be meant") from None
    except (TypeError, ValueError):  # dacite makes a tuple of what it finds, without looking
        raise UserError(f"{where}: a table stands where a list or a single value must be") from None


def _tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _tuples(part) for key, part in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _path(value: Any) -> Any:
    return Path(value) if isinstance(value, str) else value


def _paths(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


HOOKS: dict[type[Any], Callable[[Any], Any]] = {float: _number, Path: _path, tuple[Path, ...]: _paths}
"""JSON and TOML know no tuples and no paths, and write 1 for 1.0; one file needs no list."""


def _told(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return " or ".join(map(repr, get_args(kind)))
    return kind.__name__ if isinstance(kind, type) else str(kind)


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
    """The fields of a dataclass and of the dataclasses in it, like "width" and "training.steps"."""
    names, kinds = [], get_type_hints(kind)
    for name in (part.name for part in fields(kind)):
        inside = _field_names(kinds[name]) if is_dataclass(kinds[name]) else ()
        names += [name, *(f"{name}.{inner}" for inner in inside)]
    return names
