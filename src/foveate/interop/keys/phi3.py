"""Phi-3 in transformers: `Phi3ForCausalLM`, also Phi-4-mini; queries, keys and values are one tensor, gate and inner
layer too."""

from collections.abc import Mapping
from typing import Any

from foveate.interop.key_map import Entry, Joined, KeyMap
from foveate.interop.keys import llama
from foveate.interop.layout import ConfigReader, Layout, causal_class, require_plain
from foveate.interop.rotary_fields import read_share
from foveate.models.text.phi3 import Phi3Config

_LAYER = {"self.output": "self_attn.o_proj", "feedforward.outer": "mlp.down_proj"}


def key_map(config: Phi3Config) -> KeyMap:
    """The table of tensors."""
    entries = [Entry((ours,), public) for ours, public in llama.outside(config).items()]
    width, heads = config.head_width or config.width // config.heads, config.key_value_heads or config.heads
    sizes = (width * config.heads, width * heads, width * heads)
    for layer in range(config.layers):
        ours, public = f"stack.blocks.{layer}", f"model.layers.{layer}"
        own = {**_LAYER, **llama.NORMS["pre"]}
        projections = tuple(f"{ours}.self.{part}" for part in ("query", "key", "value"))
        gated = tuple(f"{ours}.feedforward.{part}" for part in ("gate", "inner"))
        entries.append(Entry(projections, f"{public}.self_attn.qkv_proj", Joined(sizes)))
        entries.append(Entry(gated, f"{public}.mlp.gate_up_proj", Joined()))
        entries += [Entry((f"{ours}.{part}",), f"{public}.{name}") for part, name in own.items()]
    return KeyMap(tuple(entries), llama.tied(config), llama.IGNORED, "model.")


def read_config(values: Mapping[str, Any], where: str) -> Phi3Config:
    """The config of a `config.json`. UserError for what our models do not have."""
    read = ConfigReader(values, where)
    read.inside("rope_scaling", "rope_parameters").require(type="default", rope_type="default")
    read.require(layer_types=None, attention_bias=False, mlp_bias=False)
    own = llama.read_fields(read, Phi3Config(vocabulary=32_064))
    size, dropout = read.optional("sliding_window", None), read.get("resid_pdrop", 0.0)
    windows = llama.read_windows(read, own["layers"], size, [size is not None])
    head_width, share = own["head_width"] or own["width"] // own["heads"], read_share(read, 1.0)
    rotary_width = None if share == 1 else int(head_width * share)
    return Phi3Config(**own, **windows, dropout=dropout, rotary_width=rotary_width)


def write_config(config: Phi3Config) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for parts that the public models lack."""
    written = (*llama.FIELDS, "window", "rotary_width")
    require_plain(config, Phi3Config(vocabulary=1), written, "transformers' Phi3")
    head_width = config.head_width or config.width // config.heads
    return {
        "model_type": "phi3",
        "architectures": [causal_class(config, LAYOUT.architectures)],
        **llama.write_fields(config),
        "partial_rotary_factor": (config.rotary_width or head_width) / head_width,
        "sliding_window": None if config.window is None else config.window + 1,
        "resid_pdrop": config.dropout,
        "embd_pdrop": config.dropout,
    }


LAYOUT = Layout(
    family="phi3",
    architectures=llama.classes("Phi3"),
    key_map=key_map,
    read_config=read_config,
    write_config=write_config,
)
