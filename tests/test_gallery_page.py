"""The page of all pictures is that of its program, and shows every picture that there is."""

import re

import gallery_page


def test_the_page_is_made_by_its_program() -> None:
    assert gallery_page.PAGE.read_text(encoding="utf-8") == gallery_page.page()


def test_every_picture_is_shown_once() -> None:
    shown = re.findall(r"\(pictures/([^)]+)\)", gallery_page.page())
    files = {path.name for path in (gallery_page.DOCS / "pictures").iterdir() if path.suffix in (".png", ".gif")}
    drawn_at_the_start = {"writing.gif"}
    assert sorted(shown) == sorted(files - drawn_at_the_start)
