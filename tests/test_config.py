"""Dataclasses from tables of plain values."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from foveate.config import from_dict
from foveate.errors import UserError


@dataclass
class Inner:
    width: int = 7


@dataclass
class Outer:
    steps: int | None = None
    share: float = 0.5
    flag: bool | int = False
    sizes: tuple[int, ...] = ()
    mean: tuple[float, float] = (1.0, 2.0)
    counts: dict[str, float] = field(default_factory=dict)
    inner: Inner = field(default_factory=Inner)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"steps": True}, "here: steps is True, but must be a whole number"),
        ({"share": False}, "here: share is False, but must be a number"),
        ({"sizes": [3, True]}, "here: sizes is True, but must be a whole number"),
        ({"mean": [True, 1]}, "here: mean is True, but must be a number"),
        ({"mean": [1, 2, 3]}, "here: mean is .*, but must be"),
        ({"counts": {"a": True}}, "here: counts.a is True, but must be a number"),
        ({"inner": {"width": True}}, "here: inner.width is True, but must be a whole number"),
        ({"inner": {"width": 10**400}}, "here: inner.width is a number of more than 30 digits, but must be below"),
        ({"steps": "x" * 999}, r"here: steps is .x{59}…, but must be a whole number"),
    ],
)
def test_what_is_no_number(values: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        from_dict(Outer, values, "here")


def test_true_where_it_may_be() -> None:
    assert from_dict(Outer, {"flag": True, "steps": None}, "here").flag is True


def test_fields_of_others() -> None:
    assert from_dict(Outer, {"steps": 3, "theirs": [[]]}, "here", others=True) == Outer(3)
    with pytest.raises(UserError, match="unknown field in here 'theirs'"):
        from_dict(Outer, {"theirs": 1}, "here")
