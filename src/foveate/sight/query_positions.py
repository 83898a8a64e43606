"""Where the queries of a call stand among its keys, when earlier keys lie in a cache."""

from torch import Tensor, nn

from foveate.attention.call import Call


def first_query_position(call: Call, module: nn.Module) -> int | None:
    """The position of a call's first query among its keys; None if the call does not tell.

    A mask tells it that hides what comes after each query. A single query, and one without a mask, has the last keys
    for itself if its module is a causal one of transformers (`is_causal`): the keys before are a cache's.
    """
    count, total = call.queries.shape[-2], call.keys.shape[-2]
    causal = getattr(module, "is_causal", False) is True and not getattr(module, "is_cross_attention", False)
    if call.mask is None:
        return total - count if causal and count < total else None
    first, last = (_last_visible(call, row) for row in (0, count - 1))
    if count == 1:
        return last if causal else None
    return first if last - first == count - 1 else None


def _last_visible(call: Call, row: int) -> int:
    """The last key that a query may look at, in the example where it is last; -1 for none."""
    assert call.mask is not None
    total = call.keys.shape[-2]
    allowed: Tensor = call.mask.block(range(row, row + 1), range(total), len(call.leading), call.queries.device)
    visible = allowed.expand(*allowed.shape[:-1], total).flatten(0, -2).any(0).nonzero()
    return int(visible[-1]) if len(visible) else -1
