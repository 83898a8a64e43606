"""OLMo 2 in transformers: `Olmo2ForCausalLM`."""

from collections.abc import Mapping
from typing import Any

from foveate.interop.keys import llama
from foveate.interop.layout import ConfigReader, Layout, causal_class, require_plain
from foveate.models.text.olmo2 import Olmo2Config


def read_config(values: Mapping[str, Any], where: str) -> Olmo2Config:
    """The config of a `config.json`. UserError for what our models do not have."""
    read = ConfigReader(values, where)
    llama.refuse_share(read)
    read.require(mlp_bias=False)
    return Olmo2Config(**llama.read_fields(read, Olmo2Config(vocabulary=50_304)), **llama.read_biases(read))


def write_config(config: Olmo2Config) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for parts that the public models lack."""
    written = (*llama.FIELDS, "attention_bias")
    require_plain(config, Olmo2Config(vocabulary=1), written, "transformers' Olmo2")
    own = {"model_type": "olmo2", "architectures": [causal_class(config, LAYOUT.architectures)]}
    return {**own, **llama.write_fields(config), **llama.write_biases(config)}


LAYOUT = Layout(
    family="olmo2",
    architectures=llama.classes("Olmo2", tokens=False),
    key_map=llama.key_map,
    read_config=read_config,
    write_config=write_config,
)
