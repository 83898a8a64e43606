"""What the page of a look and the explorer cost those who open them: size, and time in a browser (parts of look.py)."""

import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from gpt2 import Bound, gpt2
from torch import Tensor
from transformers import GPT2LMHeadModel

import foveate

PAGE_TOKENS = 256
VIEWS = {512: 3.0, 4096: 10.0}
"""Tokens of the pages that are opened, and how many MB one may have."""

OPENED = 5
EXPLORED, EXPLORED_LAYERS = 32_000, 2
ZOOMED = 5
SOON = 2.0
"""Seconds that nobody should wait longer for what is there."""

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-proxy-server"]


def page() -> list[Bound]:
    """The size beside that of another viewer's."""
    model, ids = gpt2(tokens=PAGE_TOKENS)
    tokens = [f"token{place}" for place in range(PAGE_TOKENS)]
    with tempfile.TemporaryDirectory() as folder:
        size = _saved(Path(folder, "look.html"), model, ids, tokens)
        theirs = _bertviz(model, ids, tokens)
    print(f"page for {PAGE_TOKENS} tokens: {size / 2**20:.2f} MiB; bertviz: {theirs / 2**20:.0f} MiB")
    return [("size of the page / bertviz's", size / theirs, 1 / 100)]


def view() -> list[Bound]:
    """Until the first map of a page of 12 x 12 heads is painted, from when the browser is told to open it."""
    bounds = []
    with tempfile.TemporaryDirectory() as folder, _browser() as browser:
        for tokens, most in VIEWS.items():
            path = Path(folder, f"{tokens}.html")
            size = _saved(path, *gpt2(tokens), [f"token{place}" for place in range(tokens)]) / 1e6
            times = [_first_map(browser, path) for _ in range(OPENED)]
            print(f"page of {tokens:,} tokens: {size:.1f} MB; first maps after {_told(times)} s")
            bounds.append((f"size of a page of {tokens:,} tokens, MB", size, most))
            bounds.append((f"first map of a page of {tokens:,} tokens, seconds, the slowest", max(times), SOON))
    return bounds


def explorer() -> list[Bound]:
    """A long text in `foveate explore`: a head, and parts of it from near, once the model has read it."""
    with tempfile.TemporaryDirectory() as folder, _browser() as browser:
        model, ids = gpt2(EXPLORED, EXPLORED_LAYERS)
        model.save_pretrained(folder)
        with _explored(folder) as address:
            tab = browser.new_page()
            tab.goto(address)
            tab.fill("#given", " ".join(map(str, ids[0].tolist())))
            start = time.perf_counter()
            tab.press("#given", "Control+Enter")
            tab.wait_for_selector(".thumb canvas.painted", timeout=600_000)
            read = time.perf_counter() - start
            heads = [_head(tab, head) for head in range(1, 1 + OPENED)]
            tiles = [_zoomed(tab) for _ in range(ZOOMED)]
    print(f"{EXPLORED:,} tokens, {EXPLORED_LAYERS} layers: read and shown after {read:.0f} s; ", end="")
    print(f"heads open after {_told(heads)} s; zoomed, finer maps come after {_told(tiles)} s")
    return [
        ("a head of a long text opens, seconds, median", statistics.median(heads), SOON),
        ("a finer map of a long text, seconds, median", statistics.median(tiles), SOON),
    ]


def _saved(path: Path, model: GPT2LMHeadModel, ids: Tensor, tokens: list[str]) -> int:
    """How many bytes the page of a pass through the model has."""
    with torch.no_grad(), foveate.look(model) as sight:
        model(ids, use_cache=False)
    sight.save(path, tokens=tokens)
    return path.stat().st_size


def _bertviz(model: GPT2LMHeadModel, ids: Tensor, tokens: list[str]) -> int:
    """How many bytes the head view of bertviz has, layers and heads all told."""
    from bertviz import head_view

    model.set_attn_implementation("eager")
    with torch.no_grad():
        weights = model(ids, output_attentions=True).attentions
    return len(head_view(weights, tokens, html_action="return").data.encode())


@contextmanager
def _browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        yield browser
        browser.close()


@contextmanager
def _explored(folder: str) -> Iterator[str]:
    """The address of a server with the model of a folder."""
    command = [sys.executable, "-m", "foveate", "explore", folder, "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            lines = iter(server.stdout.readline, "")  # type: ignore[union-attr]
            yield next(found[0] for line in lines if (found := re.search(r"http://\S+", line)))
        finally:
            server.terminate()


def _first_map(browser: Any, path: Path) -> float:
    tab = browser.new_page()
    start = time.perf_counter()
    tab.goto(f"file://{path}", wait_until="commit")
    tab.wait_for_selector(".thumb canvas.painted")
    seconds = time.perf_counter() - start
    tab.close()
    return seconds


def _head(tab: Any, head: int) -> float:
    """Seconds until a head is open and drawn."""
    start = time.perf_counter()
    tab.click(f'.thumb[data-site="1"][data-head="{head}"]:visible, .film [aria-label="Head {head}"]:visible')
    tab.wait_for_selector(f".head-name:text-is('head {head}')")
    _drawn(tab)
    return time.perf_counter() - start


def _zoomed(tab: Any) -> float:
    """Seconds until the finer map of a part is there that is zoomed to."""
    box = tab.locator("canvas.map").bounding_box()
    tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    with tab.expect_response(lambda response: "/tile/" in response.url and f"rows=0,{EXPLORED}" not in response.url):
        start = time.perf_counter()
        tab.mouse.wheel(0, -400)
    _drawn(tab)
    return time.perf_counter() - start


def _drawn(tab: Any) -> None:
    """Wait until the browser has drawn twice."""
    tab.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def _told(times: list[float]) -> str:
    return ", ".join(f"{each:.2f}" for each in times)
