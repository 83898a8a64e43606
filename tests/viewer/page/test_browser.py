"""The page in a real browser: overview, ways through it, looks, and that nothing runs that is not its own."""

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
from browsing import cell, expect, name_of, painted, settled
from demo_pages import STORY

from foveate.viewer import page
from foveate.viewer.document import Document

Opener = Callable[..., Any]


def test_few_heads_are_large_and_have_their_tokens(opened: Opener, documents: dict[str, Document]) -> None:
    tab = opened("few")
    (site,) = documents["few"].sites
    for side, name in ((site.keys, "keys"), (site.queries, "queries")):
        shown = tab.locator(f".thumb-tokens >> nth=1 >> .{name} bdi").all_inner_texts()
        assert shown == [*side.labels]
    box = tab.locator(".thumb >> nth=0").bounding_box()
    assert box is not None
    assert box["width"] > 250
    assert opened("translation").locator(".thumb-tokens").count() == 0


def test_the_overview(opened: Opener, documents: dict[str, Document]) -> None:
    """A map for each head, grouped by site; the colours are those of the weights."""
    tab = opened("translation")
    assert tab.title() == documents["translation"].title
    assert tab.locator(".group h2").all_inner_texts() == ["decoder.∗.cross", "encoder.∗.self", "decoder.∗.self"]
    assert tab.locator(".thumb:not(.derived)").count() == 36
    thumb = '.thumb[data-site="4"][data-head="1"] canvas'
    assert tab.get_attribute('.thumb[data-site="4"][data-head="1"]', "aria-label") == "decoder.0.cross, head 1"
    tab.wait_for_selector(thumb + ".painted")
    weights = documents["translation"].sites[4].maps[1]
    colours = painted(tab, thumb)
    assert colours.shape == (14, 12, 4)
    darkest = np.unravel_index(colours[..., :3].sum(2, dtype=int).argmin(), (14, 12))
    assert darkest == np.unravel_index(weights.argmax(), (14, 12))
    assert tuple(colours[darkest]) == (0x1C, 0x23, 0x48, 255)
    assert "The small dog" in tab.inner_text("h1")
    assert tab.locator(".pieces").first.inner_text().startswith("▁The")


def test_the_first_view_comes_soon(opened: Opener, record_property: Callable[[str, object], None]) -> None:
    tab = opened("long")
    time = tab.evaluate("performance.now()")
    record_property("first_view_ms", round(time))
    assert time < 10_000


def test_what_nobody_scrolls_to_is_painted_too(opened: Opener) -> None:
    """For those who print the page."""
    tab = opened("translation", width=400, height=120)
    tab.wait_for_selector(".thumb canvas:not(.painted)", state="detached")
    assert tab.evaluate("scrollY") == 0


def test_keyboard(opened: Opener) -> None:
    """Heads, layers and rows by arrows; Enter opens, Escape goes back to the same place."""
    tab = opened("story")
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowDown", "Enter"):
        tab.keyboard.press(key)
    tab.wait_for_selector("canvas.map")
    assert name_of(tab) == ("h.1.attn", "head 2")
    tab.keyboard.press("ArrowRight")
    expect(tab, ("h.1.attn", "head 3"))
    tab.keyboard.press("Shift+ArrowDown")
    expect(tab, ("h.2.attn", "head 3"))
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("ArrowDown")
    settled(tab)
    assert tab.inner_text(".chosen.query") == STORY[1]
    tab.keyboard.press("Shift+ArrowRight")
    settled(tab)
    assert tab.inner_text(".chosen.key") == STORY[0]
    assert re.search(r"query 1, the; key 0, When; 0\.\d+", tab.inner_text("#said"))
    tab.keyboard.press("?")
    assert tab.locator("#help").is_visible()
    tab.keyboard.press("Escape")
    assert tab.locator("#help").is_hidden()
    tab.keyboard.press("Escape")
    tab.wait_for_selector(".overview")
    assert tab.evaluate("document.activeElement.dataset.site + '/' + document.activeElement.dataset.head") == "2/3"
    tab.go_back()
    expect(tab, ("h.2.attn", "head 3"))


def test_dark_and_light(opened: Opener) -> None:
    tab = opened("story", scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = tab.evaluate(ground)
    assert sum(map(int, re.findall(r"\d+", dark))) < 100
    assert painted(tab, ".thumb canvas")[-1, 0, :3].max() < painted(tab, ".thumb canvas")[:, :, :3].max()
    tab.click("#theme")
    assert sum(map(int, re.findall(r"\d+", tab.evaluate(ground)))) > 700
    tab.reload()
    tab.wait_for_selector("html[data-ready]")
    assert tab.get_attribute("html", "data-theme") == "light"  # remembered
    tab.keyboard.press("t")
    assert tab.evaluate(ground) == dark


@pytest.mark.parametrize(
    ("name", "address"),
    [("story", ""), ("story", "#1/2"), ("translation", "#4/1"), ("image", "#1/0"), ("sound", "#2/1")],
)
def test_no_width_is_too_small_or_too_large(opened: Opener, name: str, address: str) -> None:
    tab = opened(name, address)
    for width in (400, 2000):
        tab.set_viewport_size({"width": width, "height": 900})
        settled(tab)
        for view in tab.locator("role=tab").all_inner_texts() or [""]:
            if view:
                tab.click(f"role=tab[name='{view}']")
            settled(tab)
            assert tab.evaluate("document.documentElement.scrollWidth") <= width, view


def test_all_heads_on_one_scale(opened: Opener, documents: dict[str, Document]) -> None:
    tab = opened("story")
    thumb = '.thumb[data-site="0"][data-head="7"] canvas'
    tab.wait_for_selector(thumb + ".painted")
    own = painted(tab, thumb)[..., :3].sum(2, dtype=int)
    tab.click("#alike")
    alike = painted(tab, thumb)[..., :3].sum(2, dtype=int)
    assert (alike >= own).all()  # paler: no weight of this head is 1
    assert alike.min() >= own.min()
    assert "1" in tab.inner_text(".legend-ticks")


def test_the_legend_has_numbers_and_even_heads_are_marked(opened: Opener, documents: dict[str, Document]) -> None:
    tab = opened("translation")
    tab.wait_for_selector(".thumb canvas:not(.painted)", state="detached")
    assert re.search(r"largest weight of a head is 0\.\d+ to 1\.", tab.inner_text(".marked"))
    best = tab.locator(".thumb.decided")
    assert best.count() == 1
    assert tab.inner_text(".marked .link") == best.get_attribute("aria-label")
    best.hover()
    site, head = (int(best.get_attribute(f"data-{name}")) for name in ("site", "head"))
    most = documents["translation"].sites[site].maps[head].max()
    assert float(tab.inner_text(".legend-ticks span >> nth=2")) == pytest.approx(most, rel=0.05)
    tab.click(".marked .link")
    tab.wait_for_selector("canvas.map")
    assert ", ".join(name_of(tab)) == documents["translation"].sites[site].name + f", head {head}"
    even = opened("even")
    even.wait_for_selector(".thumb.even")
    assert even.locator(".thumb.even").count() == 1
    even.click(".thumb.even")
    even.wait_for_selector("canvas.map")
    assert "Nearly even" in even.inner_text(".map-scale")


def test_a_token_is_lit_in_every_head(opened: Opener) -> None:
    tab = opened("translation")
    tab.hover(".piece[data-side='0'] >> nth=2")  # of the source: queries and keys of the encoder, keys of the others
    assert tab.locator(".thumb:not(.derived) .lit-row:visible").count() == 12
    assert tab.locator(".thumb:not(.derived) .lit-column:visible").count() == 24
    assert tab.eval_on_selector(".lit-column", "(line) => line.style.left").startswith("16.6")
    tab.hover("h1")
    assert tab.locator(".lit:visible").count() == 0
    tab.goto(tab.url.split("#")[0] + "#6/1")
    tab.wait_for_selector("canvas.map")
    settled(tab)
    tab.mouse.move(*cell(tab, 14, 14, 3, 1))
    settled(tab)
    assert tab.locator(".film .lit-row:visible").count() == tab.locator(".film .lit-column:visible").count() == 5


def test_the_tooltip_ends_with_its_view_and_the_scale_has_a_name(opened: Opener) -> None:
    tab = opened("translation", "#6/1", width=400)
    assert tab.locator(".tools-name").is_visible()
    tab.mouse.move(*cell(tab, 14, 14, 3, 1))
    tab.locator("#tip").wait_for()
    tab.keyboard.press("2")
    assert tab.locator("#tip").is_hidden()


def test_the_only_head_is_open_at_once(opened: Opener) -> None:
    tab = opened("single")
    tab.wait_for_selector("canvas.map")
    tab.keyboard.press("Escape")
    tab.wait_for_selector(".overview")


def test_a_link_keeps_head_token_and_view(opened: Opener) -> None:
    tab = opened("translation", "#5/1")
    tab.keyboard.press("2")
    for _ in range(3):
        tab.keyboard.press("ArrowDown")
    tab.click("text=Copy link")
    tab.wait_for_selector(".tool:text-matches('Copied|address bar')")
    assert tab.url.endswith("#5/1?query=2&view=lines")
    other = opened("translation", "#5/1?query=2&view=lines&scale=all")
    settled(other)
    assert other.inner_text(".chosen.query") == tab.inner_text(".chosen.query")
    assert other.inner_text("role=tab[selected=true]") == "Lines"
    assert other.get_attribute("#alike", "aria-pressed") == "true"
    odd = opened("translation", "#5/1?query=999&key=-1&view=none")
    assert odd.locator(".chosen").count() == 0


def test_a_head_is_saved_as_picture_and_table(opened: Opener, documents: dict[str, Document], tmp_path: Path) -> None:
    tab = opened("translation", "#6/1")
    found = {}
    for name in ("PNG", "CSV"):
        with tab.expect_download() as download:
            tab.click(f".tool >> text={name}")
        found[name] = tmp_path / download.value.suggested_filename
        download.value.save_as(found[name])
    assert [path.name for path in found.values()] == ["decoder.1.cross-head-1.png", "decoder.1.cross-head-1.csv"]
    rows = list(csv.DictReader(found["CSV"].read_text().splitlines()))
    panel = documents["translation"].sites[6]
    assert rows[13]["query_token"] == panel.queries.labels[1]
    weights = np.array([float(row["weight"]) for row in rows]).reshape(14, 12)
    np.testing.assert_allclose(weights, panel.rows.weights[1], rtol=1e-3)
    with PIL.Image.open(found["PNG"]) as picture:
        assert min(picture.size) > 300
        assert picture.convert("L").getextrema()[0] < 60


def test_nothing_given_is_run(opened: Opener) -> None:
    """Tokens, names and notes that would be markup or scripts are texts; those that hide are written out."""
    tab = opened("evil")
    assert tab.title() == "</script><script>document.title='ran'</script>"
    for view in ("", "1", "2"):
        if view:
            tab.keyboard.press(view)
        else:
            tab.click(".thumb >> nth=0")
        settled(tab)
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("/")
    tab.keyboard.type("script")
    settled(tab)
    assert "ran" not in (tab.title().removeprefix("</script><script>document.title='ran'</script>"))
    assert tab.locator("img, iframe, object").count() == 0
    shown = tab.locator(".of-query .text").all_inner_texts()
    assert shown[1] == "<img src=x onerror=document.title='ran'>"
    assert shown[6:8] == ["⟨202E⟩overridden⟨202C⟩", "⟨0000⟩⟨0007⟩⟨001B⟩[31m"]
    assert shown[8] == "שלום"
    assert shown[9] == "👩‍🔬"
    assert shown[11] == "⟨FE0F⟩"
    assert shown[-1] == "∅"


def test_what_is_added_to_a_page_is_not_run(chromium: Any, documents: dict[str, Any]) -> None:
    """Nor would be what got past the escaping: the policy names the page's own script, and no other."""
    text = page.to_html(documents["story"])
    added = (
        "<script>document.title='ran'</script><img src=x onerror=\"document.title='ran'\"><style>*{color:red}</style>"
    )
    path = documents["folder"] / "tampered.html"
    path.write_text(text.replace("<main", f"{added}<main"), encoding="utf-8")
    context = chromium.new_context()
    tab, told = context.new_page(), []
    tab.on("console", lambda message: told.append(message.text))
    tab.goto(f"file://{path}")
    tab.wait_for_selector(".thumb canvas.painted")
    assert tab.title() == documents["story"].title
    assert sum("Content Security Policy" in text for text in told) == 4  # script, style, picture, what its failure runs
    context.close()


def test_in_a_notebook(chromium: Any, documents: dict[str, Document]) -> None:
    """A frame that may run scripts but has no origin: no storage, no address of its own."""
    context = chromium.new_context(viewport={"width": 900, "height": 800})
    tab, errors = context.new_page(), []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.on("console", lambda message: errors.append(message.text))
    tab.set_content(f"<!doctype html><p>cell</p>{page.to_iframe(documents['translation'])}")
    frame = tab.frame_locator("iframe")
    frame.locator(".thumb canvas.painted").first.wait_for()
    frame.locator('.thumb[data-site="4"][data-head="1"]').click()
    frame.locator(".head-name:text-is('head 1')").wait_for()
    frame.locator("#theme").click()
    frame.locator(".back").click()
    frame.locator(".overview").wait_for()
    context.close()
    assert errors == []


def test_a_browser_without_decompression(chromium: Any, documents: dict[str, Any]) -> None:
    context = chromium.new_context()
    tab = context.new_page()
    tab.add_init_script("delete window.DecompressionStream")
    tab.goto(f"file://{documents['folder'] / 'story'}.html")
    assert "no DecompressionStream" in tab.inner_text(".message[role=alert]")
    context.close()
