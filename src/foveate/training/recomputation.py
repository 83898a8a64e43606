"""Activations that are computed again in the backward pass instead of being kept (Chen et al. 2016,
https://arxiv.org/abs/1604.06174): of each block, only its input is kept."""

from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from foveate.errors import UserError
from foveate.training.parallel.plan import units


def recompute_blocks(model: nn.Module) -> None:
    """Have each block of `model` keep nothing but its input in training. Raises UserError for a model without blocks.

    Weights, gradients and random numbers stay as they were; the forward pass of blocks takes place twice.
    """
    blocks = units(model)
    if not blocks:
        raise UserError("the model has no blocks that could be computed again: leave recompute out")
    for block in blocks:
        # Bound to the block, so that a copy of the model computes with its own weights.
        block.forward = partial(_compute, block, block.forward)


def _compute(block: nn.Module, forward: Any, *given: Any, **named: Any) -> Any:
    if not (block.training and torch.is_grad_enabled()):
        return forward(*given, **named)
    return checkpoint(forward, *given, use_reentrant=False, **named)
