"""What was measured once is not measured again, nor taken for something else."""

from pathlib import Path

import pytest

from foveate.contracts import UserError
from foveate.recipes.bench.remembering import remembered


def test_measured_once(tmp_path: Path) -> None:
    calls, path = [], tmp_path / "a" / "row.json"
    for _ in range(2):
        assert remembered(path, {"steps": 3}, lambda: calls.append(1) or {"bleu": 2.5}) == {"bleu": 2.5}
    assert len(calls) == 1


def test_another_measurement_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "row.json"
    remembered(path, {"steps": 3, "width": 5}, lambda: 1)
    with pytest.raises(
        UserError, match=f"^{tmp_path} was measured with another steps, 3 and not 7; remove it or choose"
    ):
        remembered(path, {"steps": 7, "width": 5}, lambda: 1)


def test_half_a_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "row.json"
    path.write_text('{"of": {')
    with pytest.raises(UserError, match=r"row\.json is damaged; remove it, and it is measured again$"):
        remembered(path, {}, lambda: 1)
