"""Whether what a look shows is what a model computed."""

import re
from dataclasses import dataclass, field
from itertools import permutations

import torch
from torch import Tensor

from families.reference import Weights
from foveate.sight import Sight

SPREAD = 0.05
"""A row of weights has to differ by this much within itself: a comparison of rows that are all alike could not fail."""


@dataclass
class Comparison:
    """Sites that agree and that do not."""

    sites: int = 0
    right: int = 0
    decided: int = 0
    """Of the right ones, those whose weights differ clearly from a mean over all keys."""
    rows: int = 0
    nowhere: int = 0
    """Of the rows of all heads, those that are shown to look nowhere where the model has a mean over all keys."""
    largest: float = 0.0
    """The largest difference of a weight."""
    wrong: list[str] = field(default_factory=list)


def compare(sight: Sight, reference: list[Weights], tolerance: float) -> Comparison:
    """Hold every site of the sight against the softmaxes of its module, in their order."""
    found = Comparison()
    of_module: dict[str, list[Weights]] = {}
    for softmax in reference:
        of_module.setdefault(softmax.module, []).append(softmax)
    for name in sight.sites:
        found.sites += 1
        site, module = sight[name], re.sub(r"#\d+$", "", name)
        weights = site.weights() if site.grids is None else site.points().weights  # of deformable attention
        expected, shape = of_module.get(module, []), tuple(weights.shape)
        row, differences, spread, why = 0, [0.0], 0.0, "no softmax of the model's own is left to compare with"
        while expected and row < shape[2]:
            wanted = (shape[0], shape[1], shape[2] - row, shape[3])
            own = nearest(expected[0], wanted, weights[:, :, row:])
            if own is None:
                why = f"the model's own shape is {tuple(expected[0].weights.shape)}"
                break
            expected.pop(0)
            seen = before_sinks(weights[:, :, row : row + own.shape[2]], own)
            excused = nowhere(seen, own)
            found.rows, found.nowhere = found.rows + excused.numel(), found.nowhere + int(excused.sum())
            differences.append(difference(seen, own, excused))
            spread = max(spread, spread_of(own))
            row += own.shape[2]
        found.largest = max(found.largest, *differences)
        if row < shape[2]:
            found.wrong.append(f"{name} {shape}: {why}")
        elif not max(differences) <= tolerance:
            found.wrong.append(f"{name} {shape}: weights differ by {max(differences):.1e}")
        else:
            found.right += 1
            found.decided += spread >= SPREAD
    for module, left in of_module.items():
        found.sites += len(left)
        found.wrong += [f"{module}: unseen weights {tuple(softmax.weights.shape)}" for softmax in left]
    return found


def nearest(softmax: Weights, shape: tuple[int, int, int, int], seen: Tensor) -> Tensor | None:
    """The model's own weights in the shape of a site: with their leading dimensions in the order that fits best, since
    a softmax does not say which of them are heads."""
    found = [fitted(softmax.weights, shape)]
    leading, kept = softmax.leading, softmax.weights.shape[-2:]
    if len(leading) > 2 and softmax.weights.numel() == leading.numel() * kept.numel():
        own = softmax.weights.reshape(*leading, *kept)
        found += [fitted(own.permute(*order, -2, -1), shape) for order in permutations(range(len(leading)))]
    options = [own for own in found if own is not None]
    return min(options, key=lambda own: difference(seen[:, :, : own.shape[2]], own, own[..., :1] > 2), default=None)


def fitted(weights: Tensor, shape: tuple[int, int, int, int]) -> Tensor | None:
    """The model's own weights as (B, H, up to T, S), without the column of a sink; None if they are no such thing."""
    batch, heads, rows, keys = shape
    count, width = weights.shape[-2], weights.shape[-1]
    if width == keys + 1:
        weights = weights[..., :keys]
    elif width < keys:
        weights = torch.nn.functional.pad(weights, (0, keys - width))
    elif width > keys:
        if weights[..., keys:].any():
            return None
        weights = weights[..., :keys]
    if weights.numel() == batch * heads * rows * keys:
        count = rows
    if count > rows or weights.numel() != batch * heads * count * keys:
        return None
    return weights.reshape(batch, heads, count, keys).float()


def before_sinks(seen: Tensor, own: Tensor) -> Tensor:
    """What is seen, among the keys alone where a model takes its sinks' part off the output and not off the weights."""
    if (own.sum(-1) - 1).abs().max() < 1e-4 and seen.sum(-1).min() < 1 - 1e-4 and seen.sum(-1).min() > 0:
        return seen / seen.sum(-1, keepdim=True)
    return seen


def nowhere(seen: Tensor, own: Tensor) -> Tensor:
    """Which rows (B, H, T, 1) look nowhere: a query that may not is shown so, whatever mean the model makes of it."""
    alike = own.isnan().all(-1, keepdim=True) | (own.amax(-1, keepdim=True) - own.amin(-1, keepdim=True) < 1e-6)
    return (seen == 0).all(-1, keepdim=True) & alike


def difference(seen: Tensor, own: Tensor, excused: Tensor) -> float:
    """The largest difference in the rows that are not excused."""
    return float((seen - own).masked_fill(excused, 0).abs().nan_to_num(nan=torch.inf).max())


def spread_of(own: Tensor) -> float:
    """How much the weights of a row differ among the keys that it may look at, for the most decided row."""
    real = own > 1e-12
    mean = own.sum(-1, keepdim=True) / real.sum(-1, keepdim=True).clamp_min(1)
    return float((own - mean).masked_fill(~real, 0).abs().max())
