"""Attention to points of feature maps by interpolation: memory linear in the points, whatever the size of the maps."""

import torch
import torch.nn.functional as F

from foveate.attention.call import Call
from foveate.attention.points import PointScore, split_points
from foveate.attention.selection import Attended, weights
from foveate.attention.shapes import precise


def attend(call: Call) -> Attended:
    """The values at each query's points, interpolated and weighted."""
    assert isinstance(call.score, PointScore), "the kernel serves attention to points alone"
    grids, leading = call.score.grids, call.leading
    queries, values = (part.expand(*leading, *part.shape[-2:]).flatten(0, -3) for part in (call.queries, call.values))
    columns, rows, log_weights = split_points(queries)
    shares = weights(log_weights)
    if call.dropout:
        keep = torch.rand(shares.shape, device=shares.device, generator=call.generator) >= call.dropout
        shares = shares * keep / (1 - call.dropout)
    values = precise(values)
    count = columns.shape[-1] // len(grids)
    output = values.new_zeros(values.shape[0], values.shape[2], columns.shape[1])
    maps = values.split([height * width for height, width in grids], 1)
    for level, (own, (height, width)) in enumerate(zip(maps, grids, strict=True)):
        span = slice(level * count, (level + 1) * count)
        x, y = (2 * columns[..., span] + 1) / width - 1, (2 * rows[..., span] + 1) / height - 1
        sampled = F.grid_sample(own.mT.unflatten(-1, (height, width)), torch.stack([x, y], -1), align_corners=False)
        output = output + (sampled * shares[:, None, :, span]).sum(-1)
    return Attended(output.mT.unflatten(0, leading).to(call.values.dtype))
