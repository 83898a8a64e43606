"""Curves of trainings."""

from foveate.viewer.curves import draw_several


def test_steps_are_whole_numbers() -> None:
    """Other places stay as they are."""
    figure = draw_several({"loss": {"a": ([3, 6], [1, 2])}, "rate": {"a": ([0.5, 1.5], [1, 2])}}, "step")
    steps, others = ([float(tick).is_integer() for tick in axes.get_xticks()] for axes in figure.axes)
    assert all(steps)
    assert not all(others)
