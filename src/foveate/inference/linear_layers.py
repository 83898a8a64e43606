"""Copies of a model with linear layers of another precision."""

import copy
from collections.abc import Callable
from typing import Any, Literal, TypeVar

from torch import nn

from foveate.inference.joint_attention import join_self_attention
from foveate.inference.lean import make_lean

Precision = Literal["float32", "float16", "bfloat16", "int8"]

Model = TypeVar("Model", bound=nn.Module)


def with_linear_layers(model: Model, make: Callable[[nn.Linear], nn.Module]) -> Model:
    """A copy with what is made of each linear layer in its place; all other weights are shared with the model. Layers
    that project queries, keys and values become one, and steps of writing are lean."""
    shared: dict[int, Any] = {id(parameter): parameter for parameter in model.parameters()}
    found = copy.deepcopy(model, shared)
    join_self_attention(found)
    for module in list(found.modules()):
        for name, child in list(module.named_children()):
            if type(child) is nn.Linear:
                setattr(module, name, make(child))
    make_lean(found.eval())
    return found
