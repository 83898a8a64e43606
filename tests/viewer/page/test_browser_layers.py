"""Several heads over each other, parts of a text with separators, and links that keep them, in a real browser."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from browsing import cell, painted, settled
from demo_pages import PAIR

from foveate.viewer.document import Document

Opener = Callable[..., Any]


def colour_at(tab: Any, place: tuple[float, float]) -> np.ndarray:
    """The colour beside the middle of a cell, where no number is written."""
    box = tab.locator("canvas.map").bounding_box()
    x, y = round(place[0] - box["x"]) - 10, round(place[1] - box["y"]) - 10
    return painted(tab, "canvas.map")[y, x, :3].astype(int)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_heads_are_drawn_over_each_other(opened: Opener, documents: dict[str, Document], scheme: str) -> None:
    """A pair has the colour of the head that looks there; the tooltip tells the weights of all."""
    tab = opened("translation", "#4/1", scheme=scheme)
    panel = documents["translation"].sites[4]
    tab.click("button.small >> text=Overlay")
    tab.click(".film .thumb >> nth=2")
    settled(tab)
    assert tab.inner_text(".head-name") == "head 1"
    assert re.fullmatch(r"head 1 to [\d.]+\s*head 2 to [\d.]+", tab.inner_text(".legend.layered"))
    first, second = panel.rows.weights[1], panel.rows.weights[2]
    mine = np.unravel_index((first / first.max() - second / second.max()).argmax(), first.shape)
    other = np.unravel_index((second / second.max() - first / first.max()).argmax(), first.shape)
    blue, orange = (colour_at(tab, cell(tab, *first.shape, *map(int, each))) for each in (mine, other))
    assert blue[2] > blue[0]
    assert orange[0] > orange[2]
    tab.mouse.move(*cell(tab, *first.shape, *map(int, other)))
    settled(tab)
    assert float(re.search(r"head 2: ([\d.]+)", tab.inner_text("#tip"))[1]) == pytest.approx(  # type: ignore[index]
        second[other], abs=6e-4
    )
    tab.click(".film .thumb >> nth=2")
    settled(tab)
    assert not tab.locator(".legend.layered").count()


def test_lines_of_several_heads(opened: Opener) -> None:
    tab = opened("translation", "#4/1?view=lines")
    before = painted(tab, ".lines-middle canvas")
    tab.click("button.small >> text=Overlay")
    tab.click(".film .thumb >> nth=2")
    settled(tab)
    after = painted(tab, ".lines-middle canvas").astype(int)
    assert (after != before).any()
    assert ((after[..., 0] > after[..., 2] + 60) & (after[..., 3] > 100)).any()  # orange, as no line was


def test_from_one_sentence_to_the_other(opened: Opener, documents: dict[str, Document]) -> None:
    tab = opened("pair", "#1/1")
    offered = tab.locator("select[aria-label='From which text to which'] option").all_inner_texts()
    assert offered == [
        "all texts",
        "text A looks at itself",
        "text A looks at B",
        "text B looks at A",
        "text B looks at itself",
    ]
    tab.select_option("select[aria-label='From which text to which']", "AB")
    tab.mouse.click(*cell(tab, 11, 11, 4, 7))
    settled(tab)
    row = documents["pair"].sites[1].rows.weights[1, 4]
    listed = tab.locator(".details section:first-child .bar-name").all_inner_texts()
    wanted = sorted(range(6, 10), key=lambda key: -row[key])
    assert listed == [PAIR[key] for key in wanted]
    tab.select_option("select[aria-label='From which text to which']", "")
    settled(tab)
    assert tab.locator(".details section:first-child .bar-name").count() > 4


def test_one_text_has_no_parts(opened: Opener) -> None:
    tab = opened("translation", "#0/1")
    assert tab.locator("select[aria-label='From which text to which']").is_hidden()
    assert tab.locator("button.small >> text=Overlay").is_visible()
    assert opened("single").locator("button.small >> text=Overlay").is_hidden()


def seen_at(tab: Any, share: float) -> str:
    """What the tooltip tells at a place of the map, a share of its size from the corner."""
    box = tab.locator("canvas.map").bounding_box()
    tab.mouse.move(box["x"] + share * box["width"], box["y"] + share * box["height"])
    settled(tab)
    return tab.inner_text("#tip")


def test_a_link_keeps_the_zoom_and_what_is_drawn(opened: Opener) -> None:
    tab = opened("long", "#1/3")
    for _ in range(6):
        tab.mouse.move(*cell(tab, 521, 521, 300, 280))
        tab.mouse.wheel(0, -400)
    settled(tab)
    tab.click("button.small >> text=Overlay")
    tab.click(".film .thumb >> nth=1")
    tab.wait_for_timeout(300)  # the rows of the second head come later
    told, legend = [seen_at(tab, share) for share in (0.4, 0.7)], tab.inner_text(".legend.layered")
    tab.click("text=Copy link")
    tab.wait_for_function("location.hash.includes('zoom')")
    again = opened("long", tab.evaluate("location.hash"))
    again.wait_for_timeout(300)
    assert "query 30" in told[1]
    assert told[0] != told[1]
    assert [seen_at(again, share) for share in (0.4, 0.7)] == told
    assert again.inner_text(".legend.layered") == legend


def test_the_place_under_the_pointer_stays_when_zooming(opened: Opener) -> None:
    tab = opened("long", "#1/3")
    x, y = cell(tab, 521, 521, 300, 120)
    for step in range(8):
        tab.mouse.move(x + step % 2, y)
        tab.mouse.wheel(0, -300)
    settled(tab)
    tab.mouse.move(x, y + 1)
    settled(tab)
    query, key = (int(found) for found in re.search(r"query (\d+).*?key (\d+)", tab.inner_text("#tip"), re.S).groups())  # type: ignore[union-attr]
    assert abs(query - 300) <= 1
    assert abs(key - 120) <= 1
