"""Attention of models of transformers that is written out there, by torch's function, so that it can be looked at."""

from functools import partial
from typing import Any

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

WRITTEN_OUT = ("GitSelfAttention",)
"""Classes that multiply by a softmax of their own, with linear layers `query`, `key` and `value`."""


def fuse_attention(model: nn.Module) -> None:
    """Has the layers of a model that write attention out call torch's function instead, with the same output."""
    for module in model.modules():
        if type(module).__name__ in WRITTEN_OUT:
            module.forward = partial(_attend, module)


def _attend(
    module: Any, hidden: Float[Tensor, "B T C"], mask: Tensor | None = None, cache: Any = None, **options: Any
) -> tuple[Float[Tensor, "B T C"], None]:
    """What the layer itself returns, without weights."""
    split = (*hidden.shape[:-1], -1, module.attention_head_size)
    queries, keys, values = (part(hidden).view(split).transpose(1, 2) for part in _projections(module))
    cache = options.get("past_key_values") if cache is None else cache
    if cache is not None:
        keys, values = cache.update(keys, values, module.layer_idx)
    dropout = module.dropout.p if module.training else 0.0
    found = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, dropout_p=dropout)
    return found.transpose(1, 2).flatten(2), None


def _projections(module: Any) -> tuple[nn.Module, nn.Module, nn.Module]:
    return module.query, module.key, module.value
