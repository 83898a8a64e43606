"""How small models of comparisons learn: AdamW at a rate that rises and falls once, gradients clipped."""

from collections.abc import Callable

import torch
from torch import Tensor, nn


def train(model: nn.Module, steps: int, learning_rate: float, loss: Callable[[int], Tensor]) -> nn.Module:
    """The model after so many steps, in evaluation mode; `loss` is that of a step, by its number from 0 on. The rate is
    the highest one."""
    optimizer = torch.optim.AdamW(model.parameters(), learning_rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, learning_rate, total_steps=steps + 1)
    for step in range(steps):
        found = loss(step)
        optimizer.zero_grad()
        found.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return model.eval()
