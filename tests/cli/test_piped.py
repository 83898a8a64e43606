"""Lines of a pipe: answered as they come, together where they come faster."""

import threading
from collections.abc import Iterator

import pytest

from foveate.cli.piped import groups_as_they_come
from foveate.errors import UserError


def test_a_line_is_given_before_the_next_one_comes() -> None:
    answered = threading.Event()

    def lines() -> Iterator[str]:
        yield "first"
        assert answered.wait(10)
        yield "second"

    found = []
    for group in groups_as_they_come(lines(), 7):
        found.append(group)
        answered.set()
    assert found == [["first"], ["second"]]


def test_lines_that_wait_are_given_together() -> None:
    groups = list(groups_as_they_come(iter(map(str, range(23))), 5))
    assert [line for group in groups for line in group] == [*map(str, range(23))]
    assert max(map(len, groups)) <= 5


def test_a_mistake_is_told_after_the_lines_before_it() -> None:
    def lines() -> Iterator[str]:
        yield "first"
        raise UserError("line 2 is damaged")

    groups = groups_as_they_come(lines(), 5)
    assert next(groups) == ["first"]
    with pytest.raises(UserError, match="line 2 is damaged"):
        next(groups)


def test_no_lines() -> None:
    assert list(groups_as_they_come(iter(()), 5)) == []
