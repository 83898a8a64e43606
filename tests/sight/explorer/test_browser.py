"""The explorer in a real browser: type, see, zoom, go back, and read what went wrong."""

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from served_model import Client, Serve

sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the path: apt install chromium")

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-proxy-server"]

EVIL = "</script><script>document.title='run'</script> <img src=x onerror=alert(1)>"

Opener = Callable[..., Any]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


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
    assert tab.locator(".thumb canvas").count() == 6
    assert tab.title() == f"first {EVIL}"
    assert tab.locator("img").count() == 0
    tab.click('.thumb[data-site="1"][data-head="2"]')
    tab.wait_for_selector("canvas.map")
    assert tab.inner_text(".head-name") == "head 2"
    assert "Every weight is exact." in tab.inner_text(".details")


def test_a_long_text_is_zoomed_to_exact_weights(served: Serve, opened: Opener) -> None:
    """401 tokens: a map that is sent in parts. The number under the pointer is the weight of the sight."""
    client = served()
    tab = opened(client)
    look(tab, words(401))
    tab.wait_for_selector(".thumb canvas.painted")
    tab.click('.thumb[data-site="0"][data-head="1"]')
    canvas = tab.locator("canvas.map")
    box = canvas.bounding_box()
    assert box is not None
    for _ in range(9):
        tab.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + box["height"] * 0.6)
        tab.mouse.wheel(0, -300)
    with tab.expect_response(lambda response: "/tile/0/1" in response.url):
        tab.mouse.wheel(0, -300)
    tab.wait_for_timeout(300)
    tab.mouse.move(box["x"] + box["width"] * 0.3 + 3, box["y"] + box["height"] * 0.6 + 3)
    tip = tab.locator("#tip")
    tip.wait_for()
    lines = tip.inner_text().split("\n")
    query, key = (int(next(line for line in lines if line.startswith(what)).split()[-1]) for what in ("query ", "key "))
    weight = float(client.viewer.seen[words(401)].sight["layers.0"].weights([1], [query], [key]))
    told = next(line for line in lines if line[:1].isdigit() or line.startswith("<"))
    assert weight < 1e-6 if told.startswith("<") else float(told) == pytest.approx(weight, rel=0.01, abs=1e-6)
    assert "at most" not in tip.inner_text()


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
