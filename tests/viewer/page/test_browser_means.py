"""The mean of all heads, in a real browser."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from browsing import cell, expect, painted, settled

from foveate.viewer.document import Document

Opener = Callable[..., Any]


def test_the_mean_of_heads_is_a_tile_and_opens(opened: Opener, documents: dict[str, Document]) -> None:
    tab = opened("translation")
    thumb = '.thumb[data-site="4"][data-head="4"]'
    tab.wait_for_selector(f"{thumb} canvas.painted")
    mean = documents["translation"].sites[4].rows.weights.mean(0)
    colours = painted(tab, f"{thumb} canvas")[..., :3].sum(2, dtype=int)
    assert np.unravel_index(colours.argmin(), colours.shape) == np.unravel_index(mean.argmax(), mean.shape)
    tab.click(thumb)
    tab.wait_for_selector("canvas.map")
    assert tab.inner_text(".head-name") == "mean of heads"
    assert tab.evaluate("location.hash") == "#4/mean"
    tab.mouse.click(*cell(tab, *mean.shape, 7, 3))
    settled(tab)
    listed = [float(text) for text in tab.locator(".details section:first-child .bar-weight").all_inner_texts()]
    np.testing.assert_allclose(listed[:10], sorted(mean[7], reverse=True)[:10], atol=6e-4)
    entropy = -(mean * np.log(mean)).sum(1).mean()
    assert f"entropy {entropy:.2f} nats" in tab.inner_text(".details .about")
    tab.keyboard.press("ArrowLeft")
    expect(tab, ("decoder.0.cross", "head 3"))


def test_the_mean_of_rows_that_are_not_all_there(opened: Opener, documents: dict[str, Document]) -> None:
    """The sum of what the heads' rows list, and the rest; nothing claims to be exact."""
    tab = opened("long", "#1/mean?query=300")
    tab.wait_for_selector(".details .bar-weight")
    panel = documents["long"].sites[1]
    kept, sums = panel.rows.keys.shape[2], np.zeros(521)
    for keys, weights in zip(panel.rows.keys[:, 300], panel.rows.weights[:, 300], strict=True):
        np.add.at(sums, keys[keys >= 0], weights[keys >= 0] / panel.heads)
    listed = [float(text) for text in tab.locator(".details section:first-child .bar-weight").all_inner_texts()]
    np.testing.assert_allclose(listed[:10], np.sort(sums)[::-1][:10], rtol=6e-3)
    total = sums.sum() + panel.rows.rest[:, 300].mean()
    assert listed[10] == pytest.approx(total - np.sort(sums)[::-1][:10].sum(), rel=0.01)
    assert f"Mean of the top {kept} keys" in tab.inner_text(".about")
    assert not tab.locator(".details .about dt", has_text="Spread").count()
