"""One step of writing by plain functions: what a block computes for one more token of each row.

A step of a small batch takes as long for Python around the operations as for the operations. Here the choices are made
once, of a block's parts: which norms, projections and activations it has. What runs then calls no modules, describes no
masks and chooses no kernels. Everything else is left to the block itself: several tokens at once, gradients, a look or
a change that is open, and parts that are not known here.
"""

import copy
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foveate.attention import Bias, Dot, Mask, Memory, ScaledDot, Soft, SoftCapped, hooks
from foveate.attention.single_query import StepMasks, attend_step
from foveate.inference.joint_attention import JointSelfAttention
from foveate.inference.packed import LinearProduct
from foveate.nn import (
    DecoderBlock,
    FeedForward,
    GatedFeedForward,
    MultiHeadAttention,
    ParallelBlock,
    Residual,
    TransformerBlock,
)
from foveate.nn.norms import ShiftedRMSNorm
from foveate.nn.rotary import Rotation

Function = Callable[[Tensor], Tensor]
"""Makes vectors (R, P) of vectors (R, C), one for each row."""

Branch = Callable[..., Tensor]
"""The same with what else a layer of a block is given."""


class _UnknownPart(Exception):
    """A part whose step is not written here."""


def lean_copy(model: nn.Module) -> nn.Module:
    """A copy that shares all weights with the model and takes lean steps; the model itself where none of its blocks is
    known here, as those of other libraries."""
    if not any(type(part) in _BLOCKS for part in model.modules()):
        return model
    parts: dict[int, Any] = {id(part): part for part in (*model.parameters(), *model.buffers())}
    return make_lean(copy.deepcopy(model, parts).eval())


def make_lean(model: nn.Module) -> nn.Module:
    """Give the blocks of a model that is not trained any more the step of this module where they consist of known
    parts; returns the model."""
    masks = StepMasks()
    for block in model.modules():
        if type(block) in _BLOCKS and "forward" not in vars(block):
            try:
                block.forward = _BLOCKS[type(block)](block, masks)
            except _UnknownPart:
                continue
    return model


class _LeanBlock:
    """Stands in place of the `forward` of a block. Copies of a model share it, as they share packed weights."""

    def __init__(self, block: nn.Module, masks: StepMasks) -> None:
        self.block, self.whole, self.masks = block, type(block).forward, masks

    def __deepcopy__(self, memo: dict[int, Any]) -> "_LeanBlock":
        return self

    def serves(self, x: Tensor, past: object, mask: object, bias: object, positions: Tensor | None) -> bool:
        """Returns whether a call is a step that is written here."""
        return (
            x.shape[1] == 1
            and x.is_cpu
            and isinstance(past, Memory)
            and hooks.interceptor is None
            and positions is None
            and (mask is None or isinstance(mask, Mask))
            and (bias is None or (isinstance(bias, Bias) and not bias.reads_queries))
            and not (torch.is_grad_enabled() or self.block.training or torch.is_autocast_enabled("cpu"))
        )


class LeanBlock(_LeanBlock):
    """The step of a `TransformerBlock` or a `ParallelBlock`."""

    def __init__(self, block: TransformerBlock, masks: StepMasks) -> None:
        super().__init__(block, masks)
        attention, feedforward = self_attention(block.self, masks), feed_forward(block.feedforward)
        first, second = block.around_self, block.around_feedforward
        if isinstance(block, ParallelBlock):
            norm = layer_norm(block.norm) if block.norm is not None else None
            attended, fed = branch(first, attention), branch(second, feedforward)

            def step(x: Tensor, *given: Any) -> Tensor:
                normal = x if norm is None else norm(x)
                return x + attended(normal, *given) + fed(normal)

            self.step = step
        else:
            around, fed = residual(first, attention), residual(second, feedforward)
            self.step = lambda x, *given: fed(around(x, *given))

    def __call__(
        self,
        x: Tensor,
        mask: Any = None,
        bias: Any = None,
        past: Any = None,
        rotation: Any = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        """As the block itself."""
        if self.serves(x, past, mask, bias, positions):
            return self.step(x[:, 0], past, mask, bias, rotation)[:, None]
        return self.whole(self.block, x, mask, bias, past, rotation, positions)


class LeanDecoderBlock(_LeanBlock):
    """The step of a `DecoderBlock`."""

    def __init__(self, block: DecoderBlock, masks: StepMasks) -> None:
        super().__init__(block, masks)
        self.own = residual(block.around_self, self_attention(block.self, masks))
        self.cross = residual(block.around_cross, cross_attention(block.cross, masks))
        self.fed = residual(block.around_feedforward, feed_forward(block.feedforward))

    def __call__(
        self,
        x: Tensor,
        source: Any,
        mask: Any = None,
        source_mask: Any = None,
        past: Any = None,
        bias: Any = None,
        rotation: Any = None,
        positions: Tensor | None = None,
        source_positions: Tensor | None = None,
    ) -> Tensor:
        """As the block itself."""
        keys_alone = source_mask is None or (isinstance(source_mask, Mask) and not source_mask.rowwise)
        if keys_alone and isinstance(source, Memory) and self.serves(x, past, mask, bias, positions):
            return self.fed(self.cross(self.own(x[:, 0], past, mask, bias, rotation), source, source_mask))[:, None]
        given = mask, source_mask, past, bias, rotation, positions, source_positions
        return self.whole(self.block, x, source, *given)


_BLOCKS: dict[type, Callable[[Any, StepMasks], Branch]] = {
    TransformerBlock: LeanBlock,
    ParallelBlock: LeanBlock,
    DecoderBlock: LeanDecoderBlock,
}


def residual(around: Residual, layer: Branch) -> Branch:
    """The step of a residual connection with its layer."""
    added = branch(around, layer)
    if around.place == "post":
        norm = layer_norm(around.norm)
        return lambda x, *given: norm(x + added(x, *given))
    return lambda x, *given: x + added(x, *given)


def branch(around: Residual, layer: Branch) -> Branch:
    """The step of a layer with its norms and scale, without the sum."""
    if type(around) is not Residual:
        raise _UnknownPart
    scale, last = around.scale, None if around.last_norm is None else layer_norm(around.last_norm)
    normalizes = around.place in ("pre", "sandwich") and type(around.norm) is not nn.Identity
    before = layer_norm(around.norm) if normalizes else None
    after = layer_norm(around.norm) if around.place == "output" else last
    if after is None and scale is None:
        return layer if before is None else lambda x, *given: layer(before(x), *given)

    def run(x: Tensor, *given: Any) -> Tensor:
        y = layer(x if before is None else before(x), *given)
        y = y if after is None else after(y)
        return y if scale is None else y * scale

    return run


def layer_norm(norm: nn.Module) -> Function:
    """The function of a norm."""
    if type(norm) is nn.LayerNorm:
        shape, weight, bias, epsilon = norm.normalized_shape, norm.weight, norm.bias, norm.eps
        return lambda x: torch.layer_norm(x, shape, weight, bias, epsilon)
    if type(norm) is nn.RMSNorm:
        shape, weight, rms_epsilon = norm.normalized_shape, norm.weight, norm.eps
        return lambda x: torch.rms_norm(x, shape, weight, rms_epsilon)
    if type(norm) is ShiftedRMSNorm:
        factor, own_epsilon = (1 + norm.weight).detach(), norm.eps
        return lambda x: torch.rms_norm(x, factor.shape, factor, own_epsilon)
    raise _UnknownPart


def linear(layer: nn.Module) -> Function:
    """The function of a linear layer, whatever its weights are packed as."""
    if type(layer) is nn.Linear:
        weight, bias = layer.weight, layer.bias
        return lambda x: F.linear(x, weight, bias)
    if isinstance(layer, LinearProduct):
        return layer.forward
    raise _UnknownPart


def feed_forward(layer: FeedForward) -> Function:
    """The step of a feed-forward layer."""
    inner, outer, activation = linear(layer.inner), linear(layer.outer), layer.activation
    if type(layer) is FeedForward:
        return lambda x: outer(activation(inner(x)))
    if type(layer) is GatedFeedForward:
        gate = linear(layer.gate)
        return lambda x: outer(activation(gate(x)) * inner(x))
    raise _UnknownPart


def projections(layer: MultiHeadAttention) -> Callable[[Tensor, Any], tuple[Tensor, Tensor, Tensor]]:
    """Makes queries (R, H, 1, D), keys (R, G, 1, D) and values (R, G, 1, V), turned by a rotation if there is one."""
    width, value_width, across = layer.head_width, layer.value_width, layer.norm_across
    query_norm, key_norm = (None if norm is None else layer_norm(norm) for norm in (layer.query_norm, layer.key_norm))

    def heads(projected: Tensor, norm: Function | None) -> Tensor:
        if norm is not None and across:
            projected = norm(projected)
        projected = projected.view(len(projected), -1, 1, width)
        return projected if norm is None or across else norm(projected)

    if type(layer) is JointSelfAttention:
        joint, parts = linear(layer.joint), layer.widths
        count, both = parts[0] // width, parts[0] + parts[1]
        if query_norm is None and key_norm is None:

            def together(x: Tensor, rotation: Any) -> tuple[Tensor, Tensor, Tensor]:
                projected = joint(x)
                turned = projected[:, :both].view(len(x), -1, 1, width)
                values = projected[:, both:].view(len(x), -1, 1, value_width)
                if isinstance(rotation, Rotation):
                    turned, rotation = rotation(turned), None
                queries, keys = turned[:, :count], turned[:, count:]
                return *((queries, keys) if rotation is None else rotation.turn(queries, keys)), values

            return together

        def split(x: Tensor) -> tuple[Tensor, ...]:
            return joint(x).split(parts, -1)
    elif type(layer) is MultiHeadAttention:
        query, key, value = linear(layer.query), linear(layer.key), linear(layer.value)

        def split(x: Tensor) -> tuple[Tensor, ...]:
            return query(x), key(x), value(x)
    else:
        raise _UnknownPart

    def apart(x: Tensor, rotation: Any) -> tuple[Tensor, Tensor, Tensor]:
        queries, keys, values = split(x)
        queries, keys = heads(queries, query_norm), heads(keys, key_norm)
        if rotation is not None:
            queries, keys = rotation.turn(queries, keys)
        return queries, keys, values.view(len(x), -1, 1, value_width)

    return apart


def scoring(layer: MultiHeadAttention) -> tuple[float, float | None]:
    """The factor of the dot products and the limit of the scores; what else a layer does with its heads is not known
    here."""
    if type(layer.select) is not Soft or layer.select.sinks is not None or layer.gate is not None:
        raise _UnknownPart
    score, cap = layer.score, None
    if type(score) is SoftCapped:
        cap = score.cap
        score = score.score
    if type(score) not in (Dot, ScaledDot):
        raise _UnknownPart
    return float(score.scale(layer.head_width)), cap  # type: ignore[arg-type]


def self_attention(layer: nn.Module, masks: StepMasks) -> Branch:
    """The step of self-attention: (x, past, mask, bias, rotation)."""
    if not isinstance(layer, MultiHeadAttention):
        raise _UnknownPart
    project, output, group = projections(layer), linear(layer.output), layer.group
    scale, cap = scoring(layer)

    def attend(x: Tensor, past: Memory, mask: Any, bias: Any, rotation: Any) -> Tensor:
        queries, keys, values = project(x, rotation)
        if group == 1:
            past.append(keys, values)
            keys, values = past.keys, past.values
        else:
            past.append(keys[:, :, None], values[:, :, None])
            keys, values = past.keys[:, :, 0], past.values[:, :, 0]
            queries = queries.reshape(len(x), -1, group, queries.shape[-1])
        hidden, added = (None, None) if mask is bias is None else masks.of(mask, bias, queries, keys.shape[-2])
        dtype = keys.dtype
        found = attend_step(queries.to(dtype), keys, values, scale, cap, hidden, added)
        return output(found.reshape(len(x), -1).to(x.dtype))

    return attend


def cross_attention(layer: MultiHeadAttention, masks: StepMasks) -> Branch:
    """The step of attention to a source: (x, source, mask)."""
    if type(layer) is not MultiHeadAttention or layer.group != 1 or layer.query_norm is not None:
        raise _UnknownPart
    query, output, width = linear(layer.query), linear(layer.output), layer.head_width
    scale, cap = scoring(layer)

    def attend(x: Tensor, source: Memory, mask: Any) -> Tensor:
        queries = source.gather(query(x)[:, None])
        queries = queries.unflatten(2, (-1, width)).transpose(1, 2)
        keys = source.keys
        hidden, _ = (None, None) if mask is None else masks.of(mask, None, queries, keys.shape[-2])
        found = attend_step(queries.to(keys.dtype), keys, source.values, scale, cap, hidden)
        return output(source.scatter(found.transpose(1, 2).flatten(2))[:, 0].to(x.dtype))

    return attend
