"""Baselines of sound classifiers: what is known of a sound by how loud each of its bands is."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from foveate.baselines.word_counts import CodedLabels, CountsWithLabels, fit_regression
from foveate.data.sounds.files import Waveform
from foveate.data.sounds.spectrograms import LogMel

STRETCHES = 4
"""Parts of a sound, of one length, whose mean is taken of each band."""


def labels_by_loudness(
    asked: Sequence[Any], known: Sequence[Any], labels: Sequence[Sequence[str]], log_mel: LogMel, several: bool = False
) -> dict[str, list[Sequence[str]]]:
    """The labels of each asked sound by the way that found them: those of the nearest labelled sound, and a regression.

    Both read the loudness of each band: its mean in each quarter of the sound, its mean and its deviation in the whole,
    each as far from the mean of the labelled sounds as these usually are.
    """
    coded = CodedLabels(labels, several)
    own, others = (torch.stack([loudness(log_mel, one.read()) for one in examples]) for examples in (known, asked))
    mean, scale = own.mean(0), own.std(0, correction=0).clamp_min(1e-3) * own.shape[1] ** 0.5
    own, others = (own - mean) / scale, (others - mean) / scale
    weights, bias = fit_regression(CountsWithLabels(own, coded.values), len(coded.names))
    return {
        "the nearest training sound, by its bands": [
            labels[one] for one in torch.cdist(others, own).argmin(1).tolist()
        ],
        "a linear classifier of the loudness of bands": [*coded.decide(others @ weights + bias)],
    }


def loudness(log_mel: LogMel, sound: Waveform) -> Float[Tensor, " D"]:
    """The mean of each band in each stretch of a sound, its mean in the whole, and its deviation."""
    bands = log_mel(sound)
    ends = np.linspace(0, len(bands), STRETCHES + 1).astype(int)
    stretches = [bands[begin : max(begin + 1, end)].mean(0) for begin, end in pairwise(ends)]
    return torch.from_numpy(np.concatenate([*stretches, bands.mean(0), bands.std(0)]))
