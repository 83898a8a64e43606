"""Moving pictures of words over an image."""

from pathlib import Path

import numpy as np
import PIL.Image
import torch

from foveate.viewer.figures import plot_word_strip, save_figure
from foveate.viewer.growing import LAST
from foveate.viewer.word_frames import SIDE, STEP

PIXELS = np.random.default_rng(1).integers(90, 255, (30, 60, 3), np.uint8)


def test_each_word_is_a_frame_that_is_bright_where_it_looked(tmp_path: Path) -> None:
    """In the shape of the image, with the words below it: the chosen one has another colour than the others."""
    left, right = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    save_figure(plot_word_strip(PIXELS, ["one", "two"], torch.stack([left, right])), tmp_path / "words.gif")
    with PIL.Image.open(tmp_path / "words.gif") as picture:
        frames, times = [], []
        for place in range(picture.n_frames):
            picture.seek(place)
            frames.append(np.asarray(picture.convert("RGB")).astype(int))
            times.append(picture.info["duration"])
    assert times == [STEP, STEP, LAST]
    high = SIDE // 2
    assert all(frame.shape[1] == SIDE < frame.shape[0] * 2 for frame in frames)
    halves = [(frame[:high, : SIDE // 4].mean(), frame[:high, -SIDE // 4 :].mean()) for frame in frames]
    assert halves[0][0] > 2 * halves[0][1]
    assert halves[1][1] > 2 * halves[1][0]
    assert abs(halves[2][0] - halves[2][1]) < 10
    first, second = (_blue(frame[high:]) for frame in frames[:2])
    assert first.max() < second.min()
    assert not _blue(frames[2][high:]).size


def test_many_words_take_several_lines(tmp_path: Path) -> None:
    sizes = []
    for count in (2, 40):
        maps = torch.ones(count, 2, 2)
        save_figure(plot_word_strip(PIXELS, ["window"] * count, maps), tmp_path / "words.gif")
        with PIL.Image.open(tmp_path / "words.gif") as picture:
            sizes.append(picture.size)
    assert sizes[0][0] == sizes[1][0]
    assert sizes[1][1] > sizes[0][1] + 60


def _blue(text: np.ndarray) -> np.ndarray:
    """The columns with clearly blue pixels."""
    return np.flatnonzero(((text[..., 2] - text[..., 0]) > 80).any(0))
