"""Recognises attention to points of feature maps: values that `grid_sample` interpolated, weighted and summed.

Implementations differ in how they arrange the samples of several maps. They agree in what they sample: each map by
itself, a value for each point, between its four neighbours and with zeros outside.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from foveate.attention import Attended, PointScore, Soft, grid_places, point_queries
from foveate.attention.call import Call
from foveate.sight.given_weights import MadeProduct, logarithms
from foveate.sight.output_check import check_output

SAMPLERS = {F.grid_sample}

PARAMETERS = ("input", "grid", "mode", "padding_mode", "align_corners")


class SampledMap(NamedTuple):
    """One feature map, and the points at which it was read."""

    source: Float[Tensor, "N V height width"]
    """N is B examples times H heads."""
    grid: Float[Tensor, "N T P 2"]
    """From -1 to 1, between the outer edges of the map."""


def sample_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> SampledMap | None:
    """What a call of `grid_sample` reads; None where it reads in another way than attention does."""
    given = {**dict(zip(PARAMETERS, args, strict=False)), **kwargs}
    source, grid = given["input"], given["grid"]
    usual = given.get("mode", "bilinear"), given.get("padding_mode", "zeros"), bool(given.get("align_corners"))
    return SampledMap(source, grid) if source.ndim == 4 and usual == ("bilinear", "zeros", False) else None


def joined(result: Tensor, operands: Sequence[Tensor], known: Callable[[Tensor], Any]) -> tuple[SampledMap, ...] | None:
    """The samples of a result that has all values of its operands, in another arrangement; None for other results."""
    found = [known(part) for part in operands]
    whole = all(each is not None for each in found)
    if not operands or not whole or result.numel() != sum(part.numel() for part in operands):
        return None
    return tuple(sample for each in found for sample in each)


def point_call(samples: Sequence[SampledMap], product: MadeProduct) -> Call | None:
    """The call of a product of weights with sampled values; None where the samples do not explain its output."""
    examples, heads, queries, count = product.weights.shape
    counts = [sample.grid.shape[2] for sample in samples]
    if sum(counts) != count or any(sample.grid.shape[:2] != (examples * heads, queries) for sample in samples):
        return None
    grids = tuple((sample.source.shape[2], sample.source.shape[3]) for sample in samples)
    most = max(counts)  # a map with fewer points gets more of them, without weight
    missing = [(0, most - own) for own in counts]
    points, logits = [], []
    for sample, part, pad in zip(samples, logarithms(product.weights).split(counts, -1), missing, strict=True):
        own = (sample.grid + 1) / 2
        points.append(F.pad(own, (0, 0, *pad)).unflatten(0, (examples, heads)))
        logits.append(F.pad(part, pad, value=-torch.inf))
    values = torch.cat([sample.source.flatten(2).mT for sample in samples], 1)
    call = Call(
        point_queries(torch.cat(points, -2), torch.cat(logits, -1), grids),
        grid_places(grids, values.device)[None, None],
        values.unflatten(0, (examples, heads)),
        PointScore(grids),
        None,
        None,
        Soft(values.new_zeros(())),
        dropout=0.0,
        full=False,
    )
    with torch.no_grad():
        row = range(queries // 2, queries // 2 + 1)  # all rows are alike
        check = check_output(call, Attended(product.output), row)
    return call if check is not None and check.passed else None
