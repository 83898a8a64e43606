"""A baseline of image classifiers: a linear classifier of the pixels of small images."""

from collections.abc import Sequence
from typing import Any

import torch

from foveate.baselines.nearest_images import thumbnails
from foveate.baselines.word_counts import CodedLabels, CountsWithLabels, fit_regression


def labels_by_pixels(
    asked: Sequence[Any], known: Sequence[Any], labels: Sequence[Sequence[str]], channels: int, several: bool = False
) -> list[list[str]]:
    """The labels of each asked example by a regression on the pixels of labelled ones, scaled to 16 x 16, each as far
    from its mean as the pixels of the labelled images usually are: one label, or `several`."""
    coded = CodedLabels(labels, several)
    own, others = (torch.from_numpy(thumbnails(examples, channels)) for examples in (known, asked))
    mean, scale = own.mean(0), own.std() * own.shape[1] ** 0.5
    weights, bias = fit_regression(CountsWithLabels((own - mean) / scale, coded.values), len(coded.names))
    return coded.decide(((others - mean) / scale) @ weights + bias)
