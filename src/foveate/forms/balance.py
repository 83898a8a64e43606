"""Classes that are not equally frequent: which metric then measures a model, and how they are weighed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

UNEVEN = 2
"""Classes are uneven where the most frequent one occurs at least this many times as often as the rarest."""


@dataclass(kw_only=True)
class Balanced:
    """What is learned of labels, of which some are rare."""

    balance: bool = False
    """Let all classes count alike in the loss, however frequent they are: each example is weighed by how rare its class
    is in training (weights of classes, not sampling)."""


def uneven(counts: Mapping[str, int]) -> bool:
    """Whether some classes are much more frequent than others; those that never occur do not count."""
    occurring = [count for count in counts.values() if count]
    return bool(occurring) and max(occurring) >= UNEVEN * min(occurring)


def class_metric(counts: Mapping[str, int]) -> str:
    """The metric that chooses among checkpoints: macro F1 where classes are uneven, in which all count alike."""
    return "macro_f1" if uneven(counts) else "accuracy"


def label_weights(counts: Mapping[str, int], labels: Int[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """The weight of each label, a number of one of the counted classes: the examples of each class weigh as much as
    those of any other, and the mean weight of the counted examples is 1. A label below 0 has the weight 0."""
    return _weights(counts)[labels.long().clamp(min=0)] * (labels >= 0)


def several_weights(counts: Mapping[str, int], holds: Float[Tensor, "B N"]) -> Float[Tensor, "B N"]:
    """The weight of each decision, where an example may have several of N labels: one that holds is weighed by how rare
    the label is, one that does not has the weight 1."""
    return 1 + holds * (_weights(counts) - 1)


def _weights(counts: Mapping[str, int]) -> Float[Tensor, "N"]:
    occurring = sum(count > 0 for count in counts.values())
    mean = sum(counts.values()) / max(1, occurring)
    return torch.tensor([mean / max(1, count) for count in counts.values()])


def one_answer(found: Sequence[str], right: Sequence[str]) -> list[str]:
    """A line where a model gives all examples the same label, and they have several."""
    if len(set(found)) != 1 or len(set(right)) < 2:
        return []
    return [f"the model answers '{found[0]}' for all {len(found):,} validation examples, whatever it reads"]
