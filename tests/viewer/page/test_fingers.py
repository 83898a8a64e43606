"""An open head under fingers and pens: what trembles still chooses, what spreads zooms, what swipes scrolls."""

from collections.abc import Callable
from typing import Any

import pytest
from browsing import cell, settled
from demo_pages import STORY

Opener = Callable[..., Any]


@pytest.fixture
def devtools(opened: Opener) -> tuple[Any, Any]:
    """The story's second head on a screen of 400 pixels, and what plays its fingers."""
    tab = opened("story", "#0/1", width=400, height=800)
    tab.wait_for_selector("canvas.map")
    settled(tab)
    return tab, tab.context.new_cdp_session(tab)


def fingers(devtools: Any, kind: str, *places: tuple[float, float]) -> None:
    points = [{"x": x, "y": y, "id": which} for which, (x, y) in enumerate(places)]
    devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})


@pytest.mark.parametrize(("pointer", "chosen"), [("pen", 1), ("mouse", 0)])
def test_a_pen_may_tremble(devtools: tuple[Any, Any], pointer: str, chosen: int) -> None:
    tab, tools = devtools
    x, y = cell(tab, len(STORY), len(STORY), 40, 20)
    for kind, aside in (("mousePressed", 0), ("mouseMoved", 3), ("mouseMoved", 0), ("mouseReleased", 0)):
        event = {"type": kind, "x": x + aside, "y": y, "button": "left", "clickCount": 1, "pointerType": pointer}
        tools.send("Input.dispatchMouseEvent", event)
    settled(tab)
    assert tab.locator(".details .chosen.query").count() == chosen


def test_two_fingers_zoom_and_one_moves(devtools: tuple[Any, Any]) -> None:
    tab, tools = devtools
    x, y = cell(tab, len(STORY), len(STORY), 40, 20)
    assert tab.locator(".thumb-part").is_hidden()  # the part of the map in sight is all of it
    fingers(tools, "touchStart", (x - 20, y), (x + 20, y))
    for far in range(25, 100, 15):
        fingers(tools, "touchMove", (x - far, y), (x + far, y))
    fingers(tools, "touchEnd")
    settled(tab)
    near = tab.locator(".thumb-part").bounding_box()
    assert tab.evaluate("visualViewport.scale") == 1  # the map was zoomed, not the page
    fingers(tools, "touchStart", (x, y))
    for far in range(10, 100, 15):
        fingers(tools, "touchMove", (x - far, y - far))
    fingers(tools, "touchEnd")
    settled(tab)
    moved = tab.locator(".thumb-part").bounding_box()
    assert moved["x"] > near["x"]
    assert moved["y"] > near["y"]
    assert tab.evaluate("scrollY") == 0
    assert tab.locator(".details .chosen").count() == 0


def test_a_swipe_over_the_whole_map_scrolls_the_page(devtools: tuple[Any, Any]) -> None:
    tab, tools = devtools
    x, y = cell(tab, len(STORY), len(STORY), 40, 20)
    fingers(tools, "touchStart", (x, y))
    for far in range(20, 220, 20):
        fingers(tools, "touchMove", (x, y - far))
    fingers(tools, "touchEnd")
    settled(tab)
    assert tab.evaluate("scrollY") > 0
    assert tab.locator(".details .chosen").count() == 0


def test_a_swipe_over_search_results_scrolls_them(devtools: tuple[Any, Any]) -> None:
    tab, tools = devtools
    tab.fill("#wanted", "e")
    tab.focus("#wanted")
    box = tab.locator("#found").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] - 30
    fingers(tools, "touchStart", (x, y))
    for far in range(20, 220, 20):
        fingers(tools, "touchMove", (x, y - far))
    fingers(tools, "touchEnd")
    settled(tab)
    assert tab.eval_on_selector("#found", "(list) => list.scrollTop") > 0
    assert tab.locator(".details .chosen").count() == 0
