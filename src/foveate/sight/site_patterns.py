"""Values for sites that are given by patterns of site names, such as {"encoder*": ..., "*cross": ...}."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import TypeVar

from foveate.errors import UserError

Value = TypeVar("Value")


def value_for(name: str, values: Mapping[str, Value]) -> Value | None:
    """The value of the first pattern that matches a site's name; None if none does."""
    return next((value for pattern, value in values.items() if fnmatchcase(name, pattern)), None)


def check_patterns(patterns: Iterable[str], names: Iterable[str], what: str) -> None:
    """Raise UserError for a pattern that matches no site: it is probably misspelt, and its value would be ignored."""
    names = list(names)
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise UserError(f"{what} are given for '{pattern}', which matches none of the sites: {', '.join(names)}")
