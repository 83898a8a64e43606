"""`attend`: the one function that computes attention."""

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
from foveate.attention.memory import Memory, unequal_lengths
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
    """Attention of every query to the keys: `softmax(score(q, k) + bias) v`.

    The leading dimensions broadcast. Grouped heads are `q (B, G, H/G, T, D)` with `k (B, G, 1, S, D)`. A `Memory` in
    place of `k` has keys, values and score. A query whose mask hides all keys gets zeros. `dropout` is the share of
    weights that is dropped. `kernel` is a name in `attention.kernels.TABLE`; "auto" lets the table choose.
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
    """`attend` with all results: the log-sum-exp, and for a hard selection the choice and its log-probability.

    `state` is the `Attended.state` of the previous call, for a selection that has a state. `generator` is the source of
    random numbers.
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
        keys, values, score, projected = k.keys, k.values, k.score, k.projected
    elif v is None:
        raise TypeError("attend needs values: attend(q, k, v), or attend(q, memory)")
    elif not (isinstance(k, Tensor) and isinstance(v, Tensor) and isinstance(score, Score)):
        raise _wrong_type(k=k, v=v, score=score)
    elif k.shape[-2] != v.shape[-2]:
        raise unequal_lengths(k, v)
    else:
        keys, values, projected = score.keys(k), v, False
    if not (isinstance(q, Tensor) and (select is SOFT or isinstance(select, Selection))):
        raise _wrong_type(q=q, select=select)
    queries = score.queries(q)
    if queries.shape[-1] != keys.shape[-1] and not score.fits(queries.shape[-1], keys.shape[-1]):
        raise ValueError(
            f"queries {tuple(queries.shape)} and keys {tuple(keys.shape)} differ in width, "
            f"{queries.shape[-1]} and {keys.shape[-1]}: project them, or join them by Additive or Biaffine"
        )
    mask, bias = None if mask is None else as_mask(mask), None if bias is None else as_bias(bias)
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout is a share of at least 0 and below 1, not {dropout}")
    call = Call(queries, keys, values, score, mask, bias, select, dropout, full=False, projected=projected)
    try:
        leading = call.leading
    except RuntimeError:
        shapes = ", ".join(str(tuple(part.shape)) for part in (queries, keys, values))
        raise ValueError(
            f"the leading dimensions of queries, keys and values do not broadcast: {shapes}; "
            "is a batch or head dimension missing?"
        ) from None
    if not (mask is None and bias is None and select.sinks is None):
        _check_shapes(call, torch.Size((*leading, queries.shape[-2], keys.shape[-2])))
    return call


def _wrong_type(**arguments: Any) -> TypeError:
    """The error for the first argument of `attend` that is of the wrong type."""
    kinds = {"q": Tensor, "k": Tensor, "v": Tensor, "score": Score, "select": Selection}
    examples = {"score": "ScaledDot()", "select": "Soft()"}
    name, value = next(item for item in arguments.items() if not isinstance(item[1], kinds[item[0]]))
    if isinstance(value, type) and issubclass(value, kinds[name]):
        return TypeError(f"{name}={value.__name__} is a class: make an instance, {value.__name__}(...)")
    wanted = f"a {kinds[name].__name__}, such as {examples[name]}" if name in examples else "a tensor"
    return TypeError(f"{name} must be {wanted}, not {type(value).__name__}")


def _check_shapes(call: Call, scores: torch.Size) -> None:
    """Raise ValueError unless mask, bias and sinks fit the `scores`."""
    if call.mask is not None:
        _check_fits("mask", call.mask.shape(len(call.leading)), scores)
        if call.mask.min_keys() > call.keys.shape[-2]:
            raise ValueError(
                f"padding has a length of {call.mask.min_keys()}, but there are only {call.keys.shape[-2]} keys"
            )
    if call.bias is not None:
        _check_fits("bias", call.bias.shape(), scores)
    if call.select.sinks is not None:
        _check_fits("table of sinks", torch.Size((*call.select.sinks.shape, 1, 1)), scores)


def _check_fits(name: str, shape: torch.Size, scores: torch.Size) -> None:
    own, whole = shape[::-1], scores[::-1]
    if len(own) > len(whole) or any(own[place] not in (1, whole[place]) for place in range(len(own))):
        raise ValueError(
            f"a {name} of shape {tuple(shape)} does not broadcast to scores of shape {tuple(scores)}; "
            f"is a head dimension missing or too many?{_HINT if name == 'mask' else ''}"
        )
