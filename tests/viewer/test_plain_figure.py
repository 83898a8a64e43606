"""Every picture shows the texts of users and models as they are, in any script, with fonts that can be searched."""

import re
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.text import Text

import foveate
from foveate.viewer import Alignment, curves, episodes, fonts, map_walk, marks, overlay, plot_alignments, speech_figure
from foveate.viewer import steps as reading_steps
from foveate.viewer.maps import WordRow
from foveate.viewer.plain_figure import PlainFigure
from foveate.viewer.strip import draw as draw_strip
from foveate.viewer.strip import draw_rows

ODD = ["$5", "and$", "x_1$y$", "$\\frac{1}$", "$$", "\\alpha", "ℊ"]
"""Formulas, none of which should be one, and a letter that the default font lacks."""

TITLE = "from $5 to $\\frac$6 ℊ"

PIXELS = np.full((16, 16, 3), 200, np.uint8)

WHOLE = (0.0, 16.0, 16.0, 0.0)

GRID = np.random.default_rng(0).random((4, 4)).astype(np.float32)

MAPS = torch.rand(len(ODD), 4, 4)

PLACES: Any = {(0, 0): ODD[2], (1, 0): ODD[6]}

PICTURES: dict[str, Callable[[], Any]] = {
    "heatmaps": lambda: plot_alignments([Alignment(torch.rand(2, 7), ["$a$", "b$$c"], ODD, TITLE)]),
    "overlay": lambda: overlay.draw(PIXELS, GRID, TITLE),
    "strip": lambda: draw_strip(PIXELS, ODD, MAPS, TITLE),
    "strip, rows": lambda: draw_rows(PIXELS, [WordRow(TITLE, ODD, MAPS)]),
    "curves": lambda: curves.draw({TITLE: ([1, 2], [3, 4]), "$b$": ([1], [2])}, ODD[3], TITLE),
    "several curves": lambda: curves.draw_several({TITLE: {ODD[0]: ([1, 2], [3, 4]), "b": ([1], [2])}}, ODD[3]),
    "episodes": lambda: episodes.draw(np.stack([PIXELS] * 2), np.stack([GRID] * 2), [ODD[3], ODD[6]], TITLE),
    "walk": lambda: map_walk.draw(
        [((0, 0), (1, 0), TITLE)], PLACES, [(0, 0, 90), (1, 0, 90)], ODD, [ODD[3]], np.random.rand(1, 7)
    ),
    "marks": lambda: marks.plot_marks(PIXELS, [marks.Mark(ODD[3], (1, 1, 9, 9))], [GRID], WHOLE, TITLE),
    "speech": lambda: speech_figure.draw(
        np.random.rand(50, 8).astype(np.float32),
        np.random.rand(7, 25).astype(np.float32),
        ODD,
        0.5,
        TITLE,
        [("$5", 0.0, 0.2), (ODD[3], 0.2, 0.4)],
    ),
    "reading": lambda: reading_steps.draw(PIXELS[..., 0], np.stack([GRID] * 7), ODD, TITLE),
}


@pytest.mark.parametrize("name", PICTURES)
def test_texts_are_shown_as_they_are(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = fonts._regular_fonts()
    some = {family: known[family] for family in (fonts.DEFAULT, "STIXGeneral")}
    monkeypatch.setattr(fonts, "_regular_fonts", lambda: some)
    figure = PICTURES[name]()
    for kind in ("png", "pdf"):
        file = BytesIO()
        figure.savefig(file, format=kind)  # matplotlib would warn of a glyph that it does not find
    assert b"/Type3" not in file.getvalue()
    assert re.search(rb"/(Type42|CIDFontType2|TrueType)\b", file.getvalue())
    shown = [text for text in figure.findobj(Text) if not text.get_parse_math()]
    written = {text.get_text() for text in shown}
    assert any("$" in text for text in written)
    assert all("STIXGeneral" in text.get_fontfamily() for text in shown)
    for text in figure.findobj(Text):
        if text.get_parse_math():
            assert set(text.get_text()) <= set("0123456789.−e ")


def test_what_no_font_has_is_a_box_at_ticks_too(monkeypatch: pytest.MonkeyPatch) -> None:
    only = {fonts.DEFAULT: fonts._regular_fonts()[fonts.DEFAULT]}
    monkeypatch.setattr(fonts, "_regular_fonts", lambda: only)
    figure = PlainFigure()
    axes = figure.subplots()
    axes.set_xticks([0, 1], ["日本", "a"])
    axes.set_title("日")
    for _ in range(2):
        figure.savefig(BytesIO(), format="png")
    assert [text.get_text() for text in axes.get_xticklabels()] == ["□□", "a"]
    assert axes.get_title() == "□"


def test_powers_at_a_logarithmic_axis_stay_powers() -> None:
    figure = PlainFigure()
    axes = figure.subplots()
    axes.set(yscale="log", ylim=(1, 1000))
    figure.savefig(BytesIO(), format="png")
    label = axes.get_yticklabels()[1]
    assert label.get_parse_math()
    assert "10^" in label.get_text()


def test_a_long_title_without_spaces_is_cut() -> None:
    assert speech_figure._shortened("今天天气很好", 4) == "今天天…"
    assert speech_figure._shortened(" two \n words", 40) == "two words"


def test_every_picture_is_a_plain_figure() -> None:
    files = sorted(Path(foveate.__file__).parent.rglob("*.py"))
    others = [file.name for file in files if re.search(r"matplotlib\.figure|pyplot", file.read_text(encoding="utf-8"))]
    assert others == ["plain_figure.py"]


def test_a_notebook_shows_it_as_a_picture() -> None:
    figure = plot_alignments([Alignment(torch.eye(3), list("abc"), list("xyz"), "")])
    assert figure._repr_png_().startswith(b"\x89PNG")
