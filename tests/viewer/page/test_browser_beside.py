"""Two heads side by side, in a real browser."""

from collections.abc import Callable
from typing import Any

import numpy as np
from browsing import expect, settled

from foveate.viewer.document import Document

Opener = Callable[..., Any]

FIRST = ".details[aria-label='Numbers']"
TOLD = ".details[aria-label='Numbers of the second head']"


def looked(tab: Any) -> tuple[str, float]:
    """What the second head looks at most, as its numbers say, and how much."""
    settled(tab)
    most = tab.locator(f"{TOLD} section:first-of-type .bar").first
    return most.locator(".bar-name").inner_text(), float(most.locator(".bar-weight").inner_text())


def pair(tab: Any) -> tuple[str, str, float]:
    """The query and the key that are chosen in the second head, and the weight of the pair."""
    settled(tab)
    names = [tab.inner_text(f"{TOLD} .chosen.{side}") for side in ("query", "key")]
    return names[0], names[1], float(tab.inner_text(f"{TOLD} .pair b"))


def test_two_heads_of_a_site(opened: Opener, documents: dict[str, Document]) -> None:
    """A query that is chosen in one is chosen in both; the second tells its own weights."""
    tab = opened("translation", "#4/1")
    assert tab.locator(".beside-pane").is_hidden()
    tab.click("button.small >> text=Beside")
    tab.wait_for_selector(".beside-pane canvas.map")
    assert tab.locator("canvas.map").count() == 2
    panel = documents["translation"].sites[4]
    for _ in range(4):
        tab.keyboard.press("ArrowDown")
    row = panel.rows.weights[2, 3]
    token, weight = looked(tab)
    assert token == panel.keys.labels[row.argmax()]
    np.testing.assert_allclose(weight, row.max(), rtol=2e-3)
    tab.select_option("select[aria-label='Head beside']", label="head 0")
    settled(tab)
    np.testing.assert_allclose(looked(tab)[1], panel.rows.weights[0, 3].max(), rtol=2e-3)
    tab.click("button.small >> text=Beside")
    assert tab.locator(".beside-pane").is_hidden()


def test_a_choice_in_the_second_map(opened: Opener, documents: dict[str, Document]) -> None:
    """Of the same queries it counts for both maps; of other keys for the second alone."""
    tab = opened("translation", "#4/1?beside=1_2")  # decoder.0.cross beside an encoder's: they share the source
    tab.wait_for_selector(".beside-pane canvas.map")
    box = tab.locator(".beside-pane canvas.map").bounding_box()
    tab.mouse.click(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.6)
    settled(tab)
    panel = documents["translation"].sites[1]
    query, key, weight = pair(tab)
    places = panel.queries.labels.index(query), panel.keys.labels.index(key)
    np.testing.assert_allclose(weight, panel.rows.weights[2][places], rtol=6e-3)
    assert tab.inner_text(f"{FIRST} .chosen.key") == key
    assert not tab.locator(f"{FIRST} .chosen.query").count()  # queries of the encoder are no queries of the decoder


def test_a_link_keeps_the_second_head(opened: Opener) -> None:
    tab = opened("translation", "#4/1?query=2&beside=4_3", width=1600)
    tab.wait_for_selector(".beside-pane canvas.map")
    assert tab.locator("canvas.map").count() == 2  # in place of the lines
    assert tab.locator(".lines").count() == 0
    assert looked(tab)
    tab.click("text=Copy link")
    tab.wait_for_function("location.hash.includes('beside')")
    assert "beside=4_3" in tab.evaluate("location.hash")
    tab.keyboard.press("ArrowRight")
    expect(tab, ("decoder.0.cross", "head 2"))
    assert (
        tab.eval_on_selector("select[aria-label='Head beside']", "(list) => list.selectedOptions[0].text") == "head 3"
    )


def test_two_texts(opened: Opener, documents: dict[str, Document]) -> None:
    """The same head of the other text is beside the open one, and goes along to the next head and layer."""
    tab = opened("two")
    names = [f"{each}.{stack}" for stack in ("decoder.∗.cross", "encoder.∗.self", "decoder.∗.self") for each in "AB"]
    assert tab.locator(".group h2").all_inner_texts() == names
    sites = [panel.name for panel in documents["two"].sites]
    tab.click(f'.thumb[data-site="{sites.index("A.decoder.0.cross")}"][data-head="1"]')
    tab.wait_for_selector(".beside-pane canvas.map")
    second = "select[aria-label='{} beside']"
    told = "(list) => list.selectedOptions[0].text"
    assert tab.eval_on_selector(second.format("Site"), told) == "B.decoder.0.cross"
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("Shift+ArrowDown")
    expect(tab, ("A.decoder.1.cross", "head 2"))
    settled(tab)
    assert tab.eval_on_selector(second.format("Site"), told) == "B.decoder.1.cross"
    assert tab.eval_on_selector(second.format("Head"), told) == "head 2"
    tab.keyboard.press("ArrowDown")  # a choice in one text says nothing about the other
    settled(tab)
    assert tab.inner_text(".chosen.query") == "<s>"
    assert "Choose a row" in tab.inner_text(TOLD)
    box = tab.locator(".beside-pane canvas.map").bounding_box()
    tab.mouse.click(box["x"] + 0.6 * box["width"], box["y"] + 0.6 * box["height"])
    settled(tab)
    panel = documents["two"].sites[sites.index("B.decoder.1.cross")]
    query, key, weight = pair(tab)
    places = panel.queries.labels.index(query), panel.keys.labels.index(key)
    np.testing.assert_allclose(weight, panel.rows.weights[2][places], rtol=6e-3)
    assert tab.inner_text(".chosen.query") == "<s>"


def test_each_of_two_heads_has_its_numbers(opened: Opener, documents: dict[str, Document]) -> None:
    """Below the name of its head; a key that is chosen in the second's list is chosen in both."""
    tab = opened("translation", "#4/1?query=3&beside=4_2")
    tab.wait_for_selector(f"{TOLD} .bar")
    names = tab.locator(".details-of").all_inner_texts()
    assert names == ["decoder.0.cross, head 1", "decoder.0.cross, head 2"]
    panel = documents["translation"].sites[4]
    for number, head in enumerate((1, 2)):
        listed = tab.locator(".details").nth(number).locator("section:first-of-type button .bar-weight")
        shown = [float(text) for text in listed.all_inner_texts()]
        np.testing.assert_allclose(shown, np.sort(panel.rows.weights[head, 3])[::-1][:5], rtol=6e-3)
    name = tab.locator(f"{TOLD} button.bar").nth(1).locator(".bar-name").inner_text()
    tab.locator(f"{TOLD} button.bar").nth(1).click()
    settled(tab)
    assert tab.locator(".chosen.key").all_inner_texts() == [name, name]
    tab.click("button.small >> text=Beside")
    settled(tab)
    assert tab.locator(".details-of:visible").count() == 0
    assert tab.locator(".details:visible").count() == 1


def test_nothing_is_wider_than_the_screen(opened: Opener) -> None:
    for width in (400, 1280):
        tab = opened("two", "#0/1?query=2", width=width)
        tab.wait_for_selector(".beside-pane canvas.map")
        tab.wait_for_selector(".beside-pane .legend")
        settled(tab)
        settled(tab)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        foot, pane = (tab.locator(f".beside-pane{part}").bounding_box() for part in (" .map-foot", ""))
        assert foot["y"] + foot["height"] <= pane["y"] + pane["height"] + 1
