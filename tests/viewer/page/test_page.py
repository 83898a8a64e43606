"""The page as a file: read back, small, and nothing in it runs but its own scripts."""

import base64
import hashlib
import html as markup
import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from demo_pages import (
    EVIL,
    evil_page,
    image_page,
    long_page,
    sound_page,
    story_page,
    text_model,
    translation_page,
    windows_page,
)

from foveate.errors import UserError
from foveate.viewer import page
from foveate.viewer.document import Document, Panel, TopWeights, keys_per_query, make_document
from foveate.viewer.page.compose import SCRIPTS, STYLES, compose
from foveate.viewer.page.packing import panel_shape, precision
from foveate.viewer.sides import Side


class Elements(HTMLParser):
    """What a browser would make of a page: its elements with their attributes, and the texts of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[int, str] = {}
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        self.inside = tag

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside in ("script", "style"):
            self.texts[len(self.tags) - 1] = self.texts.get(len(self.tags) - 1, "") + data

    def of(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        return [(found, self.texts.get(place, "")) for place, (name, found) in enumerate(self.tags) if name == tag]


MADE = [story_page, translation_page, image_page, windows_page, sound_page, lambda: long_page(2, 521)]


@pytest.mark.parametrize("made", MADE)
def test_a_page_reads_back(made: Callable[[], Document], tmp_path: Path) -> None:
    wanted = made()
    page.save(tmp_path / "look.html", wanted)
    found = page.read(tmp_path / "look.html")
    assert (found.title, found.notes) == (wanted.title, wanted.notes)
    assert [panel.name for panel in found.sites] == [panel.name for panel in wanted.sites]
    for panel, before in zip(found.sites, wanted.sites, strict=True):
        assert panel.queries == Side(before.queries.count, tuple(before.queries.labels), before.queries.picture)
        assert panel.keys == Side(before.keys.count, tuple(before.keys.labels), before.keys.picture)
        assert panel.windows == before.windows
        np.testing.assert_array_equal(panel.rows.keys, before.rows.keys)
        part = precision(panel_shape(panel).bits) * 1.001
        np.testing.assert_allclose(panel.rows.weights, before.rows.weights, rtol=part, atol=2**-20)
        np.testing.assert_allclose(panel.rows.rest, before.rows.rest, rtol=part, atol=2**-20)
        np.testing.assert_allclose(panel.maps, before.maps, rtol=precision(8) * 1.001, atol=1e-5)
        np.testing.assert_allclose(panel.entropy, before.entropy, rtol=1e-3)


def test_what_sites_share_is_there_once() -> None:
    text = page.to_html(story_page())
    assert text.count('"lighthouse"') == 1
    assert len(re.findall('id="picture-', page.to_html(image_page()))) == 1


def random_page(tokens: int) -> Document:
    """12 layers of 12 heads whose top keys and weights follow no rule."""
    random, labels = np.random.default_rng(0), tuple(f"token{place}" for place in range(tokens))
    count, panels = keys_per_query(tokens, tokens, 4096), []
    for layer in range(12):
        places = np.sort(random.integers(0, tokens - count + 1, (12, tokens, count)), 2) + np.arange(count)
        weights = (random.random((12, tokens, count)) ** 3 / count).astype(np.float32)
        rows = TopWeights(places.astype(np.int32), weights, 1 - weights.sum(2))
        maps = random.random((12, 64, 64), np.float32) / 32
        sides = Side(tokens, labels), Side(tokens, labels)
        panels.append(Panel(f"h.{layer}.attn", *sides, rows, maps, np.ones(12, np.float32)))
    return Document("random", panels)


@pytest.mark.parametrize(("tokens", "limit"), [(512, 3_000_000), (4096, 10_000_000)])
def test_size_at_worst(tokens: int, limit: int) -> None:
    assert len(page.to_html(random_page(tokens))) < limit


def test_nothing_runs_but_its_own_script() -> None:
    text = page.to_html(evil_page())
    found = Elements(text)
    scripts = found.of("script")
    running = [content for attributes, content in scripts if "type" not in attributes]
    assert len(running) == 1
    assert {attributes.get("type") for attributes, _ in scripts} == {
        None,
        "application/json",
        "application/octet-stream;base85",
    }
    assert [tag for tag, _ in found.tags if tag in ("iframe", "object", "embed", "base", "form", "b")] == ["b", "b"]
    assert not [name for _, attributes in found.tags for name in attributes if name.startswith("on") or name == "style"]
    ((policy, _),) = [each for each in found.of("meta") if each[0].get("http-equiv") == "Content-Security-Policy"]
    rules = dict(rule.split(" ", 1) for rule in str(policy["content"]).split("; "))
    assert rules == {
        "default-src": "'none'",
        "script-src": sha256(running[0]),
        "style-src": sha256(found.of("style")[0][1]),
        "img-src": "data:",
        "connect-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def sha256(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_no_address_is_loaded() -> None:
    text = page.to_html(image_page())
    links = [attributes["href"] for tag, attributes in Elements(text).tags if "href" in attributes]
    assert all(link.startswith(("data:", "#")) for link in links)
    assert set(re.findall(r"https?://[^'\" ]+", text)) == {"http://www.w3.org/2000/svg"}


def test_texts_come_back_as_they_were(tmp_path: Path) -> None:
    page.save(tmp_path / "look.html", evil_page())
    found = page.read(tmp_path / "look.html")
    assert list(found.sites[0].keys.labels) == EVIL
    assert found.notes == EVIL
    assert found.sites[0].name == "<b>h</b>.0.attn"
    assert (tmp_path / "look.html").read_text(encoding="utf-8").count("</script>") == 3  # data, rows, its own


def test_a_frame_for_a_notebook() -> None:
    made = evil_page()
    text = page.to_iframe(made, height=431)
    ((_, frame),) = Elements(text).tags
    assert frame["sandbox"] == "allow-scripts"
    assert frame["srcdoc"] == page.to_html(made)
    assert "height:431px" in str(frame["style"])
    assert frame["title"] == EVIL[0]


def test_what_is_no_page(tmp_path: Path) -> None:
    path = tmp_path / "look.html"
    with pytest.raises(UserError, match=r"could not read .*: No such file"):
        page.read(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="it is not a text file"):
        page.read(path)
    path.write_text("<!doctype html><p>Hello")
    with pytest.raises(UserError, match="it has no block 'document'"):
        page.read(path)


WINDOW = {"height": 1, "width": 173, "window": [7, 7], "shift": [0, 0]}


def damaged(change: Callable[[dict], None]) -> str:
    """A page whose head was changed."""
    text = page.to_html(make_document(text_model(1, "pf", 173)))

    def changed(found: re.Match[str]) -> str:
        head = json.loads(found[2])
        change(head)
        return found[1] + json.dumps(head) + found[3]

    return re.sub(r'(<script type="application/json" id="document">)(.*?)(</script>)', changed, text)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda head: head.update(format="foveate/page/9"), "has the format 'foveate/page/9'"),
        (lambda head: head.update(run="this"), "unknown field in the page 'run'"),
        (lambda head: head["sites"][0].update(heads="2"), "heads is '2', but must be a whole number"),
        (lambda head: head["sites"][0].update(heads=10**9), "cannot have the shape"),
        (lambda head: head["sites"][0].update(kept=-1), "cannot have the shape"),
        (lambda head: head["sites"][0].update(heads=-1, kept=-3), "cannot have the shape"),
        (lambda head: head["sites"][0].update(kept=9), "a block holds"),
        (lambda head: head["sites"][0].update(queries=5), r"damaged: \d+ is missing"),
        (lambda head: head["sites"][0].update(keys=-1), "damaged: -1 is missing"),
        (lambda head: head["sites"][0].update(entropy=[1.0] * 9), "has 9 entropies for"),
        (lambda head: head["sites"][0].update(windows=[WINDOW]), "cannot have the windows"),
        (lambda head: head["sites"][0].update(windows=[WINDOW, {**WINDOW, "height": 2}]), "cannot have the windows"),
        (lambda head: head["sites"][0].update(windows=[{**WINDOW, "window": [0, 7]}] * 2), "must be at least 1"),
        (lambda head: head["sites"][0].update(windows=[{**WINDOW, "window": [7]}] * 2), "window is"),
        (lambda head: head["sites"].append(head["sites"][0]), "damaged: 'maps' is missing"),
    ],
)
def test_a_damaged_page(change: Callable[[dict], None], message: str, tmp_path: Path) -> None:
    (tmp_path / "look.html").write_text(damaged(change))
    with pytest.raises(UserError, match=message):
        page.read(tmp_path / "look.html")


def test_a_full_disk(tmp_path: Path, full_disk: Callable[[int], AbstractContextManager[None]]) -> None:
    """The old page stays."""
    (tmp_path / "look.html").write_text("old")
    with full_disk(3000), pytest.raises(UserError, match=r"could not write look\.html"):
        page.save(tmp_path / "look.html", translation_page())
    assert (tmp_path / "look.html").read_text() == "old"


def test_a_server_brings_its_own_source() -> None:
    text = compose("<live>", [], ["class Remote {}"], "show(new Remote());", "'self'")
    ((_, script),) = Elements(text).of("script")
    assert script.endswith("class Remote {}\nshow(new Remote());\n})();\n")
    assert f"script-src {markup.escape(sha256(script), quote=False)}; " in text
    assert "connect-src 'self';" in text
    assert "<title>&lt;live&gt;</title>" in text


def test_the_parts_of_the_page() -> None:
    """Each is used, none is overlong, and no script ends the element that it stands in."""
    folder = resources.files(page).joinpath("assets")
    assert sorted(file.name for file in folder.iterdir()) == sorted([*SCRIPTS, *STYLES, "page.html"])
    for name in SCRIPTS:
        text = folder.joinpath(name).read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 250, name
        assert not re.search("</script|<!--|innerHTML|outerHTML|insertAdjacentHTML|document.write|eval\\(", text), name
