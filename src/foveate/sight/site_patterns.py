"""Values for sites that are given by patterns of site names, such as {"encoder*": ..., "*cross": ...}."""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from foveate.errors import UserError, of_kind, show_value

Value = TypeVar("Value")


def value_for(name: str, values: Mapping[str, Value]) -> Value | None:
    """The value of the first pattern that matches a site's name; None if none does."""
    return next((value for pattern, value in values.items() if fnmatchcase(name, pattern)), None)


def list_of_texts(name: str, given: Sequence[str] | str) -> list[str]:
    """One text or several, as a list. Raises UserError for anything else."""
    several = isinstance(given, Iterable) and not isinstance(given, Mapping)
    found = [given] if isinstance(given, str) else list(given) if several else []
    if not (several and all(isinstance(one, str) for one in found)):
        raise UserError(f"{name} is {show_value(given)}, but must be a text or several")
    return found


def check_patterns(patterns: Mapping[str, Any], names: Iterable[str], what: str) -> None:
    """Raise UserError for a pattern that matches no site: it is probably misspelt, and its value would be ignored."""
    of_kind(Mapping, what, patterns, "a mapping from patterns of sites")
    names = list(names)
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise UserError(f"{what} are given for '{pattern}', which matches none of the sites: {', '.join(names)}")
