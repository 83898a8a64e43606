"""Lets the tests of this folder import `browsing`; and the pages in a browser."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from demo_pages import (
    difference_page,
    even_page,
    evil_page,
    few_page,
    image_page,
    long_page,
    measures_page,
    odd_page,
    pair_page,
    points_page,
    single_page,
    sound_page,
    story_page,
    translation_page,
    two_page,
    windows_page,
)

from foveate.viewer import page
from foveate.viewer.document import Document, Opening

DOCUMENTS: dict[str, Callable[[], Document]] = {
    "story": story_page,
    "translation": translation_page,
    "image": image_page,
    "opening": lambda: replace(image_page(), opening=Opening("caption.1.cross", 2)),
    "points": points_page,
    "difference": difference_page,
    "measures": measures_page,
    "windows": windows_page,
    "sound": sound_page,
    "long": lambda: long_page(2, 521),
    "evil": evil_page,
    "odd": odd_page,
    "even": even_page,
    "single": single_page,
    "few": few_page,
    "pair": pair_page,
    "two": two_page,
}

Opener = Callable[..., Any]


@pytest.fixture(scope="session")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Document]:
    """The documents, saved; as they read back from their pages."""
    folder = tmp_path_factory.mktemp("pages")
    found = {}
    for name, made in DOCUMENTS.items():
        page.save(folder / f"{name}.html", made())
        found[name] = page.read(folder / f"{name}.html")
    found["folder"] = folder  # type: ignore[assignment]
    return found


@pytest.fixture
def opened(chromium: Any, documents: dict[str, Any]) -> Iterator[Opener]:
    """`opened(name, address, width, height, scheme)`: a page that has drawn itself; at last it must have no errors."""
    contexts, errors = [], []

    def open_page(name: str, address: str = "", width: int = 1280, height: int = 800, scheme: str = "light") -> Any:
        context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        contexts.append(context)
        tab = context.new_page()
        tab.on("console", lambda message: errors.append(message.text))
        tab.on("pageerror", lambda error: errors.append(str(error)))
        tab.on(
            "request",
            lambda request: errors.extend([] if request.url.startswith(("file:", "data:")) else [request.url]),
        )
        tab.goto(f"file://{documents['folder'] / name}.html{address}")
        tab.wait_for_selector("html[data-ready]")
        tab.wait_for_selector("canvas.map, .thumb canvas.painted, .picture-weights")
        return tab

    yield open_page
    for context in contexts:
        context.close()
    assert errors == []
