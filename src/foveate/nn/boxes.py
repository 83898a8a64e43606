"""Boxes in images, as tensors: two ways to write them, and how much two of them overlap.

A box is (centre x, centre y, width, height) as shares of the image's width and height, or its corners (left, top,
right, bottom).
"""

import torch
from jaxtyping import Float
from torch import Tensor


def box_corners(boxes: Float[Tensor, "... 4"]) -> Float[Tensor, "... 4"]:
    """Left, top, right, bottom of boxes that are given by centre and size."""
    centre, size = boxes[..., :2], boxes[..., 2:]
    return torch.cat([centre - size / 2, centre + size / 2], -1)


def box_centres(corners: Float[Tensor, "... 4"]) -> Float[Tensor, "... 4"]:
    """Centre and size of boxes that are given by their corners: the inverse of `box_corners`."""
    first, last = corners[..., :2], corners[..., 2:]
    return torch.cat([(first + last) / 2, last - first], -1)


def generalized_iou(one: Float[Tensor, "... 4"], other: Float[Tensor, "... 4"]) -> Float[Tensor, "..."]:
    """Measures how well boxes, given by their corners, agree: 1 for equal ones, towards -1 for small ones far from each
    other.

    The intersection over the union, minus the share of the smallest enclosing box that belongs to neither (Rezatofighi
    et al. 2019, https://arxiv.org/abs/1902.09630). Leading dimensions broadcast. Boxes without area give no NaN.
    """
    shared = _area(torch.maximum(one[..., :2], other[..., :2]), torch.minimum(one[..., 2:], other[..., 2:]))
    union = _area(one[..., :2], one[..., 2:]) + _area(other[..., :2], other[..., 2:]) - shared
    enclosing = _area(torch.minimum(one[..., :2], other[..., :2]), torch.maximum(one[..., 2:], other[..., 2:]))
    least = torch.finfo(one.dtype).tiny
    return shared / union.clamp_min(least) - (enclosing - union) / enclosing.clamp_min(least)


def overlap(one: Float[Tensor, "... 4"], other: Float[Tensor, "... 4"]) -> Float[Tensor, "..."]:
    """The intersection over the union of boxes, given by their corners: 0 to 1."""
    shared = _area(torch.maximum(one[..., :2], other[..., :2]), torch.minimum(one[..., 2:], other[..., 2:]))
    union = _area(one[..., :2], one[..., 2:]) + _area(other[..., :2], other[..., 2:]) - shared
    return shared / union.clamp_min(torch.finfo(one.dtype).tiny)


def _area(first: Float[Tensor, "... 2"], last: Float[Tensor, "... 2"]) -> Float[Tensor, "..."]:
    return (last - first).clamp_min(0).prod(-1)
