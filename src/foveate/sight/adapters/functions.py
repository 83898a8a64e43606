"""Reports torch's attention functions, by a mode that receives every call of a torch function."""

import sys
from collections.abc import Callable
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._higher_order_ops.flex_attention import flex_attention as flex_operator
from torch.overrides import TorchFunctionMode

from foveate.attention import Attended
from foveate.attention.call import Call
from foveate.sight.adapters.multi_head import multi_head_call
from foveate.sight.adapters.softmaxes import SoftmaxTracker
from foveate.sight.call_adapter import CallAdapter, has_values
from foveate.sight.watcher import Watcher

Function = Callable[..., Any]


def _dense_mask(mask: Tensor | None, device: torch.device) -> Tensor | None:
    """A mask as a tensor: torch also has causal masks without values, aligned with the first or the last key."""
    biases = sys.modules.get("torch.nn.attention.bias")  # not imported: it loads torch's compiler
    if biases is None or not isinstance(mask, biases.CausalBias):
        return mask
    steps, keys = mask.seq_len_q, mask.seq_len_kv
    first = keys - steps if mask.variant == biases.CausalVariant.LOWER_RIGHT else 0
    return torch.ones(steps, keys, dtype=torch.bool, device=device).tril(first)


class TorchFunctions(TorchFunctionMode):
    """Reports calls of torch's scaled_dot_product_attention, multi_head_attention_forward and flex_attention.

    It also follows softmaxes, which may be part of a model's own attention.
    """

    def __init__(self, watcher: Watcher, adapter: CallAdapter) -> None:
        super().__init__()
        self._watcher, self._adapter = watcher, adapter
        self._softmaxes = SoftmaxTracker(watcher)

    def __torch_function__(
        self, func: Function, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        handler = self._HANDLERS.get(func)
        if not self._watcher.watching:
            if handler is not None:
                self._watcher.skip()
            return func(*args, **kwargs)
        if handler is not None:
            if all(has_values(part) for part in (*args, *kwargs.values()) if isinstance(part, Tensor)):
                return handler(self, func, *args, **kwargs)
            self._watcher.untraced.note_opaque()
            return func(*args, **kwargs)
        self._softmaxes.before(func, args, kwargs)
        result = func(*args, **kwargs)
        return self._softmaxes.follow(func, args, kwargs, result)

    def _scaled_dot_product(
        self,
        func: Function,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        def make() -> Call:
            mask = _dense_mask(attn_mask, query.device)
            return self._adapter.call(query, key, value, mask, causal=is_causal, scale=scale, dropout=dropout_p)

        if query.is_nested:
            self._watcher.untraced.note_nested()
        elif (changed := self._watcher.change(make)) is not None:
            return changed.output.reshape(*query.shape[:-1], value.shape[-1]).to(query.dtype)
        output = func(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
        if not query.is_nested:
            self._watcher.record(make(), Attended(output))
        return output

    def _multi_head(self, func: Function, *args: Any, **kwargs: Any) -> Any:
        if not torch.is_grad_enabled():
            self._watcher.note_fast_path()
        made = multi_head_call(self._adapter, *args, **kwargs)
        if (changed := self._watcher.change(lambda: made.call)) is not None:
            assert self._watcher.made is not None
            return made.result(changed.output, self._watcher.made)
        result = func(*args, **kwargs)
        output = result[0].transpose(0, 1) if result[0].ndim == 3 else result[0].unsqueeze(0)
        self._watcher.record(made.call, Attended(output), made.finish)
        return result

    def _flex(self, func: Function, *args: Any) -> Any:
        from foveate.sight.adapters.flex import flex_call  # loads torch's compiler, as the model did before

        result = func(*args)
        if (changed := self._watcher.change(lambda: flex_call(self._adapter, *args))) is not None:
            return (changed.output.reshape(result[0].shape).to(result[0].dtype), *result[1:])
        self._watcher.record(flex_call(self._adapter, *args), Attended(result[0]))
        return result

    # A class attribute: bound methods in the instance would be a reference cycle, which keeps the sight alive longer.
    _HANDLERS: ClassVar[dict[Function, Function]] = {
        F.scaled_dot_product_attention: _scaled_dot_product,
        torch.ops.aten.scaled_dot_product_attention: _scaled_dot_product,  # in programs of torch.export and torch.fx
        torch.ops.aten.scaled_dot_product_attention.default: _scaled_dot_product,
        F.multi_head_attention_forward: _multi_head,
        flex_operator: _flex,
    }
