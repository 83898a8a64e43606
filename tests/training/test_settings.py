"""Settings, how far training is, and learning rates computed by hand."""

from typing import Any

import pytest
import torch

from foveate.config import from_dict
from foveate.errors import UserError
from foveate.training import CrossEntropy, hardware
from foveate.training.progress import Progress, learning_rate
from foveate.training.settings import Training


def rate(step: int, **settings: object) -> float:
    """The learning rate of step number `step`."""
    return learning_rate(Training(**settings), Progress(step=step - 1))


def test_warm_up_is_a_line_through_the_origin_that_ends_at_the_peak():
    assert rate(1, learning_rate=0.6, warmup=3) == pytest.approx(0.2)
    assert rate(2, learning_rate=0.6, warmup=3) == pytest.approx(0.4)
    assert rate(3, learning_rate=0.6, warmup=3) == pytest.approx(0.6)


def test_inverse_square_root():
    assert rate(12, learning_rate=0.6, warmup=3) == pytest.approx(0.3)
    assert rate(27, learning_rate=0.6, warmup=3) == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("schedule", "expected"), [("constant", 0.6), ("linear", 0.45), ("cosine", 0.3 * (1 + 0.5**0.5))]
)
def test_after_a_quarter_of_the_steps(schedule: str, expected: float):
    assert rate(11, learning_rate=0.6, warmup=3, schedule=schedule, steps=40) == pytest.approx(expected, rel=1e-6)


def test_no_warm_up():
    assert rate(1, learning_rate=0.6, warmup=0, schedule="constant") == 0.6


def test_linear_reaches_zero_at_the_limit_whichever_it_is():
    by_time = Training(schedule="linear", learning_rate=0.5, warmup=1, minutes=2.0)
    assert learning_rate(by_time, Progress(step=7, seconds=90.0)) == pytest.approx(0.125)
    by_epoch = Training(schedule="linear", learning_rate=0.5, warmup=1, epochs=5)
    assert learning_rate(by_epoch, Progress(step=7, epoch=1, position=7, epoch_length=14)) == pytest.approx(0.35)


def test_done_is_the_nearest_limit():
    settings = Training(steps=100, epochs=10, minutes=5.0)
    assert Progress(step=20, epoch=3, seconds=30.0).done(settings) == pytest.approx(0.3)
    assert Progress(step=20, epoch=1, seconds=120.0).done(settings) == pytest.approx(0.4)
    assert Progress(step=170).done(settings) == 1.0


def test_without_a_limit_there_are_ten_thousand_steps_and_with_one_only_that():
    assert Training().last_step == 10_000
    assert Training(epochs=3).last_step is None
    assert Training(epochs=3, steps=7).last_step == 7


def test_defaults_pass_and_nonsense_is_named():
    Training().check()
    for field, value in {
        "accumulate": 0,
        "steps": 0,
        "minutes": 0.0,
        "clip": -1.0,
        "warmup": -1,
        "patience": 0,
    }.items():
        with pytest.raises(UserError, match=f"^{field} is {value}, but must be"):
            Training(**{field: value}).check()
    with pytest.raises(UserError, match=r"betas is 1.0, but must be at least 0 and below 1"):
        Training(betas=(0.9, 1.0)).check()
    with pytest.raises(UserError, match="label_smoothing is 1"):
        CrossEntropy(label_smoothing=1.0).check()
    with pytest.raises(UserError, match=r"entropy_bonus is -1, but must be at least 0"):
        CrossEntropy(entropy_bonus=-1).check()


@pytest.mark.parametrize(
    ("name", "value", "known"), [("precision", "bf16", "bfloat16"), ("schedule", "cos", "cosine"), ("parallel", "", "")]
)
def test_a_value_that_is_none_of_a_few_is_named(name: str, value: str, known: str):
    settings = Training()
    setattr(settings, name, value)  # tests let none be made with it
    with pytest.raises(UserError, match=f"^unknown {name} '{value}'; .*{known}"):
        settings.check()


def test_settings_from_plain_values():
    assert from_dict(Training, {"betas": [0.8, 0.95], "minutes": 3}, "x.toml") == Training(
        betas=(0.8, 0.95), minutes=3.0
    )
    with pytest.raises(UserError, match="did you mean learning_rate"):
        from_dict(Training, {"learning_rat": 1.0}, "x.toml")


def test_limits_may_change_when_resuming_and_the_rest_may_not():
    assert Training(steps=3, minutes=1.0, patience=2).fixed() == Training().fixed()
    assert Training(seed=3).fixed() != Training().fixed()


@pytest.mark.parametrize(
    ("settings", "slow", "expected"),
    [
        ({"workers": 3}, False, 3),
        ({"workers": 0}, True, 0),
        ({}, False, 0),
        ({"threads": 5}, True, 3),
        ({"threads": 9}, True, 0),
        ({"device": "meta:0"}, True, 7),
    ],
)
def test_free_processors_prepare_batches_where_that_is_slow(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], slow: bool, expected: int
) -> None:
    """Of eight processors; a training elsewhere than on the CPU needs one."""
    monkeypatch.setattr(hardware, "_processors", lambda: 8)
    monkeypatch.setattr(hardware, "choose_device", lambda name: torch.device("cpu" if name == "auto" else "meta"))
    assert hardware.choose_workers(Training(**settings), slow) == expected


def test_workers_below_none() -> None:
    with pytest.raises(UserError, match="workers is -1, but must be at least 0"):
        Training(workers=-1).check()
