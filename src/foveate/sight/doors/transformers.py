"""Models of the transformers library: every attention function that they look up in its registry.

Those that hand queries and keys to torch's own functions are seen there, unless heads share keys: then they may have
been repeated or rearranged by then. The others, such as "eager", are handed all by name.
"""

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from foveate.attention import Attended
from foveate.sight.foreign import Translator
from foveate.sight.recorder import Recorder


@contextmanager
def door(recorder: Recorder, translator: Translator) -> Iterator[None]:
    """Note what models of transformers attend to while open; nothing where the library is not in use."""
    library = sys.modules.get("transformers.modeling_utils")
    registry = getattr(library, "AttentionInterface", None)
    if registry is None:
        yield
        return
    original = registry.get_interface

    def get_interface(self: Any, implementation: str, default: Callable) -> Callable:
        function = original(self, implementation, default)
        if implementation is not None and implementation.endswith("flex_attention"):
            return function
        fused = implementation is not None and implementation.endswith("sdpa")
        return _noting(function, fused, recorder, translator)

    registry.get_interface = get_interface
    try:
        yield
    finally:
        registry.get_interface = original


def _noting(function: Callable, fused: bool, recorder: Recorder, translator: Translator) -> Callable:
    signature = inspect.signature(function)

    @wraps(function)
    def attend(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        given = {**bound.arguments, **bound.arguments.get("kwargs", {})}
        query, key, mask = given["query"], given["key"], given.get("attention_mask")
        if not recorder.listening or (fused and query.shape[1] == key.shape[1]):
            return function(*args, **kwargs)
        with recorder.attending():
            result = function(*args, **kwargs)
        causal = fused and mask is None and query.shape[-2] > 1 and _causal(given)
        call = translator.call(
            query,
            key,
            given["value"],
            _mask(given, key.shape[-2]),
            causal=causal,
            scale=given.get("scaling"),
            cap=given.get("softcap"),
            sinks=given.get("s_aux", getattr(given["module"], "sinks", None)),
            dropout=given.get("dropout") or 0.0,
        )
        recorder.note(call, Attended(result[0].transpose(1, 2)))
        return result

    return attend


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
