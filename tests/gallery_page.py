"""Writes docs/gallery.md: every picture of the documentation, with its page, in the order of the site's menu.

    python tests/gallery_page.py

`test_gallery_page.py` compares the page with the pictures.
"""

import re
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"

PAGE, TEMPLATE = DOCS / "gallery.md", Path(__file__).with_suffix(".md")

COLUMNS = 3

SECTIONS = {
    "Look": ("Look", "Teach"),
    "Texts": ("Texts", "Use", "Train"),
    "Images": ("Images",),
    "Sound and worlds": ("Sound", "Worlds"),
    "Mechanisms and comparisons": ("Compare", "Build"),
}
"""The headings of the gallery, and the sections of the menu whose pages each shows."""

_PICTURE = re.compile(r"!\[([^\]]+)\]\(pictures/([^)]+\.(?:png|gif))\)")


def menu() -> list[tuple[str, str]]:
    """The section and the name of each page of the menu, in its order."""
    lines = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2].splitlines()
    section, found = "", []
    for line in lines:
        if heading := re.fullmatch(r" +- (\w+):", line):
            section = heading[1]
        elif page := re.search(r" ([\w-]+\.md)$", line):
            found.append((section, page[1]))
    return found


def pictures(sections: tuple[str, ...]) -> list[tuple[str, str, str]]:
    """What each picture of some sections shows, its name and its page."""
    pages = [page for section, page in menu() if section in sections]
    found = []
    for page in pages:
        path = DOCS / page
        if path.is_file() and path != PAGE:
            named = _PICTURE.findall(path.read_text(encoding="utf-8"))
            found += [(what, name, page) for name, what in {name: what for what, name in reversed(named)}.items()][::-1]
    return found


def grid(rows: list[tuple[str, str, str]]) -> str:
    cells = [f"[![{what}](pictures/{name})]({page})<br>{what}" for what, name, page in rows]
    cells += [""] * (-len(cells) % COLUMNS)
    lines = [f"| {' | '.join(cells[place : place + COLUMNS])} |" for place in range(0, len(cells), COLUMNS)]
    return "\n".join(["| | | |", "| --- | --- | --- |", *lines])


def page() -> str:
    parts = [f"## {heading}\n\n{grid(pictures(sections))}" for heading, sections in SECTIONS.items()]
    return TEMPLATE.read_text(encoding="utf-8").replace("{pictures}", "\n\n".join(parts))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
