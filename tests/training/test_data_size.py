"""Settings that follow the size of the data."""

from dataclasses import replace

import pytest

from foveate.training import Training
from foveate.training.data_size import follow_size
from foveate.training.progress import Progress, learning_rate


class Counted:
    """Batches that are only counted; smaller ones are more."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __length_hint__(self) -> int:
        return self.count

    def resized(self, share: float) -> "Counted":
        return Counted(round(self.count / share))


def test_few_data_are_many_small_batches_and_some_epochs() -> None:
    settings, batches, lines = follow_size(Training(), Counted(9))
    assert batches.count == 40
    assert (settings.epochs, settings.schedule, settings.validate_every) == (60, "cosine", 240)
    assert lines == [
        "few data: 40 small batches an epoch, not 9; --steps or --epochs keep these",
        "training for 60 epochs of 40 steps, validated every 240 steps",
    ]


def test_batches_do_not_become_too_small() -> None:
    assert follow_size(Training(), Counted(2))[1].count == 16


def test_a_task_with_a_usual_number_of_epochs_takes_more_of_few_data() -> None:
    assert follow_size(Training(usual_epochs=5), Counted(50))[0].epochs == 20
    assert follow_size(Training(usual_epochs=5), Counted(5000))[0].epochs == 5
    assert follow_size(Training(usual_epochs=3, least_steps=200), Counted(10))[0].epochs == 5
    assert follow_size(Training(usual_epochs=3, least_steps=200), Counted(100))[0].epochs == 3


def test_many_data_are_trained_on_as_ever() -> None:
    settings, batches, lines = follow_size(Training(), Counted(5000))
    assert (settings.last_step, settings.schedule, batches.count, lines) == (10_000, "inverse-sqrt", 5000, [])


@pytest.mark.parametrize("given", [{"steps": 200}, {"epochs": 20}])
def test_what_is_given_is_kept(given: dict[str, int]) -> None:
    settings, batches, lines = follow_size(Training(**given), Counted(9))
    assert settings == replace(Training(**given), schedule="inverse-sqrt")
    assert (batches.count, lines) == (9, [])


def test_a_size_of_batches_that_is_given_is_kept() -> None:
    assert follow_size(Training(keep_batches=True), Counted(9))[1].count == 9


def test_a_limit_inside_the_warmup_is_told() -> None:
    told = ["the training ends after 180 steps, inside its warm-up of 500: lower --warmup, or leave it out"]
    assert follow_size(Training(epochs=20, warmup=500), Counted(9))[2] == told
    assert follow_size(Training(epochs=20, warmup=100), Counted(9))[2] == []


def test_without_a_number_the_warmup_is_a_tenth_at_most() -> None:
    def rate(step: int, **changes: object) -> float:
        settings = Training(learning_rate=0.5, schedule="constant", **changes)  # type: ignore[arg-type]
        return learning_rate(settings, Progress(step=step))

    assert rate(49, steps=1000) == pytest.approx(0.25, rel=0.03)
    assert rate(100, steps=1000) == 0.5
    assert rate(100, steps=100_000) == pytest.approx(0.101)
    assert rate(100, steps=1000, warmup=404) == pytest.approx(0.125)
