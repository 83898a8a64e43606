"""Qwen2 in transformers: `Qwen2ForCausalLM`, also Qwen2.5."""

from collections.abc import Mapping
from typing import Any

from foveate.interop.keys import llama
from foveate.interop.layout import ConfigReader, Layout, causal_class, require_plain
from foveate.models.text.qwen2 import Qwen2Config


def read_windows(read: ConfigReader, layers: int) -> dict[str, Any]:
    """The windows of a Qwen, which its upper layers may have."""
    size = read.optional("sliding_window", 4096) if read.get("use_sliding_window", False) else None
    below = read.get("max_window_layers", 28)
    return llama.read_windows(read, layers, size, [size is not None and layer >= below for layer in range(layers)])


def read_config(values: Mapping[str, Any], where: str) -> Qwen2Config:
    """The config of a `config.json`. UserError for what our models do not have."""
    read = ConfigReader(values, where)
    llama.refuse_share(read)
    own = llama.read_fields(read, Qwen2Config(vocabulary=151_936))
    return Qwen2Config(**own, **read_windows(read, own["layers"]))


def write_config(config: Qwen2Config) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for parts that the public models lack."""
    written = (*llama.FIELDS, *llama.WINDOWS)
    require_plain(config, Qwen2Config(vocabulary=1), written, "transformers' Qwen2")
    own = {"model_type": "qwen2", "architectures": [causal_class(config, LAYOUT.architectures)]}
    return {**own, **llama.write_fields(config), **llama.write_windows(config)}


LAYOUT = Layout(
    family="qwen2",
    architectures=llama.classes("Qwen2"),
    key_map=llama.key_map,
    read_config=read_config,
    write_config=write_config,
)
