"""The random weights that models begin with, and how to do without them."""

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode


def initialize(model: nn.Module, width: int) -> None:
    """Draw linear layers evenly by their two widths (Glorot and Bengio 2010), embeddings with a norm of about 1.

    Embeddings are multiplied by the root of `width` where they are read, as in Vaswani et al. 2017, section 3.4.
    """
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=width**-0.5)


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
    """A model that is made has more weights than were to be expected."""


class skip_init(TorchFunctionMode):
    """Inside, modules are made without drawing weights, for models that are given others at once.

    Drawing them takes longer than reading them from a file, and memory that nobody has written in takes none yet.
    Raises TooManyWeightsError when modules have made more than `at_most` numbers, before a machine is full of layers.
    """

    def __init__(self, at_most: int = sys.maxsize) -> None:
        super().__init__()
        self._left = at_most

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if function in _IN_PLACE or getattr(function, "__module__", None) == nn.init.__name__:
            return args[0] if args else (kwargs or {})["tensor"]
        result = function(*args, **(kwargs or {}))
        if function in _MAKERS:
            self._left -= result.numel()
            if self._left < 0:
                raise TooManyWeightsError
        return result


_IN_PLACE = {torch.Tensor.normal_, torch.Tensor.uniform_}

_MAKERS = {torch.empty, torch.zeros}
"""With which modules make their weights."""
