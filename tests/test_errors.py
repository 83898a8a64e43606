"""Checks of settings that are names."""

from dataclasses import dataclass
from typing import Literal

import pytest

from foveate.cli import main
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


@pytest.mark.parametrize("name", ["x" * 5000, "a b " * 1250, "\x1b" * 5000])
def test_what_a_mistake_quotes_is_shortened(name: str) -> None:
    told = str(UserError(f"maps.json: there is no map '{name}'; known: here, there"))
    assert len(told) < 500
    assert told.startswith("maps.json: there is no map '")
    assert told.endswith("'; known: here, there")


def test_a_command_ends_with_a_line_of_bounded_length(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["\x1b" * 5000])
    told = capsys.readouterr().err
    assert told.startswith("foveate: unknown command '\\x1b")
    assert len(told) < 700  # the commands that there are stand in it too
