"""`attn_implementation="foveate"` for models of transformers: fused kernels, and weights of the layers one asks for."""

from collections.abc import Callable, Collection
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveate.attention import hooks
from foveate.attention.autocast import without_autocast
from foveate.errors import UserError, of_kind, whole_number
from foveate.sight import measures
from foveate.sight.adapters.transformers import NAME, common_options, is_causal, joined_mask
from foveate.sight.call_adapter import CallAdapter
from foveate.sight.watcher import kernel_of


def register(layers: Collection[int] | None = None) -> None:
    """Register the attention of foveate with transformers, which must be installed.

        foveate.sight.register(layers=[5, 11])
        model = AutoModel.from_pretrained(folder, attn_implementation="foveate")
        model(**inputs, output_attentions=True).attentions  # two, (B, H, T, S)

    Models run with the kernels of `attend`, in memory linear in the length, also with `output_attentions=True`: it
    gives the weights of `layers`, numbers from 0, and no others (None: of all layers). Call it again for other layers.
    """
    if layers is not None:
        of_kind((list, tuple, set, frozenset, range), "layers", layers, "numbers of layers")
        layers = frozenset(whole_number("a layer", layer) for layer in layers)
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

    AttentionInterface.register(NAME, _attention(layers))
    AttentionMaskInterface.register(NAME, sdpa_mask)


def _attention(layers: Collection[int] | None) -> Callable[..., tuple[Tensor, Tensor | None]]:
    """The function that transformers calls for every layer."""
    adapter = CallAdapter()

    def attend(
        module: nn.Module,
        query: Float[Tensor, "B H T D"],
        key: Float[Tensor, "B K S D"],
        value: Float[Tensor, "B K S V"],
        attention_mask: Tensor | None,
        **options: Any,
    ) -> tuple[Float[Tensor, "B T H V"], Float[Tensor, "B H T S"] | None]:
        given = {"module": module, "query": query, "key": key, "attention_mask": attention_mask, **options}
        mask, more = joined_mask(given, key.shape[-2]), common_options(given)
        learned = [part for part in (mask, more["sinks"]) if part is not None and part.requires_grad]
        if learned and torch.is_grad_enabled():
            raise UserError("a bias or sink of this model is learned: train it with attn_implementation='eager'")
        causal = attention_mask is None and query.shape[-2] > 1 and is_causal(given)
        call = adapter.call(query, key, value, mask, causal=causal, **more)
        kernel = kernel_of(call)
        attended = kernel.attend(call) if hooks.interceptor is None else hooks.interceptor(call, kernel)
        output = attended.output.reshape(*query.shape[:-1], value.shape[-1]).to(query.dtype).transpose(1, 2)
        shown = _wants_weights(module, options) and (layers is None or getattr(module, "layer_idx", None) in layers)
        if not shown:
            return output.contiguous(), None
        with without_autocast(query.device):
            weights = measures.weights(call)
        return output.contiguous(), weights.to(query.dtype)

    return attend


def _wants_weights(module: nn.Module, options: dict[str, Any]) -> bool:
    """Whether the model was called with `output_attentions=True`."""
    asked = options.get("output_attentions")
    if asked is not None:
        return bool(asked)
    from transformers.utils import output_capturing  # where a layer is not told, the model is

    collected = output_capturing._active_collector.get() or {}  # type: ignore[no-untyped-call]
    return any("attentions" in name for name in collected)
