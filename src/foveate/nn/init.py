"""Initial random weights, and how to skip them."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from foveate.nn.positions import LearnedPositions


def initialize(model: nn.Module, width: int) -> None:
    """Initialize linear layers by Glorot's uniform distribution (2010), embeddings with a norm of about 1.

    Embeddings are multiplied by the root of `width` where they are read, as in Vaswani et al. 2017, section 3.4.
    """
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=width**-0.5)


def initialize_language_model(model: nn.Module, layers: int | None = None, std: float = 0.02) -> None:
    """Initialize weights by a normal distribution and biases with 0 (BERT, Devlin et al. 2019). With the number of
    `layers`, weights that end a residual branch by a narrower one, `std / sqrt(2 * layers)` (GPT-2, Radford et al.
    2019)."""
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            ends_branch = name.endswith(("self.output", "feedforward.outer"))
            nn.init.normal_(module.weight, std=std / (2 * layers) ** 0.5 if layers and ends_branch else std)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=std)
        elif isinstance(module, LearnedPositions):
            nn.init.normal_(module.table, std=std)


def initialize_convolutions(model: nn.Module) -> None:
    """Draw convolutions over images so that activations keep their size through ReLU layers (He et al. 2015,
    https://arxiv.org/abs/1502.01852), and linear layers as `initialize` does."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        elif isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
        else:
            continue
        if module.bias is not None:
            nn.init.zeros_(module.bias)


class TooManyWeightsError(Exception):
    """A model has more weights than expected."""


class skip_init(TorchFunctionMode):
    """Inside, modules are created without random weights, for models whose weights are loaded next.

    Random weights take longer than loading, and untouched memory is not allocated yet. Raises TooManyWeightsError when
    modules have more than `at_most` numbers, before they fill the memory of the machine.
    """

    def __init__(self, at_most: int = sys.maxsize) -> None:
        super().__init__()
        self._left = at_most

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if function in _IN_PLACE or getattr(function, "__module__", None) == nn.init.__name__:
            return args[0] if args else (kwargs or {})["tensor"]
        result = function(*args, **(kwargs or {}))
        if function in _MAKERS:
            self._left -= result.numel()
            if self._left < 0:
                raise TooManyWeightsError
        return result


@contextmanager
def without_memory() -> Iterator[None]:
    """Inside, modules are created with shapes alone: on the device "meta", where drawing weights would take time."""
    with torch.device("meta"), skip_init():
        yield


_IN_PLACE = {torch.Tensor.normal_, torch.Tensor.uniform_}

_MAKERS = {torch.empty, torch.zeros}
"""Functions by which modules create their weights."""
