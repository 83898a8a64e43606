"""Alignment pictures, and the fonts for their labels."""

import logging
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib import font_manager
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from foveate.errors import UserError
from foveate.viewer import Alignment, fonts, plot_alignment, plot_alignments, save_figure
from foveate.viewer.heatmaps import COLOURS, LONGEST

SIZES = [(2, 2), (5, 7), (23, 31), (60, 60)]
ENGLISH = ["a", "young", "·ster", "crossing", "the", "street", "g"]
FRENCH = ["un", "·gar", "·çon", "élève", "…"]


def picture(targets: int, sources: int) -> Figure:
    weights = torch.rand(targets, sources, generator=torch.Generator().manual_seed(1)).softmax(1)
    return plot_alignment(weights, (FRENCH * 12)[:targets], (ENGLISH * 12)[:sources], "a title")


def pixels(figure: Figure) -> np.ndarray:
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())


def labels(figure: Figure) -> tuple[list[str], list[str]]:
    axes = figure.axes[0]
    return [text.get_text() for text in axes.get_yticklabels()], [text.get_text() for text in axes.get_xticklabels()]


def test_a_row_is_a_target_token_and_a_column_a_source_token() -> None:
    weights = torch.tensor([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5]])
    figure = plot_alignment(weights, ["chat", "noir"], ["black", "cat", "."])
    assert labels(figure) == (["chat", "noir"], ["black", "cat", "."])
    image = pixels(figure)
    seen = np.empty((2, 3))
    for row, column in np.ndindex(2, 3):
        # a quarter into the cell, where no number is
        x, y = figure.axes[0].transData.transform((column + 0.1, row + 0.1))
        colour = image[round(image.shape[0] - y), round(x), :3] / 255
        scale = COLOURS(np.linspace(0, 1, 101))[:, :3]
        seen[row, column] = np.abs(scale - colour).sum(1).argmin() / 100
    np.testing.assert_allclose(seen, weights.sqrt(), atol=0.02)  # as on the page


@pytest.mark.parametrize(("targets", "sources"), SIZES)
def test_cells_are_square_and_every_label_has_its_own_room(targets: int, sources: int) -> None:
    figure = picture(targets, sources)
    image = pixels(figure)
    box = figure.axes[0].get_window_extent()
    cell = box.width / sources
    assert cell == pytest.approx(box.height / targets)
    rows = [text.get_window_extent() for text in figure.axes[0].get_yticklabels()]
    assert len(rows) == targets
    assert all(upper.y0 >= lower.y1 for upper, lower in pairwise(rows))
    assert all(label.x1 < box.x0 for label in rows)
    for text in figure.axes[0].get_xticklabels():
        assert text.get_window_extent().y0 > box.y1
        # lines of text at 45 degrees, a cell apart, are cell / sqrt(2) from each other
        text.set_rotation(0)
        assert text.get_window_extent().height < cell / 2**0.5
    # nothing is cut off at the edges
    border = np.concatenate([image[0], image[-1], image[:, 0], image[:, -1]])
    assert (border == 255).all()


def test_pieces_of_a_word_are_joined_and_grey() -> None:
    axes = picture(5, 7).axes[0]
    colours = [text.get_color() for text in (*axes.get_yticklabels(), *axes.get_xticklabels())]
    pieces = [*FRENCH, *ENGLISH]
    assert {colour for colour, piece in zip(colours, pieces, strict=True) if not piece.startswith("·")} == {"black"}
    assert (
        len({colour for colour, piece in zip(colours, pieces, strict=True) if piece.startswith("·")} - {"black"}) == 1
    )
    source, target = (line.get_xydata() for line in axes.lines)
    # young ·ster is columns 1 and 2, above the cells; un ·gar ·çon rows 0 to 2, left of them
    assert source[:, 0].tolist() == [1.2, 2.8]
    assert (source[:, 1] < 0).all()
    assert target[:, 1].tolist() == [0.2, 2.8]
    assert (target[:, 0] < 0).all()


def test_small_maps_show_numbers_and_large_ones_do_not() -> None:
    figure = plot_alignment(torch.tensor([[1.0, 0.004], [0.126, 0.874]]), ["a", "b"], ["c", "d"])
    assert [text.get_text() for text in figure.axes[0].texts] == ["1.00", "", ".13", ".87"]
    assert not picture(3, 11).axes[0].texts


def test_labels_are_shown_as_they_are() -> None:
    odd = ["$\\frac{1}$", "\n", "  ", "x" * 30, "_^{"]
    figure = plot_alignment(torch.eye(5), odd, odd, "50 % of $x")
    pixels(figure)
    expected = ["$\\frac{1}$", "↵", "␣␣", "x" * (LONGEST - 1) + "…", "_^{"]
    assert labels(figure) == (expected, expected)


def test_several_maps_stand_side_by_side_on_one_scale() -> None:
    maps = [
        Alignment(torch.full((rows, 5), 0.2), FRENCH[:rows], ["ein", "sehr", "lang", "·es", "Wort"], f"head {rows}")
        for rows in (2, 5, 3)
    ]
    *panels, scale = plot_alignments(maps, columns=2).axes
    boxes = [axes.get_position() for axes in panels]
    assert [axes.get_ylim()[0] for axes in panels] == [2, 5, 3]
    assert boxes[0].y1 == pytest.approx(boxes[1].y1)
    assert boxes[0].x1 < boxes[1].x0
    assert boxes[2].y1 < boxes[1].y0
    assert boxes[2].x0 == pytest.approx(boxes[0].x0)
    assert scale.get_ylim() == pytest.approx((0, 0.2))
    assert all(axes.collections[0].get_clim() == pytest.approx((0, 0.2)) for axes in panels)
    assert [text.get_text() for text in scale.get_yticklabels()] == ["0", "0.05", "0.2 (largest)"]


def test_small_weights_of_many_keys_are_visible_and_named_nearly_even() -> None:
    """The darkest colour is the largest weight that is drawn, so that no map is blank."""
    even = torch.full((40, 40), 1 / 40).tril()
    even /= even.sum(1, keepdim=True)
    names = [str(place) for place in range(40)]
    figure = plot_alignments(
        [Alignment(even, names, names, "head 0"), Alignment(torch.eye(40), names, names, "head 1")]
    )
    assert [text.get_text() for text in figure.texts] == ["head 0", "head 1"]
    axes = ["reads →", "writes ↓"]
    assert [text.get_text() for text in figure.artists] == [*axes, "nearly even", *axes]
    figure = plot_alignment(torch.full((40, 40), 1 / 40), names, names)
    x, y = figure.axes[0].transData.transform((20.5, 20.5))
    image = pixels(figure)
    assert image[round(image.shape[0] - y), round(x), :3].tolist() == [0x1C, 0x23, 0x48]


def test_colours_darken_in_equal_steps() -> None:
    red, green, blue = (((COLOURS(np.linspace(0, 1, 17))[:, :3] + 0.055) / 1.055) ** 2.4).T
    lightness = 116 * np.cbrt(0.2126 * red + 0.7152 * green + 0.0722 * blue) - 16
    steps = -np.diff(lightness)
    assert steps.min() > 0.8 * steps.mean()
    assert steps.max() < 1.3 * steps.mean()


def test_hundreds_of_tokens_make_no_picture_larger_than_the_memory() -> None:
    figure = plot_alignment(torch.zeros(3, 401), ["a"] * 3, ["b"] * 401)
    assert max(figure.get_size_inches()) * figure.dpi == pytest.approx(10_000)


@pytest.mark.parametrize(
    ("ending", "beginning"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF"), ("PNG", b"\x89PNG")]
)
def test_figures_are_written_as_their_names_end(tmp_path: Path, ending: str, beginning: bytes) -> None:
    path = tmp_path / f"picture.{ending}"
    save_figure(picture(2, 3), path)
    assert path.read_bytes().startswith(beginning)


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_a_full_disk_keeps_the_figure_that_was_there(tmp_path: Path, ending: str, full_disk) -> None:
    path = tmp_path / f"figure.{ending}"
    save_figure(plot_alignment(torch.eye(2), ["a", "b"], ["c", "d"]), path)
    before = path.read_bytes()
    with full_disk(300), pytest.raises(UserError, match=rf"could not write figure\.{ending} in .*: File too large"):
        save_figure(plot_alignment(torch.ones(2, 2), ["a", "b"], ["c", "d"]), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_an_unknown_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot write a picture as '.gif2'; known: .*png"):
        save_figure(picture(2, 3), tmp_path / "picture.gif2")
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("shape", [(3, 2), (2, 4), (1, 2, 3)])
def test_a_map_that_does_not_fit_its_tokens_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(UserError, match=rf"shape \({', '.join(map(str, shape))}\) for 2 target and 3 source tokens"):
        plot_alignment(torch.zeros(shape), ["a", "b"], ["c", "d", "e"])


def test_no_map_is_refused() -> None:
    with pytest.raises(UserError, match="no map"):
        plot_alignments([])


def test_the_default_font_has_european_and_near_eastern_scripts() -> None:
    assert fonts.find_fonts(["Garçon, Œuvre", "Straße", "άντρας", "Мужчина", "שלום", "مرحبا", "·"]) == (
        [fonts.DEFAULT],
        {},
    )


def only_default_font(monkeypatch: pytest.MonkeyPatch, installed: list[str]) -> None:
    """As on a machine where matplotlib knows its default font only and these files were installed since."""
    known = [entry for entry in font_manager.fontManager.ttflist if entry.name == fonts.DEFAULT]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", known)
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: installed)
    fonts._add_new_fonts.cache_clear()
    fonts._warn.cache_clear()


def test_another_font_is_found_for_what_the_default_one_lacks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stix = fonts._regular_fonts()["STIXGeneral"].fname
    damaged = tmp_path / "damaged.ttf"
    damaged.write_bytes(b"not a font")
    only_default_font(monkeypatch, [str(damaged), stix])
    assert fonts.find_fonts(["ℊ", "garçon"]) == ([fonts.DEFAULT, "STIXGeneral"], {})
    # matplotlib would warn of a glyph that it does not find
    pixels(plot_alignment(torch.ones(1, 1), ["ℊ"], ["garçon"], "ℊ"))


def test_what_no_font_has_is_told_once_and_drawn_as_a_box(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    only_default_font(monkeypatch, [])
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            figure = plot_alignment(torch.ones(1, 2), ["日本"], ["a", "b\U000e0001"], "日")
            pixels(figure)
    assert labels(figure) == (["□□"], ["a", "b"])
    (record,) = caplog.records
    assert record.message.startswith("no installed font has 日 (U+65E5) 本 (U+672C): drawn as □")
    assert "apt install fonts-noto-cjk;" in record.message


@pytest.mark.parametrize(("text", "region"), [("日本の", "JP"), ("한국", "KR"), ("中国", "SC")])
def test_chinese_characters_are_drawn_as_the_readers_write_them(text: str, region: str) -> None:
    assert fonts._region(set(text)) == region


def test_a_sparse_map_is_not_nearly_even() -> None:
    """Keys without weight between others could have had some; those at the ends may be masked."""
    sparse = torch.tensor([[0.5, 0.0, 0.0, 0.5, 0.0], [0.0, 0.5, 0.0, 0.0, 0.5]])
    masked = torch.tensor([[0.34, 0.33, 0.33, 0.0, 0.0], [0.0, 0.34, 0.33, 0.33, 0.0]])
    for weights, even in ((sparse, False), (masked, True)):
        figure = plot_alignments([Alignment(weights, list("ab"), list("vwxyz"), "map")])
        assert ("nearly even" in [text.get_text() for text in figure.artists]) == even
