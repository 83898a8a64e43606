"""Tables for people: each heading and each figure can be read, however narrow the terminal."""

from io import StringIO

import pytest

from foveate.console import fitting, plain_console, print_table

HEADINGS = ["answers by", "accuracy", "new relation", "attention in box", "uniform in box", "loss", "set [b]"]
ROWS = [
    ["the model", "91.74", "62.04", "56.28", "8.04", "0.31", "a"],
    ["a name that is longer than most", "15.74", *"-----"],
]


@pytest.mark.parametrize("width", [30, 40, 60, 80, 200])
def test_a_wide_table_is_printed_in_parts_that_fit(width: int) -> None:
    parts = fitting(HEADINGS, ROWS, width)
    assert [place for part in parts for place in part[1:]] == [*range(1, len(HEADINGS))]
    assert all(part[0] == 0 for part in parts)
    file = StringIO()
    print_table(plain_console(file=file, width=width), HEADINGS, ROWS, "a title")
    written = file.getvalue()
    assert max(map(len, written.splitlines())) <= width
    words = {word for heading in HEADINGS for word in heading.split()} | set(ROWS[0][1:])
    assert not [word for word in words if word not in written]
    assert "\N{HORIZONTAL ELLIPSIS}" not in written
    assert written.count("a title") == 1


def test_one_table_where_all_fits() -> None:
    assert fitting(HEADINGS, ROWS, 400) == [[*range(len(HEADINGS))]]


def test_a_table_without_rows_has_headings() -> None:
    file = StringIO()
    print_table(plain_console(file=file, width=40), ["one", "two"], [])
    assert "one" in file.getvalue()


def test_a_path_as_a_heading_leaves_room_for_figures() -> None:
    file = StringIO()
    print_table(plain_console(file=file, width=80), [f"/{'folder/' * 20}", "1 x h100"], [["parameters", "124,439,808"]])
    assert " 124,439,808 " in file.getvalue()
    assert " parameters " in file.getvalue()
