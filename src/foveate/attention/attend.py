"""The one place that attends."""

from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from foveate.attention import hooks
from foveate.attention.biases import Bias, as_bias
from foveate.attention.call import Call
from foveate.attention.kernels import choose
from foveate.attention.masks import Mask, as_mask
from foveate.attention.memory import Memory
from foveate.attention.scores import ScaledDot, Score
from foveate.attention.selection import Attended, Selection, Soft

SCALED_DOT, SOFT = ScaledDot(), Soft()

_HINT = " To hide the padding of each example: mask=padding(lengths)"


def attend(
    q: Float[Tensor, "... T D"],
    k: Float[Tensor, "... S E"] | Memory,
    v: Float[Tensor, "... S V"] | None = None,
    score: Score = SCALED_DOT,
    mask: Mask | Tensor | None = None,
    bias: Bias | Tensor | None = None,
    select: Selection = SOFT,
    dropout: float = 0.0,
    kernel: str = "auto",
) -> Float[Tensor, "... T V"]:
    """Let every query look at the keys and take from the values: `softmax(score(q, k) + bias) v`.

    The leading dimensions broadcast: heads that share keys are `q (B, G, H/G, T, D)` with `k (B, G, 1, S, D)`. A
    `Memory` in place of `k` brings keys, values and score. A query that may look nowhere gets zeros. `dropout` is the
    share of weights that are dropped; `kernel` names one of `attention.kernels.TABLE` or lets the table choose.
    """
    return _attend(_call(q, k, v, score, mask, bias, select, dropout), kernel).output


def attend_full(
    q: Float[Tensor, "... T D"],
    k: Float[Tensor, "... S E"] | Memory,
    v: Float[Tensor, "... S V"] | None = None,
    score: Score = SCALED_DOT,
    mask: Mask | Tensor | None = None,
    bias: Bias | Tensor | None = None,
    select: Selection = SOFT,
    dropout: float = 0.0,
    kernel: str = "auto",
    *,
    state: Any = None,
    generator: torch.Generator | None = None,
) -> Attended:
    """`attend` with all that it can tell: log-sum-exp, and the choice and its log-probability of a hard selection.

    `state` is the `Attended.state` of the previous call, for a selection that remembers; `generator` draws what is
    random.
    """
    call = replace(_call(q, k, v, score, mask, bias, select, dropout), full=True, state=state, generator=generator)
    return _attend(call, kernel)


def _attend(call: Call, kernel: str) -> Attended:
    chosen = choose(call, kernel)
    return chosen.attend(call) if hooks.interceptor is None else hooks.interceptor(call, chosen)


def _call(
    q: Tensor,
    k: Tensor | Memory,
    v: Tensor | None,
    score: Score,
    mask: Mask | Tensor | None,
    bias: Bias | Tensor | None,
    select: Selection,
    dropout: float,
) -> Call:
    if isinstance(k, Memory):
        if v is not None or score is not SCALED_DOT:
            raise TypeError("a Memory has values and a score of its own: attend(q, memory)")
        memory = k
    elif v is None:
        raise TypeError("attend needs values: attend(q, k, v), or attend(q, memory)")
    else:
        memory = Memory(k, v, score)
    call = Call(
        queries=memory.score.queries(q),
        keys=memory.keys,
        values=memory.values,
        score=memory.score,
        mask=None if mask is None else as_mask(mask),
        bias=None if bias is None else as_bias(bias),
        select=select,
        dropout=dropout,
        full=False,
    )
    _check(call)
    return call


def _check(call: Call) -> None:
    if call.queries.shape[-1] != call.keys.shape[-1]:
        raise ValueError(
            f"queries {tuple(call.queries.shape)} and keys {tuple(call.keys.shape)} differ in width, "
            f"{call.queries.shape[-1]} and {call.keys.shape[-1]}: project them, or join them by Additive or Biaffine"
        )
    try:
        call.leading  # noqa: B018
    except RuntimeError:
        shapes = ", ".join(str(tuple(part.shape)) for part in (call.queries, call.keys, call.values))
        raise ValueError(
            f"the leading dimensions of queries, keys and values do not broadcast: {shapes}; "
            "is a batch or head dimension missing?"
        ) from None
    scores = torch.Size((*call.leading, call.queries.shape[-2], call.keys.shape[-2]))
    if call.mask is not None:
        _check_fits("mask", call.mask.shape(len(call.leading)), scores)
    if call.bias is not None:
        _check_fits("bias", call.bias.shape(), scores)
    if call.select.sinks is not None:
        _check_fits("table of sinks", torch.Size((*call.select.sinks.shape, 1, 1)), scores)
    if not 0 <= call.dropout < 1:
        raise ValueError(f"dropout is a share of at least 0 and below 1, not {call.dropout}")


def _check_fits(name: str, shape: torch.Size, scores: torch.Size) -> None:
    own, whole = shape[::-1], scores[::-1]
    if len(own) > len(whole) or any(own[place] not in (1, whole[place]) for place in range(len(own))):
        raise ValueError(
            f"a {name} of shape {tuple(shape)} does not broadcast to scores of shape {tuple(scores)}; "
            f"is a head dimension missing or too many?{_HINT if name == 'mask' else ''}"
        )
