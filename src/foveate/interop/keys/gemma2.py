"""Gemma 2 in transformers: `Gemma2ForCausalLM`."""

from collections.abc import Mapping
from typing import Any

from foveate.errors import UserError
from foveate.interop.keys import llama
from foveate.interop.layout import ConfigReader, Layout, causal_class, require_plain
from foveate.models.text.gemma2 import Gemma2Config

_CAPS = {"score_cap": "attn_logit_softcapping", "logit_cap": "final_logit_softcapping"}


def read_config(values: Mapping[str, Any], where: str) -> Gemma2Config:
    """The config of a `config.json`. UserError for what our models do not have."""
    read = ConfigReader(values, where)
    llama.refuse_share(read)
    read.require(use_bidirectional_attention=False, mlp_bias=False)
    usual = Gemma2Config(vocabulary=256_000)
    own = llama.read_fields(read, usual, "hidden_activation")
    size, layers = read.optional("sliding_window", 4096), own["layers"]
    windows = llama.read_windows(read, layers, size, [layer % 2 == 0 for layer in range(layers)])
    caps = {ours: read.optional(name, getattr(usual, ours)) for ours, name in _CAPS.items()}
    if not all(cap is None or cap > 0 for cap in caps.values()):
        raise read.unlike(f"soft caps of 0: {', '.join(_CAPS.values())}")
    scale = read.get("query_pre_attn_scalar", 256.0) ** -0.5
    return Gemma2Config(**own, **llama.read_biases(read), **windows, **caps, score_scale=scale)


def write_config(config: Gemma2Config) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for parts that the public models lack."""
    written = (*llama.FIELDS, *llama.WINDOWS, "attention_bias", "score_scale", *_CAPS)
    require_plain(config, Gemma2Config(vocabulary=1), written, "transformers' Gemma2")
    if config.window is None:
        raise UserError("this Gemma2 has no window, but transformers' Gemma2 has one: it has no public layout")
    scale = config.score_scale or (config.head_width or config.width // config.heads) ** -0.5
    if abs(scale * round(scale**-2) ** 0.5 - 1) > 1e-9:
        raise UserError(f"the score_scale {scale} is not 1 / sqrt(N) with a whole number N: it has no public layout")
    return {
        "model_type": "gemma2",
        "architectures": [causal_class(config, LAYOUT.architectures)],
        **llama.write_fields(config, "hidden_activation"),
        **llama.write_biases(config),
        **llama.write_windows(config),
        **{name: getattr(config, ours) for ours, name in _CAPS.items()},
        "query_pre_attn_scalar": round(scale**-2),
    }


LAYOUT = Layout(
    family="gemma2",
    architectures=llama.classes("Gemma2"),
    key_map=llama.key_map,
    read_config=read_config,
    write_config=write_config,
)
