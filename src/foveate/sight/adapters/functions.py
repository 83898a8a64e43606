"""torch's own attention functions, seen by a mode that is handed every call of a torch function."""

import sys
from collections.abc import Callable
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._higher_order_ops.flex_attention import flex_attention as flex_operator
from torch.overrides import TorchFunctionMode

from foveate.attention import Attended
from foveate.sight.adapters.multi_head import multi_head
from foveate.sight.adapters.softmaxes import Softmaxes
from foveate.sight.call_adapter import Translator, has_numbers
from foveate.sight.recorder import Recorder

Function = Callable[..., Any]


def _told(mask: Tensor | None, device: torch.device) -> Tensor | None:
    """A mask with its numbers: torch has causal ones of a kind that are only named, from the first or the last key."""
    named = sys.modules.get("torch.nn.attention.bias")  # it loads torch's compiler, as the model has if it has one
    if named is None or not isinstance(mask, named.CausalBias):
        return mask
    steps, keys = mask.seq_len_q, mask.seq_len_kv
    first = keys - steps if mask.variant == named.CausalVariant.LOWER_RIGHT else 0
    return torch.ones(steps, keys, dtype=torch.bool, device=device).tril(first)


class Functions(TorchFunctionMode):
    """Notes what is attended by torch's scaled_dot_product_attention, multi_head_attention_forward and flex_attention.

    It also follows softmaxes, which may be attention of the model's own.
    """

    def __init__(self, recorder: Recorder, translator: Translator) -> None:
        super().__init__()
        self._recorder, self._translator = recorder, translator
        self._softmaxes = Softmaxes(recorder.hidden)

    def __torch_function__(self, func: Function, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        door = self._DOORS.get(func)
        if not self._recorder.listening:
            if door is not None:
                self._recorder.unheard()
            return func(*args, **kwargs)
        if door is not None:
            if all(has_numbers(part) for part in (*args, *kwargs.values()) if isinstance(part, Tensor)):
                return door(self, func, *args, **kwargs)
            self._recorder.hidden.opaque()
            return func(*args, **kwargs)
        result = func(*args, **kwargs)
        self._softmaxes.follow(func, (*args, *kwargs.values()), result)
        return result

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
        output = func(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
        if query.is_nested:
            self._recorder.hidden.nested()
            return output
        mask = _told(attn_mask, query.device)
        call = self._translator.call(query, key, value, mask, causal=is_causal, scale=scale, dropout=dropout_p)
        self._recorder.note(call, Attended(output))
        return output

    def _multi_head(self, func: Function, *args: Any, **kwargs: Any) -> Any:
        result = func(*args, **kwargs)
        call, finish = multi_head(self._translator, *args, **kwargs)
        if not torch.is_grad_enabled():
            self._recorder.left_fast_path()
        output = result[0].transpose(0, 1) if result[0].ndim == 3 else result[0].unsqueeze(0)
        self._recorder.note(call, Attended(output), finish)
        return result

    def _flex(self, func: Function, *args: Any) -> Any:
        from foveate.sight.adapters.flex import flex  # loads torch's compiler, as the model has by now

        result = func(*args)
        self._recorder.note(flex(self._translator, *args), Attended(result[0]))
        return result

    # Of the class: methods of one mode, held by itself, would keep all that was looked at until Python seeks cycles.
    _DOORS: ClassVar[dict[Function, Function]] = {
        F.scaled_dot_product_attention: _scaled_dot_product,
        torch.ops.aten.scaled_dot_product_attention: _scaled_dot_product,  # in what torch.export and torch.fx make
        torch.ops.aten.scaled_dot_product_attention.default: _scaled_dot_product,
        F.multi_head_attention_forward: _multi_head,
        flex_operator: _flex,
    }
