"""Linear attention in time that is linear in T and S: keys and values are summed to a matrix of fixed size.

A causal call is cut into chunks. Places of one chunk look at one another by a small product of queries and keys; all
earlier chunks are one matrix, which fades from chunk to chunk.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from foveate.attention.call import Call
from foveate.attention.linear import CHUNK, Fading, Linear
from foveate.attention.masks import causal_part
from foveate.attention.selection import Attended
from foveate.attention.shapes import precise


def serves(call: Call) -> bool:
    """Whether a call's weights are sums of products of queries and keys, with a mask that sums can follow."""
    if not isinstance(call.select, Linear) or call.bias is not None or call.dropout:
        return False
    steps, of_keys = causal_part(call.mask)
    fades = isinstance(call.score, Fading)
    if (not fades and call.scale is None) or (of_keys is not None and of_keys.rowwise):
        return False
    if steps is None:
        return not fades or call.queries.shape[-2] == call.keys.shape[-2] == 1
    return steps.start == 0 and call.queries.shape[-2] == call.keys.shape[-2]


def attend(call: Call) -> Attended:
    """In single precision at least, since sums over all keys are. A call with a state returns the next one."""
    with torch.autocast(call.queries.device.type, enabled=False):
        queries, keys, values = map(precise, (call.queries, call.keys, call.values))
        steps, of_keys = causal_part(call.mask)
        left = None
        if isinstance(call.score, Fading):
            queries, keys, left = queries[..., :-1], keys[..., :-1], queries[..., -1:]
        else:
            queries = queries * (call.scale or 1.0)
        if of_keys is not None:
            keys = keys * of_keys.block(range(1), range(keys.shape[-2]), len(call.leading), keys.device).mT
        normalize = call.select.normalize  # type: ignore[attr-defined]
        if normalize:
            values = F.pad(values, (0, 1), value=1.0)
        state = call.state
        if steps is None and state is None:
            output = queries @ (keys.mT @ values)
        else:
            output, state = _causal(queries, keys, values, left, state)
        if normalize:
            sums = output[..., -1:]
            output = output[..., :-1] / torch.where(sums == 0, 1.0, sums)
    output = output.expand(*call.leading, *output.shape[-2:]).to(call.values.dtype)
    return Attended(output, state=None if call.state is None else state)


def _causal(
    queries: Float[Tensor, "... T P"],
    keys: Float[Tensor, "... T P"],
    values: Float[Tensor, "... T V"],
    left: Float[Tensor, "... T 1"] | None,
    state: Float[Tensor, "... P V"] | None,
) -> tuple[Float[Tensor, "... T V"], Float[Tensor, "... P V"]]:
    """Outputs, and the state after the last place. What is `left` begins with 1 in the state."""
    held = keys.new_zeros(keys.shape[-1], values.shape[-1]) if state is None else state
    before: Tensor | float = 0.0
    outputs = []
    for start in range(0, queries.shape[-2], CHUNK):
        q, k, v = (part[..., start : start + CHUNK, :] for part in (queries, keys, values))
        near = (q @ k.mT).tril()
        if left is None:
            outputs.append(near @ v + q @ held)
            held = held + k.mT @ v
        else:
            own = left[..., start : start + CHUNK, :]
            last = own[..., -1:, :]
            near = near * (own - own.mT).clamp(max=0.0).exp()
            outputs.append(near @ v + (q * (own - before).exp()) @ held)
            held = held * (last - before).exp() + (k * (last - own).exp()).mT @ v
            before = last
    return torch.cat(outputs, -2), held
