"""Checks of settings that are names."""

from dataclasses import dataclass
from typing import Literal

import pytest

from foveate.errors import UserError, check_literals, one_line, one_of


@dataclass
class Settings:
    norm: Literal["post", "pre"] = "post"
    width: int = 7


def test_one_of() -> None:
    one_of("norm", "pre", ("post", "pre"))
    with pytest.raises(UserError, match=r"^unknown norm 'Pre'; did you mean pre\?$"):
        one_of("norm", "Pre", ("post", "pre"))
    with pytest.raises(UserError, match=r"^unknown norm '5'; known: post, pre$"):
        one_of("norm", 5, ["pre", "post"])


@pytest.mark.usefixtures("unchecked")
def test_check_literals() -> None:
    check_literals(Settings("pre", 5))
    with pytest.raises(UserError, match="unknown norm 'Post'"):
        check_literals(Settings("Post"))  # type: ignore[arg-type]


def test_one_line() -> None:
    """Whatever parts lines somewhere, in names that a user gives: of Unix, Windows, printers and Unicode."""
    text = one_line("a\nb\r\nc\x0cd\x85e\u2028f\u2029g\x1b[2J")
    assert text == r"a\nb\r\nc\x0cd\x85e\u2028f\u2029g\x1b[2J"
    assert len(text.splitlines()) == 1


def test_a_mistake_is_no_longer_than_people_read() -> None:
    told = str(UserError(f"map.json has the place '{'x' * 9000}': give each place a name"))
    assert len(told) < 1010
    assert told.startswith("map.json has the place 'xxx")
    assert told.endswith("xxx': give each place a name")
