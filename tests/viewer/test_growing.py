"""Moving pictures: rows that appear one after the other."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch
from matplotlib.figure import Figure

from foveate.viewer import Alignment, plot_alignments, save_figure
from foveate.viewer.growing import LAST, STEP

ROOT = Path(__file__).parents[2]


def frames(path: Path) -> tuple[list[np.ndarray], list[int]]:
    shown, times = [], []
    with PIL.Image.open(path) as picture:
        for number in range(getattr(picture, "n_frames", 1)):
            picture.seek(number)
            shown.append(np.asarray(picture.convert("RGB")).astype(int))
            times.append(picture.info.get("duration", 0))
    return shown, times


def dark(image: np.ndarray) -> np.ndarray:
    """How much each row of pixels differs from white."""
    return (255 - image).sum((1, 2))


def alignment(rows: int, title: str) -> Alignment:
    weights = torch.full((rows, 3), 1 / 3)
    return Alignment(weights, [f"w{row}" for row in range(rows)], ["a", "b", "c"], title)


@pytest.mark.parametrize("suffix", [".gif", ".GIF"])
def test_rows_appear_from_the_top_and_stay(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    save_figure(plot_alignments([alignment(5, "longer"), alignment(3, "short")]), path)
    shown, times = frames(path)
    assert times == [STEP] * 4 + [LAST]
    for before, after in pairwise(shown):
        new = dark(after) - dark(before)
        assert new.max() > 1000
        places = np.flatnonzero(new > 1000)
        assert np.ptp(places) < before.shape[0] / 5  # one row of cells
    half = shown[0].shape[1] // 2
    longer, short = zip(*((dark(image[:, :half]).sum(), dark(image[:, half:]).sum()) for image in shown), strict=True)
    assert list(longer) == sorted(set(longer))
    assert short[0] < short[1] < short[2] == short[3] == short[4]


def test_the_last_frame_is_the_whole_figure(tmp_path: Path) -> None:
    figure = plot_alignments([alignment(4, "")])
    save_figure(figure, tmp_path / "x.gif")
    save_figure(figure, tmp_path / "x.png")
    (whole,), _ = frames(tmp_path / "x.png")
    last = frames(tmp_path / "x.gif")[0][-1]
    assert last.shape == whole.shape
    assert np.abs(last - whole).max() < 16  # where letters are smoothed
    assert (last == whole).all(2).mean() > 0.95
    assert (last[0, 0] == 255).all()


def test_long_maps_have_few_frames(tmp_path: Path) -> None:
    save_figure(plot_alignments([alignment(230, "")]), tmp_path / "x.gif")
    assert len(frames(tmp_path / "x.gif")[0]) == 77


def test_other_figures_stand_still(tmp_path: Path) -> None:
    figure = Figure()
    figure.add_subplot().plot([1, 2, 3])
    save_figure(figure, tmp_path / "x.gif")
    assert len(frames(tmp_path / "x.gif")[0]) == 1


def test_the_picture_of_the_readme_is_small() -> None:
    assert (ROOT / "docs" / "pictures" / "writing.gif").stat().st_size < 300_000
