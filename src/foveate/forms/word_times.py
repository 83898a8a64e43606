"""When each word was said, from where a model looked when it wrote it.

Each token looks at some places of the sound. Dynamic time warping finds the path of one place after the other through
tokens and places whose attention is greatest in all (as in OpenAI's Whisper, and after Herrmann et al. 2008).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

SMOOTHED = 0.14
"""Seconds whose median smooths the attention of each head: 7 places of Whisper."""


@dataclass(frozen=True)
class TimedWord:
    """A word, and the seconds of the sound at which it begins and ends."""

    word: str
    start: float
    end: float

    def later(self, seconds: float) -> "TimedWord":
        """The word in a sound that begins so much earlier."""
        return TimedWord(self.word, self.start + seconds, self.end + seconds)

    def __str__(self) -> str:
        return f"{self.word} ({self.start:.2f}-{self.end:.2f})"

    def json_values(self) -> dict[str, Any]:
        """The word and its times, in hundredths of a second."""
        return {"word": self.word, "start": round(self.start, 2), "end": round(self.end, 2)}


def word_times(
    weights: Float[np.ndarray, "H T Z"], words: Sequence[tuple[str, int]], seconds: float
) -> list[TimedWord]:
    """The times of words in a sound of `seconds`, which the Z places cover.

    `weights` are those of heads that follow the sound; the last of the T rows is that of the token after the last word.
    `words` are the words with their number of tokens, in their order: T - 1 tokens in all.
    """
    if not words:
        return []
    place = seconds / weights.shape[2]
    starts = token_starts(weights, 2 * round((SMOOTHED / place - 1) / 2) + 1) * place
    found, first = [], 0
    for word, count in words:
        found.append(TimedWord(word, float(starts[first]), float(starts[first + count])))
        first += count
    return found


def token_starts(weights: Float[np.ndarray, "H T Z"], median: int) -> Int[np.ndarray, "T"]:
    """The place at which each token begins. Weights are smoothed by the `median` of an odd number of places."""
    mean, deviation = weights.mean(1, keepdims=True), weights.std(1, keepdims=True)
    smooth = median_filter((weights - mean) / np.maximum(deviation, 1e-8), max(1, median))
    rows, places = warp(-smooth.mean(0))
    return places[np.searchsorted(rows, np.arange(weights.shape[1]))]


def median_filter(x: Float[np.ndarray, "H T Z"], width: int) -> Float[np.ndarray, "H T Z"]:
    """The median of `width` places around each one; the ends are reflected."""
    if x.shape[-1] <= width // 2:
        return x
    padded = np.pad(x, ((0, 0), (0, 0), (width // 2, width // 2)), mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, width, -1)
    found = np.empty_like(x)
    for head, some in enumerate(windows):  # one at a time: sorting copies the windows
        found[head] = np.sort(some, -1)[..., width // 2]
    return found


def warp(costs: Float[np.ndarray, "T Z"]) -> tuple[Int[np.ndarray, "P"], Int[np.ndarray, "P"]]:
    """The rows and columns of the cheapest path from the first corner to the last, whose steps go right, down or both.

    Cells of one diagonal depend on the two before it alone, so a diagonal is computed at once.
    """
    height, width = costs.shape
    total = np.full((height + 1, width + 1), np.inf, np.float32)
    step = np.full((height + 1, width + 1), 2, np.int8)
    step[:, 0] = 1
    total[0, 0] = 0
    for diagonal in range(2, height + width + 1):
        row = np.arange(max(1, diagonal - width), min(height, diagonal - 1) + 1)
        column = diagonal - row
        both, down, right = total[row - 1, column - 1], total[row - 1, column], total[row, column - 1]
        chosen = np.where((both < down) & (both < right), 0, np.where((down < both) & (down < right), 1, 2))
        before = np.choose(chosen, (both, down, right))
        total[row, column] = costs[row - 1, column - 1] + before
        step[row, column] = chosen
    step[0, :] = 2
    row, column, path = height, width, []
    while row > 0 or column > 0:
        path.append((row - 1, column - 1))
        kind = step[row, column]
        row, column = row - (kind != 2), column - (kind != 1)
    rows, columns = np.array(path[::-1]).T
    return rows, columns


def most_decided(sight: Any, first: int = 0) -> Float[np.ndarray, "T Z"]:
    """The weights of the head that looks most decidedly of all in a sight, from the row `first` on.

    One site's heads are in memory at a time.
    """
    best, chosen = -1.0, None
    for site in sight.sites:
        weights = sight[site].weights()[0, :, first:].float().cpu()
        decided = weights.amax(-1).mean(-1)
        head = int(decided.argmax())
        if float(decided[head]) > best:
            best, chosen = float(decided[head]), weights[head].numpy().copy()
    if chosen is None:
        raise ValueError("the sight has no sites")
    return chosen
