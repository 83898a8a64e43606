"""Dot-product attention by torch's FlexAttention, for masks and biases of positions on a device that compiles it.

Blocks that a mask hides take no time, and the numbers of a bias are never written. The kernel is compiled for each
form: a kind of mask and of bias, and lengths of one block, of whole blocks or of others. On a CPU torch has only its
forward pass, and no faster: there it serves the tests. Compiled it has run on a CPU, not yet on a real device.
"""

from collections.abc import Callable
from contextlib import nullcontext
from functools import cache, lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from foveate.accelerator import compiles_attention
from foveate.attention.biases import PositionalBias
from foveate.attention.call import Call
from foveate.attention.kernels.sdpa import in_four_dimensions, in_the_type_of_autocast
from foveate.attention.length_masks import Padding
from foveate.attention.masks import Causal, Mask, positional_part
from foveate.attention.selection import Attended, Soft

SIDE = 128
"""Queries and keys of a block; with fewer of either the kernel has nothing to leave out."""

TYPES = (torch.float32, torch.float16, torch.bfloat16)

LEAST_WIDTH = 16
"""Numbers of a head that the units for matrix products need at least."""

FORMS = 128
"""Forms that are compiled at most. Torch would stop after eight, and compute the others with all scores."""


def serves(call: Call) -> bool:
    """Returns whether a call is for this kernel: a dot product with a mask or bias of positions that the fused kernel
    does not know itself."""
    if call.queries.dtype not in TYPES or call.full or call.dropout:
        return False
    if not compiles_attention(call.queries.device.type):
        return False
    if call.scale is None or not isinstance(call.select, Soft) or call.select.sinks is not None:
        return False
    sizes = call.queries.shape[-2], call.keys.shape[-2]
    widths = call.queries.shape[-1], call.values.shape[-1]
    if min(sizes) < SIDE or min(widths) < LEAST_WIDTH or not call.leading.numel():
        return False
    positions, others = positional_part(call.mask)
    if not all(isinstance(part, Padding) and part.lengths.shape == call.leading[:1] for part in others):
        return False
    if call.bias is None:
        return positions not in (None, Causal(0))
    learned = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in call.bias.tensors())
    positional = isinstance(call.bias, PositionalBias) and call.bias.shape()[:-2] == call.leading[1:]
    return positional and not learned


def attend(call: Call) -> Attended:
    call = in_the_type_of_autocast(call)
    leading, device = call.leading, call.queries.device
    parts = (call.queries, call.keys, call.values)
    queries, keys, values = (in_four_dimensions(part.expand(*leading, *part.shape[-2:]), leading) for part in parts)
    positions, others = positional_part(call.mask)
    blocks = None if positions is None else block_mask(positions, queries.shape[-2], keys.shape[-2], device)
    assert call.bias is None or isinstance(call.bias, PositionalBias)
    change = None if call.bias is None and not others else _changed_score(call.bias, others)
    computed = _flex_attention(device.type)
    with nullcontext() if torch.compiler.is_compiling() else torch._dynamo.config.patch(recompile_limit=FORMS):
        output = computed(queries, keys, values, score_mod=change, block_mask=blocks, scale=call.scale)
    return Attended(output.reshape(*leading, *output.shape[-2:]))


@cache
def _flex_attention(kind: str) -> Any:
    from torch.nn.attention.flex_attention import flex_attention  # its import takes a second

    return flex_attention if kind == "cpu" else torch.compile(flex_attention, dynamic=True, fullgraph=True)


def _changed_score(bias: PositionalBias | None, paddings: Any) -> Callable[..., Tensor]:
    """Adds the bias to a score, and hides padding. Blocks are those of positions alone, which all examples share."""

    def change(score: Tensor, example: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        if bias is not None:
            score = score + bias.at(head, query, key)
        for padding in paddings:
            score = torch.where(padding.shows(key, padding.lengths[example]), score, -torch.inf)
        return score

    return change


@lru_cache(maxsize=32)
def block_mask(mask: Mask, queries: int, keys: int, device: torch.device) -> Any:
    """The blocks of a mask of positions that are seen in part and as a whole: a number for each pair of blocks.

    All layers of a model share them.
    """
    from torch.nn.attention.flex_attention import BlockMask

    with torch.inference_mode(False), torch.no_grad():
        (count, places), (whole_count, whole_places) = map(_counted, _seen(mask, queries, keys, device))
        return BlockMask.from_kv_blocks(
            count,
            places,
            whole_count,
            whole_places,
            BLOCK_SIZE=SIDE,
            mask_mod=lambda example, head, query, key: mask.allows(query, key),
            seq_lengths=(queries, keys),
        )


def _counted(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """The number of seen blocks in each row (1, 1, R), and the places of all blocks, those first (1, 1, R, C)."""
    first = blocks.to(torch.int8).argsort(dim=-1, descending=True, stable=True)
    return blocks.sum(-1, dtype=torch.int32)[None, None], first.int()[None, None]


def _seen(mask: Mask, queries: int, keys: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """The blocks (R, C) that are seen in part, and those that are seen as a whole."""
    some, whole = torch.zeros(2, -(-queries // SIDE), -(-keys // SIDE), dtype=torch.bool, device=device)
    for row in range(len(some)):
        rows = range(row * SIDE, min(queries, (row + 1) * SIDE))
        reach = mask.reach(rows, keys)
        over = slice(reach.start // SIDE, -(-reach.stop // SIDE))
        columns = range(over.start * SIDE, min(keys, over.stop * SIDE))
        if not columns:
            continue
        seen = mask.block(rows, columns, 2, device).expand(len(rows), len(columns))
        missing = (over.stop - over.start) * SIDE - len(columns)
        seen = F.pad(seen, (0, missing, 0, SIDE - len(rows))).unflatten(1, (-1, SIDE))
        some[row, over], whole[row, over] = seen.any(-1).any(0), seen.all(-1).all(0)
    return some & ~whole, whole
