"""A moving average of the weights of a model in training (Polyak and Juditsky 1992), which is validated and kept."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor


class MovingAverage:
    """An exponential moving average of tensors, among them the statistics of batch norms.

    It begins with the tensors after the first step. Until the average has seen as many steps as it reaches over, it
    reaches over fewer: in step t the old average counts (1 + t) / (10 + t), and at most `decay`.
    """

    def __init__(self, decay: float) -> None:
        self.decay = decay
        self.tensors: dict[str, Tensor] = {}
        """By name; empty before the first step. Names of one weight have one average."""
        self._names: list[str] = []
        """One name of each weight."""

    @torch.no_grad()
    def update(self, weights: Mapping[str, Tensor], step: int) -> None:
        """Move towards the weights after `step`. What is not a floating-point number, such as a counter, is copied."""
        if not self.tensors:
            self.restore(weights, weights)
            return
        share = 1 - min(self.decay, (1 + step) / (10 + step))
        for name in self._names:
            if self.tensors[name].is_floating_point():
                self.tensors[name].lerp_(weights[name], share)
            else:
                self.tensors[name].copy_(weights[name])

    @torch.no_grad()
    def restore(self, tensors: Mapping[str, Tensor], like: Mapping[str, Tensor]) -> None:
        """Go on from `tensors`, in the layout and on the device of the weights that they are `like`."""
        owners: dict[Any, str] = {}
        self.tensors, self._names = {}, []
        for name, weight in like.items():
            owner = owners.setdefault(_memory(weight), name)
            if owner == name:
                self._names.append(name)
                self.tensors[name] = torch.empty_like(weight).copy_(tensors[name])
            else:
                self.tensors[name] = self.tensors[owner]

    @contextmanager
    def exchanged(self, weights: Mapping[str, Tensor]) -> Iterator[None]:
        """A context in which the weights have the values of the average, and the average has theirs."""
        self._exchange(weights)
        try:
            yield
        finally:
            self._exchange(weights)

    @torch.no_grad()
    def _exchange(self, weights: Mapping[str, Tensor]) -> None:
        for name in self._names:
            average = self.tensors[name].clone()
            self.tensors[name].copy_(weights[name])
            weights[name].copy_(average)


def _memory(weight: Tensor) -> tuple[Any, ...]:
    """What is the same for two names of one weight."""
    local: Tensor = weight.to_local() if hasattr(weight, "to_local") else weight  # a process' part of it
    return local.data_ptr(), local.shape, local.stride()
