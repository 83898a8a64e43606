"""What was measured once is not measured again, nor taken for something else."""

from pathlib import Path

import pytest
from torch import nn

from foveate.errors import UserError
from foveate.experiments.comparison import conditions
from foveate.experiments.measurement_cache import conditions_note, measure_once, training_conditions


def test_measured_once(tmp_path: Path) -> None:
    calls, path = [], tmp_path / "a" / "row.json"
    for _ in range(2):
        assert measure_once(path, {"steps": 3}, lambda: calls.append(1) or {"bleu": 2.5}) == {"bleu": 2.5}
    assert len(calls) == 1


def test_another_measurement_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "row.json"
    measure_once(path, {"steps": 3, "width": 5}, lambda: 1)
    with pytest.raises(UserError, match=f"^{tmp_path} was started with steps 3, not 7: remove it or choose"):
        measure_once(path, {"steps": 7, "width": 5}, lambda: 1)


def test_one_that_was_broken_off_goes_on_as_the_same_alone(tmp_path: Path) -> None:
    def broken_off() -> int:
        raise KeyboardInterrupt

    path = tmp_path / "row.json"
    with pytest.raises(KeyboardInterrupt):
        measure_once(path, {"joined": 2}, broken_off)
    with pytest.raises(UserError, match="was started with joined 2, not 3"):
        measure_once(path, {"joined": 3}, lambda: 1)
    assert measure_once(path, {"joined": 2}, lambda: 5) == 5


def test_the_conditions_of_each_measurement_are_kept_and_told(tmp_path: Path) -> None:
    paths = {name: tmp_path / f"{name}.json" for name in ("dot", "hard", "none")}
    measure_once(paths["dot"], {}, lambda: 1, lambda: "torch 7")
    measure_once(paths["hard"], {}, lambda: 1, lambda: "torch 7")
    assert conditions_note({name: paths[name] for name in ("dot", "hard")}) == ["Trained with torch 7."]
    measure_once(paths["dot"], {}, lambda: 2, lambda: "torch 8")
    measure_once(paths["none"], {}, lambda: 2, lambda: "torch 8")
    assert conditions_note(paths) == ["Trained with torch 7: dot, hard.", "Trained with torch 8: none."]
    paths["hard"].write_text('{"of": {}, "measured": 1}')
    assert "Trained with an unknown environment: hard." in conditions_note(paths)


def test_what_a_model_is_trained_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foveate.training.hardware.bfloat16_is_fast", lambda: True)
    assert training_conditions(nn.Linear(128, 128), "cpu").endswith(", in bfloat16")
    assert training_conditions(nn.Linear(8, 8), "cpu") == f"{conditions()}, in float32"


def test_half_a_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "row.json"
    path.write_text('{"of": {')
    with pytest.raises(UserError, match=r"row\.json is damaged: remove it to measure again$"):
        measure_once(path, {}, lambda: 1)
