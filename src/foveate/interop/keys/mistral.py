"""Mistral in transformers: `MistralForCausalLM`."""

from collections.abc import Mapping
from typing import Any

from foveate.interop.keys import llama
from foveate.interop.layout import ConfigReader, Layout, causal_class, require_plain
from foveate.models.text.mistral import MistralConfig


def read_config(values: Mapping[str, Any], where: str) -> MistralConfig:
    """The config of a `config.json`. UserError for what our models do not have."""
    read = ConfigReader(values, where)
    llama.refuse_share(read)
    read.require(layer_types=None, attention_bias=False)
    size = read.optional("sliding_window", 4096)
    own = llama.read_fields(read, MistralConfig(vocabulary=32000))
    return MistralConfig(**own, **llama.read_windows(read, own["layers"], size, [size is not None]))


def write_config(config: MistralConfig) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for parts that the public models lack."""
    written = (*llama.FIELDS, "window")
    require_plain(config, MistralConfig(vocabulary=1), written, "transformers' Mistral")
    return {
        "model_type": "mistral",
        "architectures": [causal_class(config, LAYOUT.architectures)],
        **llama.write_fields(config),
        "sliding_window": None if config.window is None else config.window + 1,
    }


LAYOUT = Layout(
    family="mistral",
    architectures=llama.classes("Mistral"),
    key_map=llama.key_map,
    read_config=read_config,
    write_config=write_config,
)
