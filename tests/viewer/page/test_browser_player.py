"""Playing the queries of a head one after another, in a real browser."""

from collections.abc import Callable
from typing import Any

import numpy as np
from browsing import cell, painted, settled

Opener = Callable[..., Any]

SHOWN = ".chosen.query"


def wait_for(tab: Any, text: str) -> None:
    tab.wait_for_function(f"(text) => document.querySelector('{SHOWN}')?.innerText === text", arg=text)


def below(tab: Any) -> np.ndarray:
    """The colours of the last row of the map, the end of the sentence."""
    box = tab.locator("canvas.map").bounding_box()
    (left, y), (right, _) = (cell(tab, 14, 12, 13, key) for key in (1, 10))
    across = slice(round(left - box["x"]), round(right - box["x"]))
    return painted(tab, "canvas.map")[round(y - box["y"]) - 10, across, :3].astype(int)


def test_a_translation_is_played_word_by_word(opened: Opener) -> None:
    """Rows appear in turn, each with what it looked at; space pauses, goes on, and at the end it stops."""
    tab = opened("translation", "#4/1")
    whole = below(tab)
    tab.select_option("select[aria-label='Speed']", "1600")
    tab.keyboard.press(" ")
    settled(tab)
    assert tab.inner_text(SHOWN) == "<s>"
    assert tab.inner_text(".played") == "1 of 14"
    assert below(tab).sum(1).min() > whole.sum(1).min() + 100  # what is not written yet is veiled
    tab.select_option("select[aria-label='Speed']", "250")
    wait_for(tab, "▁kleine")
    tab.keyboard.press(" ")
    assert tab.inner_text(".player button") == "Play"
    tab.wait_for_timeout(600)
    paused = tab.inner_text(SHOWN)
    assert paused in ("▁kleine", "▁Hund")
    assert (below(tab) == whole).all()
    tab.keyboard.press(" ")
    settled(tab)
    assert tab.inner_text(SHOWN) == paused
    wait_for(tab, "▁.")
    tab.wait_for_function("() => document.querySelector('.player button')?.innerText === 'Play'")
    tab.keyboard.press(" ")
    wait_for(tab, "<s>")


def test_it_stops_with_its_head(opened: Opener) -> None:
    tab = opened("translation", "#4/1?view=lines")
    tab.click(".player >> text=Play")
    settled(tab)
    assert tab.locator(".tokens.of-query [aria-selected='true'] .text").inner_text() == "<s>"
    assert tab.locator(".tokens.of-key .looked").count()
    tab.keyboard.press("Escape")
    tab.wait_for_selector(".overview")
    tab.click('.thumb[data-site="4"][data-head="2"]')
    tab.wait_for_selector(".player")
    assert tab.inner_text(".player button") == "Play"
