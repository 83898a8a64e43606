"""Search for tokens in the overview, in a real browser."""

from collections.abc import Callable
from typing import Any

from browsing import expect, settled

Opener = Callable[..., Any]

LIT = ".thumb[data-site='{}'][data-head='0'] .lit-{}:not([hidden])"


def marked(tab: Any) -> list[str]:
    return tab.locator(".piece.found").all_inner_texts()


def test_tokens_of_all_texts_are_found(opened: Opener) -> None:
    """Matches are marked; Enter goes through them and lights each in every head that has it."""
    tab = opened("translation")
    tab.keyboard.press("/")
    tab.keyboard.type("the")
    settled(tab)
    assert marked(tab) == ["▁The", "▁the"]
    assert tab.locator("#found .option").all_inner_texts() == [
        "▁The\ntext 1, token 0",
        "▁the\ntext 1, token 6",
    ]
    tab.keyboard.press("Enter")
    tab.keyboard.press("Enter")
    settled(tab)
    assert tab.locator(".piece[aria-current]").all_inner_texts() == ["▁the"]
    assert tab.inner_text("#said") == "token 6, ▁the"
    column = tab.locator(LIT.format(4, "column"))  # decoder.0.cross reads the source, of 12 tokens
    assert column.evaluate("(line) => line.style.left") == "50%"
    assert not tab.locator(LIT.format(4, "row")).count()
    tab.keyboard.press("Enter")  # from the last to the first
    settled(tab)
    assert tab.locator(".piece[aria-current]").all_inner_texts() == ["▁The"]
    tab.keyboard.press("Escape")
    settled(tab)
    assert marked(tab) == []
    assert not tab.locator(".lit:not([hidden])").count()
    assert tab.evaluate("document.activeElement.classList.contains('thumb')")


def test_a_search_goes_along_into_a_head_and_back(opened: Opener) -> None:
    tab = opened("translation")
    tab.fill("#wanted", "katze")
    assert marked(tab) == ["▁Katze"]
    tab.click('.thumb[data-site="4"][data-head="1"]')
    expect(tab, ("decoder.0.cross", "head 1"))
    tab.focus("#wanted")
    settled(tab)
    assert tab.locator("#found .option").all_inner_texts() == ["▁Katze\nquery 7"]
    tab.click(".back")
    tab.wait_for_selector(".overview")
    assert marked(tab) == ["▁Katze"]


def test_no_field_where_nothing_has_a_name(opened: Opener) -> None:
    assert opened("translation").locator("#search").is_visible()
    tab = opened("windows")
    assert tab.locator("#search").is_visible() == bool(tab.locator(".piece").count())
