"""Points of feature maps over a picture, in a real browser."""

from collections.abc import Callable
from typing import Any

import numpy as np
from browsing import painted, settled
from demo_pages import points_sight

from foveate.viewer.document import Document

Opener = Callable[..., Any]

CIRCLE, SQUARE = (0x56, 0xB4, 0xE9), (0xF5, 0xA2, 0x5D)
"""Colours of the marks of the first and of the second map."""


def near(canvas: np.ndarray, x: float, y: float, colour: tuple[int, int, int]) -> bool:
    """Whether a canvas has about this colour near a point, given as shares of its width and height."""
    high, wide = canvas.shape[:2]
    row, column = int(y * high), int(x * wide)
    part = canvas[max(0, row - 6) : row + 7, max(0, column - 6) : column + 7, :3].astype(int)
    return bool((np.abs(part - colour).max(-1) < 25).any())


def test_points_are_drawn_where_they_are(opened: Opener, documents: dict[str, Document]) -> None:
    """The heaviest points of each map have the colour of the map, at the height of their query."""
    tab = opened("points", "#0/0")
    panel = documents["points"].sites[0]
    assert panel.points is not None
    np.testing.assert_allclose(panel.points.places[0, 2, :, 0], np.linspace(0.1, 0.9, 6), atol=1e-4)
    for query in (0, 3):
        for _ in range(query):
            tab.click("role=button[name='Next query']")
        settled(tab)
        drawn = painted(tab, ".picture-weights")
        x, y = panel.points.places[0, query, 2]
        assert near(drawn, x, y, CIRCLE)
        x, y = panel.points.places[0, query, 5]
        assert near(drawn, x, y, SQUARE)
        assert not near(drawn, x, (y + 0.5) % 1, SQUARE)
    told = tab.inner_text(".point-legend")
    assert "map 1 (8 × 8)" in told
    assert "map 2 (4 × 4)" in told
    assert "Outside" not in told


def test_points_outside_are_told_and_the_sum_is_behind_a_button(opened: Opener, documents: dict[str, Document]) -> None:
    tab = opened("points", "#0/1")
    settled(tab)
    weights = points_sight()[""].points().weights[0, 1, 0]
    outside = float(weights[[3, 4, 5]].sum())
    assert f"Outside of the picture, where nothing is read: {outside:.3f}" in tab.inner_text(".point-legend")
    with_points = painted(tab, ".picture-weights")
    tab.click(".stepper >> text=Points")
    settled(tab)
    assert not tab.locator(".point-legend").is_visible()
    without = painted(tab, ".picture-weights")
    assert (with_points != without).any()
    blue = np.abs(without[..., :3].astype(int) - CIRCLE).max(-1) < 25
    assert not blue.any()


def test_the_mean_of_heads_has_the_points_of_all(opened: Opener) -> None:
    tab = opened("points", "#0/mean")
    settled(tab)
    assert "6 points of each head" in tab.inner_text(".point-legend")


def test_other_pictures_have_no_points(opened: Opener) -> None:
    tab = opened("image", "#1/0")
    assert not tab.locator("button", has_text="Points").is_visible()
    assert not tab.locator(".point-legend").is_visible()
