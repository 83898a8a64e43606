"""Qwen3 in transformers: `Qwen3ForCausalLM`."""

from collections.abc import Mapping
from typing import Any

from foveate.interop.keys import llama
from foveate.interop.keys.qwen2 import read_windows
from foveate.interop.layout import ConfigReader, Layout, causal_class, require_plain
from foveate.models.text.qwen3 import Qwen3Config


def read_config(values: Mapping[str, Any], where: str) -> Qwen3Config:
    """The config of a `config.json`. UserError for what our models do not have."""
    read = ConfigReader(values, where)
    llama.refuse_share(read)
    read.require(mlp_bias=False)
    own = llama.read_fields(read, Qwen3Config(vocabulary=151_936))
    return Qwen3Config(**own, **llama.read_biases(read), **read_windows(read, own["layers"]))


def write_config(config: Qwen3Config) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for parts that the public models lack."""
    written = (*llama.FIELDS, *llama.WINDOWS, "attention_bias")
    require_plain(config, Qwen3Config(vocabulary=1), written, "transformers' Qwen3")
    own = {"model_type": "qwen3", "architectures": [causal_class(config, LAYOUT.architectures)]}
    return {**own, **llama.write_fields(config), **llama.write_biases(config), **llama.write_windows(config)}


LAYOUT = Layout(
    family="qwen3",
    architectures=llama.classes("Qwen3"),
    key_map=llama.key_map,
    read_config=read_config,
    write_config=write_config,
)
