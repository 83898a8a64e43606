"""An open head in a real browser: its map, lines, picture and numbers."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from browsing import cell, name_of, painted, settled
from demo_pages import STORY, WINDOWS, same_window

from foveate.viewer.document import Document, Opening

Opener = Callable[..., Any]


def test_hover_tells_the_weight(opened: Opener, documents: dict[str, Document]) -> None:
    tab = opened("translation", "#4/1")
    panel = documents["translation"].sites[4]
    query, key = 7, 3
    x, y = cell(tab, len(panel.queries.labels), len(panel.keys.labels), query, key)
    tab.mouse.move(x, y)
    settled(tab)
    told = tab.inner_text("#tip").split()
    assert told[:6] == ["▁Katze", "query", "7", "▁that", "key", "3"]
    assert float(told[6]) == pytest.approx(panel.rows.weights[1, query, key], abs=6e-4)
    tab.mouse.click(x, y)
    settled(tab)
    assert tab.inner_text(".chosen.query") == "▁Katze"
    assert tab.inner_text(".chosen.key") == "▁that"
    listed = [float(text) for text in tab.locator(".details section:first-child .bar-weight").all_inner_texts()]
    ordered = sorted(panel.rows.weights[1, query], reverse=True)
    np.testing.assert_allclose(listed[:10], ordered[:10], atol=6e-4)


def test_the_remaining_weight_of_a_long_row(opened: Opener, documents: dict[str, Document]) -> None:
    """From afar a cell of the pooled map; near, a pair of tokens with what all keys but the top have."""
    tab = opened("long", "#1/3")
    panel = documents["long"].sites[1]
    x, y = cell(tab, 521, 521, 300, 280)
    tab.mouse.move(x, y)
    settled(tab)
    assert re.match(r"queries 293 to 300\s+keys 276 to 283\s+together 0\.\d+", tab.inner_text("#tip"))
    for _ in range(6):
        tab.mouse.wheel(0, -400)
    settled(tab)
    tab.mouse.move(x + 1, y)
    settled(tab)
    told = tab.inner_text("#tip")
    query = int(re.search(r"query (\d+)", told)[1])  # type: ignore[index]
    assert abs(query - 300) <= 1
    assert STORY[query % len(STORY)] in told
    kept = panel.rows.keys.shape[2]
    rest = re.search(rf"all keys but the top {kept}: ([\d.]+)", told)
    assert float(rest[1]) == pytest.approx(panel.rows.rest[3, query], rel=0.01)  # type: ignore[index]
    assert f"Top {kept} keys of each row exact" in tab.inner_text(".about")
    assert "weight of a key" in tab.inner_text(".map-scale")
    assert tab.locator(".thumb-part").is_visible()
    tab.keyboard.press("0")
    settled(tab)
    assert tab.locator(".thumb-part").is_hidden()
    assert "weight on a cell" in tab.inner_text(".map-scale")


def test_drag_moves_the_map(opened: Opener) -> None:
    tab = opened("long", "#1/3")
    for _ in range(9):
        tab.keyboard.press("+")
    settled(tab)
    before = painted(tab, "canvas.map")
    box = tab.locator("canvas.map").bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    tab.mouse.move(*middle)
    tab.mouse.down()
    tab.mouse.move(middle[0] - 160, middle[1] - 160, steps=4)
    tab.mouse.up()
    settled(tab)
    assert (painted(tab, "canvas.map") != before).any()
    assert tab.locator(".details .chosen").count() == 0  # a drag chooses nothing


def test_search(opened: Opener) -> None:
    tab = opened("translation", "#4/1")
    tab.keyboard.press("/")
    tab.keyboard.type("KATZE")
    settled(tab)
    assert tab.locator("#found .option").all_inner_texts() == ["▁Katze\nquery 7"]
    tab.keyboard.press("Enter")
    settled(tab)
    assert tab.inner_text(".chosen.query") == "▁Katze"
    tab.fill("#wanted", "the")
    assert tab.locator("#found .option").all_inner_texts() == ["▁The\nkey 0", "▁the\nkey 6"]
    tab.keyboard.press("Enter")
    tab.keyboard.press("Enter")
    settled(tab)
    assert tab.inner_text(".chosen.key") == "▁the"
    tab.click("#found .option >> nth=0")
    settled(tab)
    assert tab.inner_text(".chosen.key") == "▁The"
    assert tab.evaluate("document.activeElement.id") == "wanted"
    tab.fill("#wanted", "zebra")
    assert "no token" in tab.inner_text("#found")
    tab.keyboard.press("Escape")
    assert tab.input_value("#wanted") == ""
    assert tab.locator("#found").is_hidden()


def test_search_in_a_long_text_jumps_there(opened: Opener, documents: dict[str, Document]) -> None:
    tab = opened("long", "#0/2")
    tab.keyboard.press("2")
    tab.keyboard.press("/")
    tab.keyboard.type("whale")
    for _ in range(4):
        tab.keyboard.press("Enter")
    settled(tab)
    place = STORY.index("whale") + 3 * len(STORY)
    rows = documents["long"].sites[0].rows
    listed = [float(text) for text in tab.locator(".bar-weight").all_inner_texts()]
    ordered = np.sort(rows.weights[2, place])[::-1]
    np.testing.assert_allclose(listed[:10], ordered[:10], rtol=5e-3)
    assert listed[10] == pytest.approx(rows.rest[2, place] + ordered[10:].sum(), rel=5e-3)
    assert tab.locator(f"#query-{place}").is_visible()
    assert tab.get_attribute(f"#query-{place}", "aria-selected") == "true"


def test_lines(opened: Opener, documents: dict[str, Document]) -> None:
    """A chosen query shows its weights beside its keys, and how much lies on keys out of sight."""
    tab = opened("translation", "#4/1")
    tab.click("role=tab[name='Lines']")
    tab.click("#query-7")
    tab.mouse.move(5, 5)
    settled(tab)
    weights = documents["translation"].sites[4].rows.weights[1, 7]
    for key in (0, 5, 11):
        shown = tab.inner_text(f"#key-{key} .place")
        assert float(shown) == pytest.approx(weights[key], abs=6e-4) if weights[key] >= 0.012 else shown == str(key)
    assert painted(tab, ".lines-middle canvas")[..., 3].any()
    tab.click("#query-7")
    tab.click("#key-4")
    tab.mouse.move(5, 5)
    settled(tab)
    assert tab.locator(".of-query .looked").count() > 1
    far = opened("long", "#0/2")  # looks at the first token
    far.keyboard.press("2")
    far.keyboard.press("/")
    far.keyboard.type("400")
    far.keyboard.press("Enter")
    settled(far)
    rows = documents["long"].sites[0].rows
    first = far.eval_on_selector(".of-key", "(list) => Math.floor(list.scrollTop / 24)")
    unseen = rows.weights[2, 400][(rows.keys[2, 400] >= 0) & (rows.keys[2, 400] < first)].sum()
    assert float(far.inner_text(".beyond.above")[2:]) == pytest.approx(unseen, rel=1e-2)
    assert unseen > 0.2
    far.keyboard.press("ArrowRight")  # the next head, at the same query
    settled(far)
    assert far.locator("#query-400").is_visible()
    far.keyboard.press("ArrowLeft")
    settled(far)
    far.click(".beyond.above")
    settled(far)
    assert far.locator("#key-0").is_visible()


def test_skipping_to_the_maps_stays_at_the_head(opened: Opener) -> None:
    tab = opened("translation", "#4/1")
    tab.focus(".skip")
    tab.keyboard.press("Enter")
    settled(tab)
    assert tab.evaluate("[location.hash, document.activeElement.id]") == ["#4/1", "main"]
    assert tab.locator(".stage").is_visible()


def test_beside_the_plot_is_no_cell(opened: Opener) -> None:
    tab = opened("translation", "#4/1")
    box = tab.locator("canvas.map").bounding_box()
    tab.mouse.click(box["x"] + box["width"] - 2, box["y"] + box["height"] - 2)
    settled(tab)
    assert tab.inner_text("#said") == "decoder.0.cross, head 1"


def test_image(opened: Opener, documents: dict[str, Document]) -> None:
    """The picture opens first; one steps through the output tokens, and patches tell their weights."""
    tab = opened("image", "#1/0")
    panel = documents["image"].sites[1]
    assert tab.locator("role=tab[selected=true]").inner_text() == "Picture"
    assert tab.eval_on_selector(".picture-image", "(image) => image.naturalWidth") == 224
    for _ in range(3):
        tab.click("role=button[name='Next query']")
    settled(tab)
    assert tab.inner_text(".picture-query").startswith("boat")
    box = tab.locator(".picture-weights").bounding_box()
    tab.mouse.move(box["x"] + box["width"] * 4.5 / 14, box["y"] + box["height"] * 8.5 / 14)
    settled(tab)
    told = tab.inner_text("#tip")
    assert "row 9, column 5" in told
    weight = panel.rows.weights[0, 3, np.flatnonzero(panel.rows.keys[0, 3] == 1 + 8 * 14 + 4)[0]]
    assert float(re.search(r"\n([\d.]+)", told)[1]) == pytest.approx(weight, rel=0.01)  # type: ignore[index]
    dark = painted(tab, ".picture-weights")[..., 3]  # how much each place is darkened
    high, wide = dark.shape
    assert dark[int(high * 8.3 / 14), int(wide * 4.3 / 14)] < 60 < dark[int(high * 0.5 / 14), int(wide * 13.5 / 14)]


def test_the_picture_plays_and_blurs(opened: Opener) -> None:
    """Every query in turn, until it is stopped; where the weights are small the image is blurred."""
    tab = opened("image", "#0/0")
    first = tab.inner_text(".picture-query")
    tab.click(".player >> text=Play")
    tab.wait_for_function(
        "(first) => ![undefined, first].includes(document.querySelector('.picture-query')?.innerText)", arg=first
    )
    tab.click("text=Pause")
    assert tab.locator(".player button", has_text="Play").get_attribute("aria-pressed") == "false"
    tab.click("text=Fovea")
    tab.wait_for_function("() => document.querySelector('.picture-image').style.filter.includes('blur')")
    sharp = painted(tab, ".picture-weights")[..., 3]
    assert sharp.max() > 200 > 100 > sharp.min()
    tab.click("text=Fovea")
    tab.wait_for_function("() => !document.querySelector('.picture-image').style.filter")


def test_patches_choose_patches(opened: Opener) -> None:
    tab = opened("image", "#0/1")
    box = tab.locator(".picture-weights").bounding_box()
    tab.mouse.click(box["x"] + box["width"] * 2.5 / 14, box["y"] + box["height"] * 5.5 / 14)
    settled(tab)
    assert tab.inner_text(".chosen.query") == "row 6, column 3"


@pytest.mark.parametrize("site", range(3))
@pytest.mark.parametrize("patch", [(1, 0), (17, 9), (28, 20)])
def test_windows(opened: Opener, site: int, patch: tuple[int, int]) -> None:
    """Only the window of the chosen patch lies in the light, in its place in the picture."""
    tab = opened("windows", f"#{site}/1", 900, 1500)
    box, (row, column) = tab.locator(".picture-weights").bounding_box(), patch
    tab.mouse.click(box["x"] + box["width"] * (column + 0.5) / 22, box["y"] + box["height"] * (row + 0.5) / 30)
    tab.mouse.move(5, 5)
    settled(tab)
    assert tab.inner_text(".chosen.query") == f"row {row + 1}, column {column + 1}"
    inside = same_window(WINDOWS[site])[22 * row + column].view(30, 22).numpy()
    dark = painted(tab, ".picture-weights")[..., 3]
    high, wide = dark.shape
    middles = dark[np.ix_((np.arange(30) * 2 + 1) * high // 60, (np.arange(22) * 2 + 1) * wide // 44)]
    np.testing.assert_array_equal(middles < round(0.8 * 255), inside)
    assert "The frame is the query's window." in tab.inner_text(".picture")
    others = re.search(r"([\d,]+) other keys?", tab.inner_text(".details"))
    listed = tab.locator(".details section:first-child .bar-place").count()
    assert (int(others[1]) if others else 0) == inside.sum() - listed
    exact = "Every weight within a window" if site == 0 else "Top 24 keys of each row exact"
    assert exact in tab.inner_text(".about")


def test_sound(opened: Opener) -> None:
    tab = opened("sound", "#2/1")
    assert tab.locator("role=tab[selected=true]").inner_text() == "Sound"
    box = tab.locator(".picture-weights").bounding_box()
    tab.mouse.move(box["x"] + box["width"] / 4, box["y"] + 20)
    settled(tab)
    assert re.search(r"1\.\d\d s", tab.inner_text("#tip"))  # a quarter of six seconds
    tab.mouse.move(5, 5)
    settled(tab)
    assert not marked(tab)
    tab.mouse.click(box["x"] + box["width"] / 4, box["y"] + 20)
    tab.mouse.move(5, 5)
    settled(tab)
    assert marked(tab)  # also when the pointer is gone


def marked(tab: Any) -> bool:
    """Whether a moment has the colour of a chosen key."""
    return bool((painted(tab, ".picture-weights")[5, :, :3] == (0xFF, 0xB1, 0x4E)).all(1).any())


def test_a_portrait_on_a_narrow_screen_has_its_size_at_once(opened: Opener) -> None:
    tab = opened("odd", "#1/0", width=400)
    high = tab.eval_on_selector(".picture-frame", "(frame) => frame.offsetHeight")
    assert high == 640  # of the screen's 800
    tab.wait_for_timeout(200)
    assert tab.eval_on_selector(".picture-frame", "(frame) => frame.offsetHeight") == high


def test_labels_are_not_cut_where_there_is_room(opened: Opener) -> None:
    """From afar a label has its number as well, and room for both, also on the longer side."""
    tab = opened("story", "#0/0")
    tab.fill("#wanted", "lighthouse")
    tab.evaluate(
        "() => { const write = CanvasRenderingContext2D.prototype.fillText; window.written = [];"
        "CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {"
        "window.written.push(text); return write.call(this, text, ...at); }; }"
    )
    for width in (1900, 1200):
        tab.evaluate("window.written = []")
        tab.set_viewport_size({"width": width, "height": 800})
        tab.wait_for_timeout(200)
        settled(tab)
        written = tab.evaluate("window.written")
        assert "3 lighthouse" in written  # the longest, written as it is found
        assert not [text for text in written if "…" in text]


def test_texts_that_are_composed(opened: Opener) -> None:
    """An umlaut of two characters is found as one; an emoji counts as one; a long name of a layer has its room."""
    tab = opened("odd", "#0/0")
    tab.keyboard.press("2")
    tab.fill("#wanted", "müde")
    settled(tab)
    assert tab.locator("#found .option .muted").all_inner_texts() == ["query 1", "key 1"]
    assert tab.inner_text("#query-0 .text") == "😀" * 25
    assert tab.inner_text("#query-2 .text") == "x" * 39 + "…"
    tab.click(".back")
    settled(tab)
    right = tab.eval_on_selector(
        ".layer:not(.numbers) .layer-name",
        "(name) => { const text = document.createRange(); text.selectNodeContents(name);"
        "return text.getBoundingClientRect().right; }",
    )
    assert right <= tab.locator(".layer:not(.numbers) .maps").first.bounding_box()["x"]


def test_a_page_opens_with_a_word_over_the_picture(opened: Opener, documents: dict[str, Document]) -> None:
    """With the mean of the heads; the overview is one step away."""
    tab = opened("opening")
    tab.wait_for_selector(".picture-image")
    assert name_of(tab) == ("caption.1.cross", "mean of heads")
    assert tab.inner_text(".picture-query").startswith(documents["opening"].sites[3].queries.labels[2])
    assert documents["opening"].opening == Opening("caption.1.cross", 2)
    tab.keyboard.press("Escape")
    tab.wait_for_selector(".overview")
