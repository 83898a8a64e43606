"""Self-attention that projects queries, keys and values at once."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveate.inference.packed import cannot_save
from foveate.nn import DecoderBlock, MultiHeadAttention, TransformerBlock
from foveate.nn.attention import split_heads


def join_self_attention(model: nn.Module) -> None:
    """Join the projections of all plain self-attention in blocks."""
    for part in model.modules():
        attention = part.self if isinstance(part, (TransformerBlock, DecoderBlock)) else None
        if type(attention) is MultiHeadAttention and isinstance(attention.query, nn.Linear):
            part.self = JointSelfAttention(attention)


class JointSelfAttention(MultiHeadAttention):
    """Self-attention that projects queries, keys and values by one matrix."""

    def __init__(self, attention: MultiHeadAttention) -> None:
        nn.Module.__init__(self)
        self.head_width, self.value_width = attention.head_width, attention.value_width
        parts: tuple[Any, ...] = (attention.query, attention.key, attention.value)
        self.widths = [part.out_features for part in parts]
        weight = torch.cat([part.weight for part in parts])
        biased = any(part.bias is not None for part in parts)
        self.joint = nn.Linear(weight.shape[1], weight.shape[0], biased, device="meta")  # weights are set below
        self.joint.weight = nn.Parameter(weight, requires_grad=False)
        if biased:
            biases = [part.weight.new_zeros(part.out_features) if part.bias is None else part.bias for part in parts]
            self.joint.bias = nn.Parameter(torch.cat(biases), requires_grad=False)
        self.query_norm, self.key_norm = attention.query_norm, attention.key_norm
        self.group, self.norm_across = attention.group, attention.norm_across
        self.output, self.score, self.select = attention.output, attention.score, attention.select
        self.gate = attention.gate
        self.dropout = attention.dropout
        self.training = attention.training

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        raise cannot_save()

    def _project(
        self, x: Float[Tensor, "B T C"], positions: Float[Tensor, "... T C"] | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        queries, keys, values = self.joint(x).split(self.widths, -1)
        if positions is not None:
            queries, keys, _ = self.joint(x + positions).split(self.widths, -1)
        return (
            self._heads(queries, self.query_norm),
            self._heads(keys, self.key_norm),
            split_heads(values, self.value_width),
        )

    def _keys_values(
        self, source: Float[Tensor, "B S C"], positions: Float[Tensor, "... S C"] | None = None
    ) -> tuple[Tensor, Tensor]:
        return self._project(source, positions)[1:]
