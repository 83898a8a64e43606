"""The menu of what maps show, in a real browser."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from browsing import cell, expect, name_of, painted, settled

from foveate.viewer.document import Document

Opener = Callable[..., Any]


def test_the_menu_changes_what_all_maps_show(opened: Opener, documents: dict[str, Document]) -> None:
    tab = opened("measures")
    menu = tab.locator("#measure")
    assert menu.locator("option").all_inner_texts() == ["Weights", "Weight × size of value"]
    heads = tab.locator(".thumb").count()
    assert "The largest weight of a head" in tab.inner_text(".marked")
    menu.select_option("values")
    tab.wait_for_function("() => document.querySelector('.marked')?.innerText.includes('size of value')")
    assert tab.locator(".thumb").count() == heads
    assert "weight × size of value on a cell" in tab.inner_text(".intro .legend")
    menu.select_option("weights")
    tab.wait_for_function("() => document.querySelector('.marked')?.innerText.includes('largest weight of')")
    assert tab.locator(".thumb").count() == heads


def test_numbers_are_those_of_the_measure(opened: Opener, documents: dict[str, Document]) -> None:
    """A link keeps it; a number above 1 is told as it is, and the scale of all heads ends with the largest one."""
    tab = opened("measures", "#4/1?query=7&key=3&measure=values")
    expect(tab, (documents["measures"].sites[4].name, "head 1"))
    settled(tab)
    own = [panel for panel in documents["measures"].sites if panel.shows == "values"]
    panel = own[4]
    listed = [float(text) for text in tab.locator(".details section:first-child .bar-weight").all_inner_texts()]
    assert max(listed) == pytest.approx(panel.rows.weights[1, 7].max(), rel=0.01)
    assert max(listed) > 1
    assert tab.eval_on_selector("#measure", "(menu) => menu.value") == "values"
    tab.click("text=all heads")
    settled(tab)
    largest = max(float(each.rows.weights.max()) for each in own)
    assert float(tab.locator(".map-scale .legend-ticks span").last.inner_text()) == pytest.approx(largest, rel=0.06)
    x, y = cell(tab, len(panel.queries.labels), len(panel.keys.labels), 7, 3)
    tab.mouse.move(x, y)
    settled(tab)
    assert float(tab.inner_text("#tip").split()[6]) == pytest.approx(panel.rows.weights[1, 7, 3], rel=0.01)
    tab.locator("#measure").select_option("weights")
    tab.wait_for_function("() => document.querySelector('.map-scale')?.innerText.includes('weight of a key')")
    assert name_of(tab)[1] == "head 1"


def test_a_page_of_weights_alone_has_no_menu(opened: Opener) -> None:
    assert not opened("translation").locator("#measure").is_visible()


def test_a_difference_has_a_diverging_scale(opened: Opener, documents: dict[str, Document]) -> None:
    tab = opened("difference", "#0/1?query=7")
    (panel,) = documents["difference"].sites
    expect(tab, (panel.name, "head 1"))
    settled(tab)
    ticks = tab.locator(".map-scale .legend-ticks span").all_inner_texts()
    top = float(ticks[2].removeprefix("+"))
    assert ticks[:2] == [f"−{ticks[2][1:]}", "0"]
    assert top == pytest.approx(abs(panel.rows.weights[1]).max(), rel=0.06)
    listed = [
        text.replace("−", "-") for text in tab.locator(".details section:first-child .bar-weight").all_inner_texts()
    ]
    wanted = sorted(panel.rows.weights[1, 7], key=abs, reverse=True)
    assert [float(text) for text in listed[:3]] == pytest.approx(wanted[:3], rel=0.01)
    weights = panel.rows.weights[1]
    for value, red in ((weights.min(), True), (weights.max(), False)):
        query, key = (int(place[0]) for place in np.nonzero(weights == value))
        x, y = cell(tab, 12, 12, query, key)
        box = tab.locator("canvas.map").bounding_box()
        drawn = painted(tab, "canvas.map")
        colour = drawn[int(y - box["y"] - 8), int(x - box["x"] - 8), :3].astype(int)
        assert (colour[0] > colour[2]) == red
    assert not tab.locator("role=tab[name='Lines']").count()
