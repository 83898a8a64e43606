"""What is known of a pixel's colour by counting: the baselines of image completion.

N  images    T  pixels of an image, row by row
"""

import numpy as np

MOST_COLOURS = 64
"""Colours of which neighbours are counted, at most."""


def counted_ways(known: np.ndarray, asked: np.ndarray, side: int, count: int) -> dict[str, dict[str, float]]:
    """Bits of a pixel and accuracy of three ways to count the colours of training images `known` (N, T): all, those of
    each place, and those after the pixels to the left and above."""
    places = np.arange(known.shape[1])
    contexts = {"frequency of each colour": (0 * known, 0 * asked)}
    contexts["frequency in each place"] = 0 * known + places, 0 * asked + places
    if count <= MOST_COLOURS:
        both = _neighbours(known, side, count), _neighbours(asked, side, count)
        contexts["frequency after the pixels to the left and above"] = both
    return {name: _counted(of_known, known, of_asked, asked, count) for name, (of_known, of_asked) in contexts.items()}


def _neighbours(colours: np.ndarray, side: int, count: int) -> np.ndarray:
    """The colours of the pixels to the left and above as one number; beyond the border they are `count`."""
    grid = colours.reshape(-1, side, side)
    padded = np.pad(grid, ((0, 0), (1, 0), (1, 0)), constant_values=count)
    return (padded[:, 1:, :-1] * (count + 1) + padded[:, :-1, 1:]).reshape(colours.shape)


def _counted(
    known_context: np.ndarray, known: np.ndarray, asked_context: np.ndarray, asked: np.ndarray, count: int
) -> dict[str, float]:
    """Bits and accuracy where each colour is as likely as it was frequent in its context."""
    contexts = int(max(known_context.max(), asked_context.max())) + 1
    counts = np.bincount((known_context * count + known).ravel(), minlength=contexts * count).reshape(contexts, count)
    overall = np.bincount(known.ravel(), minlength=count) + 0.1
    counts = counts + overall / overall.sum()
    shares = counts / counts.sum(1, keepdims=True)
    bits = -np.log2(shares[asked_context, asked]).mean()
    return {"bits": float(bits), "accuracy": 100 * float((counts.argmax(1)[asked_context] == asked).mean())}
