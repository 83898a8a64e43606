"""The explorer in a real browser: type, see, zoom, go back, and read what went wrong."""

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from browsing import cell, until
from served_model import Client, FakeViewer, Serve

from foveate.viewer.protocol import Input, LookResult
from foveate.viewer.server import tiles
from foveate.viewer.sides import Image

EVIL = "</script><script>document.title='run'</script> <img src=x onerror=alert(1)>"

Opener = Callable[..., Any]


@pytest.fixture
def opened(chromium: Any) -> Iterator[Opener]:
    """`opened(client)`: a tab with its page, which at last must have no errors but those that are expected."""
    contexts, errors, expected = [], [], []

    def open_page(client: Client, width: int = 1280, scheme: str = "light", refused: int = 0) -> Any:
        context = chromium.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        contexts.append(context)
        expected.append(refused)
        tab = context.new_page()
        tab.on("console", lambda message: errors.append(message.text))
        tab.on("pageerror", lambda error: errors.append(str(error)))
        tab.goto(f"http://127.0.0.1:{client.port}/")
        return tab

    yield open_page
    for context in contexts:
        context.close()
    assert len([error for error in errors if error.startswith("Failed to load resource")]) == sum(expected)
    assert [error for error in errors if not error.startswith("Failed to load resource")] == []


def look(tab: Any, text: str) -> None:
    tab.fill("#given", text)
    tab.press("#given", "Control+Enter")
    tab.wait_for_selector(".prompt-look:enabled")


def words(count: int) -> str:
    return " ".join(f"word{place}" for place in range(count))


def test_type_see_and_open(served: Serve, opened: Opener) -> None:
    tab = opened(client := served())
    assert tab.locator(".thumb").count() == 0
    assert tab.inner_text(".prompt-name") == client.viewer.name
    look(tab, f"first {EVIL}")
    tab.wait_for_selector(".thumb canvas.painted")
    assert tab.inner_text("h1") == f"first {EVIL}"
    assert tab.locator(".thumb:not(.derived) canvas").count() == 6
    assert tab.locator(".thumb.derived").count() == 2 + 1  # the means of two layers, and the rollout
    assert tab.title() == f"first {EVIL}"
    assert tab.locator("img").count() == 0
    tab.click('.thumb[data-site="1"][data-head="2"]')
    tab.wait_for_selector("canvas.map")
    assert tab.inner_text(".head-name") == "head 2"
    until(tab, lambda: "Every weight is exact." in tab.inner_text(".details"))


def test_examples_and_enter_and_the_limit_of_the_model(served: Serve, opened: Opener) -> None:
    tab = opened(served())
    assert "up to 1,500 tokens" in tab.inner_text(".prompt-head")
    tab.click(".prompt-example >> nth=0")
    tab.wait_for_selector(".thumb canvas.painted")
    assert tab.inner_text("h1") == "one two </script>"
    tab.fill("#given", "four")
    tab.press("#given", "Shift+Enter")
    assert tab.input_value("#given") == "four\n"
    tab.fill("#given", "four five")
    tab.press("#given", "Enter")
    tab.wait_for_selector("h1:text-is('four five')")


def test_a_long_text_is_zoomed_to_exact_weights(served: Serve, opened: Opener) -> None:
    """521 tokens: a map that is sent in parts. The number under the pointer is the weight of the sight."""
    client = served()
    tab = opened(client)
    look(tab, words(521))
    tab.wait_for_selector(".thumb canvas.painted")
    tab.click('.thumb[data-site="0"][data-head="1"]')
    canvas = tab.locator("canvas.map")
    box = canvas.bounding_box()
    assert box is not None
    with tab.expect_response(lambda response: "/tile/0/1" in response.url and "rows=0,521" not in response.url):
        for _ in range(10):
            tab.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + box["height"] * 0.6)
            tab.mouse.wheel(0, -300)
    tip = tab.locator("#tip")

    def finer() -> bool:
        for shift in (2, 3):  # a tip is made anew where the pointer moves
            tab.mouse.move(box["x"] + box["width"] * 0.3 + shift, box["y"] + box["height"] * 0.6 + 3)
        return tip.is_visible() and "at most" not in tip.inner_text()

    until(tab, finer)
    lines = tip.inner_text().split("\n")
    query, key = (int(next(line for line in lines if line.startswith(what)).split()[-1]) for what in ("query ", "key "))
    weight = float(client.viewer.seen[words(521)].sight["layers.0"].weights([1], [query], [key]))
    told = next(line for line in lines if line[:1].isdigit() or line.startswith("<"))
    assert weight < 1e-6 if told.startswith("<") else float(told) == pytest.approx(weight, rel=0.01, abs=1e-6)
    assert not any("at most" in line for line in lines)


def test_what_was_seen_before_comes_back(served: Serve, opened: Opener) -> None:
    tab = opened(served())
    for text in ("one two three", "four five"):
        look(tab, text)
        tab.wait_for_selector(f"h1:text('{text}')")
    tab.select_option(".prompt-before", label="one two three")
    tab.wait_for_selector("h1:text('one two three')")
    assert tab.input_value("#given") == "one two three"
    tab.reload()
    tab.wait_for_selector("h1:text('four five')")


def test_heads_are_removed_and_brought_back(served: Serve, opened: Opener) -> None:
    """By shift and a click in the overview, by a button of an open head; the answer is compared with that before."""
    client = served()
    original = client.viewer.look

    def answering(given: Input, most: int, sites: Any = None, measure: str = "weights") -> LookResult:
        found = original(given, most, sites)
        mean = float(found.sight["layers.1"].weights().square().mean())
        return replace(found, notes=[*found.notes, f"Output: {mean:.6f}"])

    client.viewer.look = answering
    tab = opened(client)
    look(tab, "one two three four")
    tab.wait_for_selector(".thumb canvas.painted")
    whole = tab.inner_text(".notes li >> nth=1")
    tab.click('.thumb[data-site="0"][data-head="1"]', modifiers=["Shift"])
    tab.wait_for_selector(".thumb.removed-head")
    tab.wait_for_selector(".removed-answer b")
    until(tab, lambda: tab.inner_text(".removed-list").startswith("Without"))
    before, now = tab.locator(".removed-answer p").all_inner_texts()
    assert before == f"Before: {whole}"
    assert now.startswith("Now: Output: ")
    assert now.removeprefix("Now: ") != whole
    tab.click('.thumb[data-site="0"][data-head="2"]')
    tab.click("button:text('Remove this head')")
    tab.wait_for_selector("button:text('Bring it back')")
    until(tab, lambda: tab.locator(".removed-list .prompt-example").count() == 2)
    tab.click("button.back >> nth=0")
    tab.click('.thumb[data-site="0"][data-head="0"]')
    tab.mouse.click(*cell(tab, 4, 4, 2, 1))
    tab.click("button:text('Remove it')")
    tab.wait_for_selector(".pair button:text('Bring it back')")
    assert "three → two" in tab.inner_text(".removed-list")
    until(tab, lambda: tab.inner_text(".pair b") == "0")
    tab.click("button:text('Bring all back')")
    tab.wait_for_selector("button:text('Remove this head')")
    assert tab.locator(".removed").is_hidden()
    tab.click("button.back >> nth=0")
    until(tab, lambda: tab.locator(".thumb.removed-head").count() == 0)
    until(tab, lambda: tab.inner_text(".notes li >> nth=1") == whole)


def test_what_goes_wrong_is_told(served: Serve, opened: Opener) -> None:
    tab = opened(served(tokens=5), refused=1)
    look(tab, "one two three four five six")
    assert tab.inner_text(".prompt-error") == "The text has 6 tokens, but at most 5 are looked at."
    look(tab, "one two three")
    tab.wait_for_selector(".thumb canvas.painted")
    assert tab.locator(".prompt-error").is_hidden()


def test_a_file_is_sent(served: Serve, opened: Opener) -> None:
    tab = opened(served("image", file_bytes=7), refused=0)
    tab.set_input_files("#given", {"name": "a.png", "mimeType": "image/png", "buffer": b"12345678"})
    tab.wait_for_selector(".prompt-error:visible")
    assert tab.inner_text(".prompt-error").startswith("A.png is too large")
    tab.set_input_files("#given", {"name": "b.png", "mimeType": "image/png", "buffer": b"1234567"})
    tab.wait_for_selector("h1:text('b.png')")


DROP = """() => {
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File(["1234567"], "c.png", { type: "image/png" }));
  const taken = !document.body.dispatchEvent(new DragEvent("dragover", { bubbles: true, cancelable: true }));
  document.body.dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer }));
  return taken;
}"""


def test_a_file_is_dropped_anywhere(served: Serve, opened: Opener) -> None:
    tab = opened(served("image"))
    assert tab.evaluate(DROP), "otherwise the browser would open the file"
    tab.wait_for_selector("h1:text('c.png')")


@pytest.mark.parametrize(("width", "scheme"), [(400, "light"), (1400, "dark")])
def test_nothing_is_wider_than_the_screen(served: Serve, opened: Opener, width: int, scheme: str) -> None:
    tab = opened(served(), width, scheme)
    for place in range(2):
        look(tab, f"{words(67)} {place}")
    tab.wait_for_selector(".thumb canvas.painted")
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    tab.click(".thumb >> nth=0")
    tab.wait_for_selector("canvas.map")
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_what_is_on_its_way_is_no_zero(served: Serve, opened: Opener) -> None:
    """Rows that are late: until they are here no weight is told, afterwards all that look at the chosen key."""
    client, late = served(), []
    tab = opened(client)
    tab.route("**/rows/**", lambda row: late.append(row))
    look(tab, words(600))
    tab.click('.thumb[data-site="1"][data-head="2"]')
    box = tab.locator("canvas.map").bounding_box()
    assert box is not None
    tab.mouse.click(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.8)
    tab.wait_for_selector(".chosen.key")
    assert tab.inner_text(".pair") == "the query above, weight: on its way"
    assert tab.inner_text("#said").endswith("; on its way")
    assert "none yet: 0 of 600 queries are here so far" in tab.inner_text(".details")
    query, key = (int(tab.inner_text(f".chosen.{side}").removeprefix("word")) for side in ("query", "key"))
    for row in late:
        row.continue_()
    tab.wait_for_selector(".pair b:not(:text('on its way'))")
    assert tab.inner_text("#said").endswith(f"; {tab.inner_text('.pair b')}")
    top = client.viewer.seen[words(600)].sight["layers.1"].weights()[0, 2].topk(16)
    lookers = (top.indices == key) & (top.values > 0)
    tab.wait_for_selector(".details:not(:has-text('so far'))")  # the query's own rows may come before others
    told = tab.inner_text(".details section:nth-of-type(2)")
    assert len(late) == 5
    assert f"and {lookers.sum() - 10} more" in told if lookers.sum() > 10 else "more" not in told
    assert "so far" not in told
    assert query in range(600)


def test_from_afar_a_finer_map_is_told(served: Serve, opened: Opener) -> None:
    """600 tokens in 256 x 256 cells: the tip is that of a cell of these, and the scale ends with the largest."""
    client = served()
    tab = opened(client)
    look(tab, words(600))
    with tab.expect_response(lambda response: "/tile/0/1" in response.url):
        tab.click('.thumb[data-site="0"][data-head="1"]')
    site = client.viewer.seen[words(600)].sight["layers.0"]
    finer = tiles.compute_tile(site, 1, (0, 600), (0, 600), (256, 256))
    most = pytest.approx(finer.max(), rel=0.05)
    until(tab, lambda: float(tab.locator(".map-scale .legend-ticks span").last.inner_text()) == most)
    box = tab.locator("canvas.map").bounding_box()
    assert box is not None
    tab.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.8)
    tab.locator("#tip").wait_for()
    told = tab.inner_text("#tip")
    query, key = (int(re.search(rf"{name} (\d+)", told)[1]) for name in ("queries", "keys"))  # type: ignore[index]
    row, column = ((place * 256 + 599) // 600 for place in (query, key))
    assert float(re.search(r"together ([\d.]+)", told)[1]) == pytest.approx(finer[row, column], rel=0.01)  # type: ignore[index]


def test_a_picture_has_no_weights_of_another_query(served: Serve, opened: Opener) -> None:
    client, late = served("image"), []
    read = client.viewer.look

    def pictured(given: Input, most: int, sites: Sequence[str] | None = None, measure: str = "weights") -> LookResult:
        seen = read(given, most)
        image = Image.of(np.arange(3 * 34 * 34).reshape(34, 34, 3) % 251, 17, 17)
        return replace(seen, tokens=dict.fromkeys(seen.sight.sites, image))

    client.viewer.look = pictured  # type: ignore[method-assign]
    tab = opened(client)
    tab.set_input_files("#given", {"name": "a.png", "mimeType": "image/png", "buffer": bytes(288)})
    tab.wait_for_selector(".thumb canvas.painted")
    tab.click(".back")  # the page opens on the picture
    tab.click('.thumb[data-site="0"][data-head="0"]')
    tab.wait_for_selector(".picture-main .note:has-text('Brightest patch')")
    weights = tab.locator(".picture-weights")
    drawn = (
        "(canvas) => { const { width, height } = canvas;"
        "const empty = Object.assign(document.createElement('canvas'), { width, height });"
        "return canvas.toDataURL() !== empty.toDataURL(); }"
    )
    until(tab, lambda: weights.evaluate(drawn))
    tab.route("**/rows/**", lambda row: late.append(row))
    tab.fill(".stepper input", "200")
    tab.wait_for_selector(".picture-main .note:text('on its way')")
    assert not weights.evaluate(drawn)
    until(tab, lambda: late)
    late[0].continue_()
    tab.wait_for_selector(".picture-main .note:has-text('Brightest patch')")
    until(tab, lambda: weights.evaluate(drawn))


def test_a_larger_window_has_a_finer_map_of_what_comes_into_sight(served: Serve, opened: Opener) -> None:
    tab = opened(served(), width=1000)
    look(tab, words(600))
    tab.click('.thumb[data-site="0"][data-head="1"]')
    tab.wait_for_selector("canvas.map")
    with tab.expect_response(lambda response: "/tile/0/1" in response.url and "rows=0,600" not in response.url):
        tab.keyboard.press("+")
    with tab.expect_response(lambda response: "/tile/0/1" in response.url):
        tab.set_viewport_size({"width": 1480, "height": 800})


def test_a_new_look_with_a_head_open(served: Serve, opened: Opener) -> None:
    """Until its maps are here the overview is shown, and no head of another input; who types keeps the focus."""
    tab, late = opened(served()), []
    look(tab, "one two three")
    tab.click('.thumb[data-site="0"][data-head="1"]')
    tab.wait_for_selector("canvas.map")
    tab.route("**/maps/0", lambda maps: late.append(maps))
    tab.fill("#given", "four five")
    tab.press("#given", "Control+Enter")
    tab.wait_for_selector("h1:text('four five')")
    assert tab.locator(".stage").count() == 0
    until(tab, lambda: late)
    late[0].continue_()
    tab.wait_for_selector(".stage canvas.map")
    assert tab.evaluate("document.activeElement.id") == "given"


def test_what_is_asked_for_meanwhile_comes_next(served: Serve, opened: Opener) -> None:
    client, go_on = served(), threading.Event()
    tab = opened(client)
    look(tab, "one two three")
    client.viewer.before = lambda given: given != "four" or go_on.wait(30)
    for text in ("four", "five", "six"):
        tab.fill("#given", text)
        tab.press("#given", "Control+Enter")
    go_on.set()
    tab.wait_for_selector("h1:text('six')")
    assert set(client.viewer.seen) == {"one two three", "four", "six"}


def test_a_layer_that_failed_is_asked_for_again(served: Serve, opened: Opener) -> None:
    tab = opened(served(), refused=1)
    tab.route("**/maps/1", lambda maps: maps.fulfill(status=503, json={"message": "too much to do"}), times=1)
    look(tab, "one two three")
    tab.wait_for_selector(".message:text('too much to do')")
    tab.click('.thumb[data-site="0"][data-head="1"]')
    tab.click(".back")
    tab.wait_for_selector('.thumb[data-site="1"] canvas.painted')


def open_names(tab: Any) -> tuple[str, str]:
    """The sites of the open head and of the one beside it."""
    tab.wait_for_selector(".beside-pane canvas.map")
    return tuple(
        tab.eval_on_selector(f"select[aria-label='{name}']", "(list) => list.selectedOptions[0].text")
        for name in ("Site", "Site beside")
    )  # type: ignore[return-value]


def test_two_texts_beside_each_other(served: Serve, opened: Opener) -> None:
    tab = opened(served())
    assert tab.locator("#given-beside").is_hidden()
    tab.click(".prompt-two")
    tab.fill("#given", "one two three")
    tab.fill("#given-beside", "four five")
    tab.press("#given-beside", "Enter")
    tab.wait_for_selector("h1:text-is('A: one two three · B: four five')")
    tab.wait_for_selector(".thumb canvas.painted")
    tab.click('.thumb[data-site="1"][data-head="2"]')
    assert open_names(tab) == ("A.layers.1", "B.layers.1")
    assert tab.locator(".details .about dd", has_text="2 queries").count() == 1
    tab.click(".back")
    tab.click(".prompt-two")
    look(tab, "six")
    tab.wait_for_selector("h1:text-is('six')")
    tab.select_option(".prompt-before", label="A: one two three · B: four five")
    tab.wait_for_selector("h1:text-is('A: one two three · B: four five')")
    assert [tab.input_value(field) for field in ("#given", "#given-beside")] == ["one two three", "four five"]
    tab.reload()
    tab.wait_for_selector("h1:text-is('six')")
    assert tab.locator("#given-beside").is_hidden()


def test_two_models_read_the_same_text(served: Serve, opened: Opener) -> None:
    """A token that is chosen in one is chosen in the other; with a second text each reads its own."""
    second = FakeViewer(seed=4)
    second.name = "Another"
    tab = opened(client := served(second=second), width=400)
    assert tab.inner_text(".prompt-name") == f"A: {client.viewer.name} · B: Another"
    look(tab, "one two three")
    tab.wait_for_selector("h1:text-is('one two three')")
    tab.click('.thumb[data-site="0"][data-head="1"]')
    assert open_names(tab) == ("A.layers.0", "B.layers.0")
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("ArrowDown")
    tab.wait_for_selector(".details:nth-of-type(2) .chosen.query:text-is('two')")
    assert tab.locator(".chosen.query").all_inner_texts() == ["two", "two"]
    for place, viewer in enumerate((client.viewer, second)):
        told = float(tab.locator(".details").nth(place).locator(".bar-weight").first.inner_text())
        seen = viewer.seen["one two three"].sight["layers.0"].weights()[0, 1, 1]
        assert told == pytest.approx(float(seen.max()), rel=0.01)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 400
    tab.click(".prompt-two")
    tab.fill("#given-beside", "four")
    tab.press("#given-beside", "Enter")
    tab.wait_for_selector("#title:text-is('A: one two three · B: four')", state="attached")
    assert set(client.viewer.seen) == {"one two three"}
    assert set(second.seen) == {"one two three", "four"}
