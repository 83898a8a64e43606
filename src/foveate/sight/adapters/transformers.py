"""Reports the attention of models of transformers, by wrapping the functions that they get from its registry.

Functions that call torch's attention are recorded there, unless heads share keys: these may be repeated or rearranged
by then. All other functions, such as "eager", are recorded here. So are those of flash-attn, since padding and packed
texts are known here in the form that the model uses.
"""

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from foveate.attention import Attended
from foveate.attention.call import Call
from foveate.attention.selection import weights
from foveate.sight.adapters.flash import TextPositions, packed_positions, padded_positions, with_positions
from foveate.sight.call_adapter import CallAdapter
from foveate.sight.watcher import Watcher

NAME = "foveate"
"""The implementation that `drop_in` registers: its calls are those of `attend`, which are reported there."""

FIRST = ("module", "query", "key", "value", "attention_mask")
"""The first arguments of every attention function of the library."""


@contextmanager
def attach(watcher: Watcher, adapter: CallAdapter) -> Iterator[None]:
    """Report models of transformers while the context is open. Does nothing if the library is not imported."""
    library = sys.modules.get("transformers.modeling_utils")
    registry = getattr(library, "AttentionInterface", None)
    if registry is None:
        yield
        return
    original = registry.get_interface

    def get_interface(self: Any, implementation: str | None, default: Callable[..., Any]) -> Callable[..., Any]:
        function, name = original(self, implementation, default), implementation or ""
        if name == NAME or name.endswith("flex_attention"):
            return function
        return _report_calls(function, partial(_call, adapter, name), watcher, weighed=name in ("", "eager"))

    registry.get_interface = get_interface
    try:
        yield
    finally:
        registry.get_interface = original


def _report_calls(
    function: Callable[..., Any],
    make_call: Callable[[dict[str, Any]], Call | None],
    watcher: Watcher,
    weighed: bool,
) -> Callable[..., Any]:
    signature = inspect.signature(function)

    @wraps(function)
    def attend(*args: Any, **kwargs: Any) -> Any:
        given = _standard_names(signature, signature.bind(*args, **kwargs).arguments)
        if not watcher.watching:
            watcher.skip()
            return function(*args, **kwargs)
        if (call := make_call(given)) is None:
            return function(*args, **kwargs)
        if (changed := watcher.change(lambda: call)) is not None:
            return _result(changed, watcher.made if weighed else None, given["query"])
        with watcher.inside_call():
            result = function(*args, **kwargs)
        watcher.record(call, Attended(result[0].transpose(1, 2)))
        return result

    return attend


def _standard_names(signature: inspect.Signature, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments by the library's names, whatever a function calls its first parameters and its `**kwargs`."""
    more = [name for name, part in signature.parameters.items() if part.kind is part.VAR_KEYWORD]
    given = {**arguments, **(arguments.get(more[0], {}) if more else {})}
    return given | {name: given.get(own) for name, own in zip(FIRST, signature.parameters, strict=False)}


def _result(changed: Attended, weighed: Call | None, query: Tensor) -> tuple[Tensor, Tensor | None]:
    """What a function of the library returns: outputs (B, T, H, V), and the weights (B, H, T, S) of a given call."""
    output = changed.output.reshape(*query.shape[:-1], -1).to(query.dtype).transpose(1, 2).contiguous()
    if weighed is None:
        return output, None
    shares = weights(weighed.scores(), weighed.select.sinks)
    return output, shares.reshape(*query.shape[:-1], -1).to(query.dtype)


def _call(adapter: CallAdapter, name: str, given: dict[str, Any]) -> Call | None:
    """The call of the named function with these arguments; None if torch's function will be recorded instead."""
    query, key, mask = given["query"], given["key"], given.get("attention_mask")
    fused = name.endswith("sdpa")
    if fused and query.shape[1] == key.shape[1]:
        return None
    if "flash" in name or (mask is not None and mask.ndim == 2):
        return _flash(adapter, given)
    return adapter.call(
        query,
        key,
        given["value"],
        joined_mask(given, key.shape[-2]),
        causal=fused and mask is None and query.shape[-2] > 1 and is_causal(given),
        **common_options(given),
    )


def _flash(adapter: CallAdapter, given: dict[str, Any]) -> Call:
    """The call of a function based on flash-attn, whose mask marks the tokens that are not padding."""
    call = adapter.call(given["query"], given["key"], given["value"], **common_options(given))
    steps, keys, window = call.queries.shape[-2], call.keys.shape[-2], given.get("sliding_window")
    behind = window - 1 if window is not None and keys > window else -1
    return with_positions(call, _positions(given, steps, keys), (behind, 0 if is_causal(given) else behind))


def _positions(given: dict[str, Any], steps: int, keys: int) -> TextPositions:
    mask, positions, device = given.get("attention_mask"), given.get("position_ids"), given["query"].device
    if mask is not None:
        return padded_positions(mask[:, -keys:].bool(), steps)
    if given.get("cu_seq_lens_q") is not None:
        return packed_positions(given["cu_seq_lens_q"], given["cu_seq_lens_k"], steps, keys)
    if positions is not None and positions.shape == (1, steps) and steps == keys:
        starts = torch.cat(
            [(positions[0].diff(prepend=positions[0, :1] - 2) != 1).nonzero()[:, 0], positions.new_tensor([keys])]
        )
        return packed_positions(starts, starts, steps, keys)
    return padded_positions(torch.ones(1, keys, dtype=torch.bool, device=device), steps)


def common_options(given: dict[str, Any]) -> dict[str, Any]:
    """What a layer of the library passes besides tensors, by the names of `CallAdapter.call`."""
    sinks = given.get("s_aux", getattr(given["module"], "sinks", None))
    if (own := query_sinks(given)) is not None:
        sinks = own.new_zeros(own.shape[1])
    dropout = given.get("dropout") or 0.0
    return {"scale": given.get("scaling"), "cap": given.get("softcap"), "sinks": sinks, "dropout": dropout}


def is_causal(given: dict[str, Any]) -> bool:
    """Returns whether a layer without a mask is causal."""
    causal = given.get("is_causal")
    return getattr(given["module"], "is_causal", True) if causal is None else causal


def query_sinks(given: dict[str, Any]) -> Float[Tensor, "B H T 1"] | None:
    """Sinks that each query has for itself, as in Inkling 2; None for those of heads.

    The weights do not change where all scores of a row become smaller by its sink: the sink is 0 then.
    """
    sinks: Tensor | None = given.get("sinks")
    return sinks if isinstance(sinks, Tensor) and sinks.ndim == 4 else None


def joined_mask(given: dict[str, Any], keys: int) -> Tensor | None:
    """The mask of booleans or numbers, combined with the position bias that some models pass separately, and with the
    sinks of queries."""
    mask, bias, sinks = given.get("attention_mask"), given.get("position_bias"), query_sinks(given)
    mask = None if mask is None else mask[..., :keys]
    if sinks is not None:
        bias = -sinks.expand(-1, -1, -1, keys) if bias is None else bias - sinks
    if bias is None:
        return mask
    if mask is None:
        return bias
    return torch.where(mask, bias, -torch.inf) if mask.dtype == torch.bool else bias + mask
