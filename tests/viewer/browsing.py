"""What the tests of the page ask a browser."""

import base64
from collections.abc import Callable
from io import BytesIO
from typing import Any

import numpy as np
import PIL.Image


def settled(tab: Any) -> None:
    """Wait for what the page draws at the next picture of the screen."""
    tab.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def until(tab: Any, holds: Callable[[], object]) -> None:
    """Wait until something holds that the page reaches by itself: an answer of the server may be late."""
    for _ in range(500):
        if holds():
            return
        tab.wait_for_timeout(20)
    assert holds()


def name_of(tab: Any) -> tuple[str, str]:
    """Which head is open: its site and its name."""
    return tab.eval_on_selector(".crumbs select", "(list) => list.selectedOptions[0].text"), tab.inner_text(
        ".head-name"
    )


def expect(tab: Any, wanted: tuple[str, str]) -> None:
    """Wait until a head is open."""
    until(tab, lambda: tab.locator(".head-name").count() and name_of(tab) == wanted)


def painted(tab: Any, selector: str) -> np.ndarray:
    """The colours of a canvas."""
    address = tab.eval_on_selector(selector, "(canvas) => canvas.toDataURL()")
    with PIL.Image.open(BytesIO(base64.b64decode(address.split(",")[1]))) as picture:
        return np.asarray(picture.convert("RGBA"))


def cell(tab: Any, queries: int, keys: int, query: int, key: int) -> tuple[float, float]:
    """Where the middle of a cell of the map is, found by the plot's colours: labels are grey, the plot is not."""
    box = tab.locator("canvas.map").bounding_box()
    ground = (painted(tab, "canvas.map")[..., 3] == 255).astype(int)
    down, across = ground.sum(1), ground.sum(0)
    rows, columns = np.flatnonzero(down > 0.5 * down.max()), np.flatnonzero(across > 0.5 * across.max())
    high, wide = (rows[-1] - rows[0] + 1) / queries, (columns[-1] - columns[0] + 1) / keys
    return box["x"] + columns[0] + wide * (key + 0.5), box["y"] + rows[0] + high * (query + 0.5)
