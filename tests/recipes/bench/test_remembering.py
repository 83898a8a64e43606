"""What was measured once is not measured again, nor taken for something else."""

from pathlib import Path

import pytest

from foveate.errors import UserError
from foveate.recipes.bench.remembering import remembered


def test_measured_once(tmp_path: Path) -> None:
    calls, path = [], tmp_path / "a" / "row.json"
    for _ in range(2):
        assert remembered(path, {"steps": 3}, lambda: calls.append(1) or {"bleu": 2.5}) == {"bleu": 2.5}
    assert len(calls) == 1


def test_another_measurement_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "row.json"
    remembered(path, {"steps": 3, "width": 5}, lambda: 1)
    with pytest.raises(UserError, match=f"^{tmp_path} was begun with another steps, 3 and not 7; remove it or choose"):
        remembered(path, {"steps": 7, "width": 5}, lambda: 1)


def test_one_that_was_broken_off_goes_on_as_the_same_alone(tmp_path: Path) -> None:
    def broken_off() -> int:
        raise KeyboardInterrupt

    path = tmp_path / "row.json"
    with pytest.raises(KeyboardInterrupt):
        remembered(path, {"joined": 2}, broken_off)
    with pytest.raises(UserError, match="was begun with another joined, 2 and not 3"):
        remembered(path, {"joined": 3}, lambda: 1)
    assert remembered(path, {"joined": 2}, lambda: 5) == 5


def test_half_a_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "row.json"
    path.write_text('{"of": {')
    with pytest.raises(UserError, match=r"row\.json is damaged; remove it, and it is measured again$"):
        remembered(path, {}, lambda: 1)
