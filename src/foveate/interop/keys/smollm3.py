"""SmolLM3 in transformers: `SmolLM3ForCausalLM`."""

from collections.abc import Mapping
from typing import Any

from foveate.interop.keys import llama
from foveate.interop.layout import ConfigReader, Layout, causal_class, require_plain
from foveate.models.text.smollm3 import SmolLM3Config


def read_config(values: Mapping[str, Any], where: str) -> SmolLM3Config:
    """The config of a `config.json`. UserError for what our models do not have."""
    read = ConfigReader(values, where)
    llama.refuse_share(read)
    own = llama.read_fields(read, SmolLM3Config(vocabulary=128_256))
    every, layers = read.get("no_rope_layer_interval", 4), own["layers"]
    turns = read.choices("no_rope_layers", {0: False, 1: True})
    if turns is None:
        turns = [(layer + 1) % every != 0 for layer in range(layers)]
    if len(turns) < layers:
        raise read.error(f"no_rope_layers has {len(turns)} values for {layers} layers")
    size = read.optional("sliding_window", None) if read.get("use_sliding_window", False) else None
    windows = llama.read_windows(read, layers, size, [size is not None and not one for one in turns[:layers]])
    return SmolLM3Config(**own, **llama.read_biases(read), **windows, rotary_layers=llama.period(turns[:layers]))


def write_config(config: SmolLM3Config) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for parts that the public models lack."""
    written = (*llama.FIELDS, *llama.WINDOWS, *llama.BIASES, "rotary_layers")
    require_plain(config, SmolLM3Config(vocabulary=1), written, "transformers' SmolLM3")
    turns = config.rotary_layers or (True,)
    return {
        "model_type": "smollm3",
        "architectures": [causal_class(config, LAYOUT.architectures)],
        **llama.write_fields(config),
        **llama.write_biases(config),
        **llama.write_windows(config),
        "no_rope_layers": [int(turns[layer % len(turns)]) for layer in range(config.layers)],
    }


LAYOUT = Layout(
    family="smollm3",
    architectures=llama.classes("SmolLM3"),
    key_map=llama.key_map,
    read_config=read_config,
    write_config=write_config,
)
