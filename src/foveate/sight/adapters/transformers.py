"""Models of the transformers library: every attention function that they look up in its registry.

Those that hand queries and keys to torch's own functions are seen there, unless heads share keys: then they may have
been repeated or rearranged by then. The others, such as "eager", are handed all by name, and so are those of
flash-attn, where padding and packed texts are still told as the model does.
"""

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any

import torch
from torch import Tensor

from foveate.attention import Attended
from foveate.attention.call import Call
from foveate.sight.adapters.flash import Places, packed, padded, placed
from foveate.sight.call_adapter import Translator
from foveate.sight.recorder import Recorder

FIRST = ("module", "query", "key", "value", "attention_mask")
"""What every attention function of the library is given first."""


@contextmanager
def attach(recorder: Recorder, translator: Translator) -> Iterator[None]:
    """Note what models of transformers attend to while open; nothing where the library is not in use."""
    library = sys.modules.get("transformers.modeling_utils")
    registry = getattr(library, "AttentionInterface", None)
    if registry is None:
        yield
        return
    original = registry.get_interface

    def get_interface(self: Any, implementation: str | None, default: Callable) -> Callable:
        function, name = original(self, implementation, default), implementation or ""
        if name.endswith("flex_attention"):
            return function
        return _noting(function, partial(_call, translator, name), recorder)

    registry.get_interface = get_interface
    try:
        yield
    finally:
        registry.get_interface = original


def _noting(function: Callable, translated: Callable[[dict[str, Any]], Call | None], recorder: Recorder) -> Callable:
    signature = inspect.signature(function)

    @wraps(function)
    def attend(*args: Any, **kwargs: Any) -> Any:
        given = _named(signature, signature.bind(*args, **kwargs).arguments)
        if not recorder.listening:
            recorder.unheard()
            return function(*args, **kwargs)
        if (call := translated(given)) is None:
            return function(*args, **kwargs)
        with recorder.attending():
            result = function(*args, **kwargs)
        recorder.note(call, Attended(result[0].transpose(1, 2)))
        return result

    return attend


def _named(signature: inspect.Signature, arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments by the library's own names for them, whatever a function calls its first ones and its `**kwargs`."""
    more = [name for name, part in signature.parameters.items() if part.kind is part.VAR_KEYWORD]
    given = {**arguments, **(arguments.get(more[0], {}) if more else {})}
    return given | {name: given.get(own) for name, own in zip(FIRST, signature.parameters, strict=False)}


def _call(translator: Translator, name: str, given: dict[str, Any]) -> Call | None:
    """The call of the named function with these arguments; None for one that torch's own function will tell."""
    query, key, mask = given["query"], given["key"], given.get("attention_mask")
    fused = name.endswith("sdpa")
    if fused and query.shape[1] == key.shape[1]:
        return None
    if "flash" in name or (mask is not None and mask.ndim == 2):
        return _flash(translator, given)
    return translator.call(
        query,
        key,
        given["value"],
        _mask(given, key.shape[-2]),
        causal=fused and mask is None and query.shape[-2] > 1 and _causal(given),
        **_common(given),
    )


def _flash(translator: Translator, given: dict[str, Any]) -> Call:
    """The call of one of the functions made of flash-attn's, where a mask says which tokens are real."""
    call = translator.call(given["query"], given["key"], given["value"], **_common(given))
    steps, keys, window = call.queries.shape[-2], call.keys.shape[-2], given.get("sliding_window")
    behind = window - 1 if window is not None and keys > window else -1
    return placed(call, _places(given, steps, keys), (behind, 0 if _causal(given) else behind))


def _places(given: dict[str, Any], steps: int, keys: int) -> Places:
    mask, positions, device = given.get("attention_mask"), given.get("position_ids"), given["query"].device
    if mask is not None:
        return padded(mask[:, -keys:].bool(), steps)
    if given.get("cu_seq_lens_q") is not None:
        return packed(given["cu_seq_lens_q"], given["cu_seq_lens_k"], steps, keys)
    if positions is not None and positions.shape == (1, steps) and steps == keys:
        starts = torch.cat(
            [(positions[0].diff(prepend=positions[0, :1] - 2) != 1).nonzero()[:, 0], positions.new_tensor([keys])]
        )
        return packed(starts, starts, steps, keys)
    return padded(torch.ones(1, keys, dtype=torch.bool, device=device), steps)


def _common(given: dict[str, Any]) -> dict[str, Any]:
    sinks = given.get("s_aux", getattr(given["module"], "sinks", None))
    dropout = given.get("dropout") or 0.0
    return {"scale": given.get("scaling"), "cap": given.get("softcap"), "sinks": sinks, "dropout": dropout}


def _causal(given: dict[str, Any]) -> bool:
    """Whether a layer counts on causality where it gives no mask."""
    causal = given.get("is_causal")
    return getattr(given["module"], "is_causal", True) if causal is None else causal


def _mask(given: dict[str, Any], keys: int) -> Tensor | None:
    """The mask of booleans or numbers, with the position bias that some models give beside it."""
    mask, bias = given.get("attention_mask"), given.get("position_bias")
    mask = None if mask is None else mask[..., :keys]
    if bias is None:
        return mask
    if mask is None:
        return bias
    return torch.where(mask, bias, -torch.inf) if mask.dtype == torch.bool else bias + mask
