"""GPT-NeoX in transformers: `GPTNeoXForCausalLM`, also Pythia."""

from collections.abc import Mapping
from typing import Any

from foveate.errors import UserError
from foveate.interop.key_map import Entry, JoinedByHead, KeyMap
from foveate.interop.layout import ConfigReader, Layout, causal_class, require_defaults
from foveate.interop.rotary_fields import read_rotary, read_share, write_rotary
from foveate.models.text.gpt_neox import GPTNeoXConfig

_LAYER = {
    "self.output": "attention.dense",
    "around_self.norm": "input_layernorm",
    "around_feedforward.norm": "post_attention_layernorm",
    "feedforward.inner": "mlp.dense_h_to_4h",
    "feedforward.outer": "mlp.dense_4h_to_h",
}

_ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu-tanh", "gelu_fast": "gelu-tanh", "relu": "relu", "silu": "silu"}

_IGNORED = ("*.attention.bias", "*.attention.masked_bias", "*.rotary_emb.inv_freq")

HEADS = {"words": "embed_out", "text": "score", "tokens": "classifier", "none": "embed_out"}
"""The output layer there, by what it predicts."""


def key_map(config: GPTNeoXConfig) -> KeyMap:
    """The table of tensors."""
    entries = [
        Entry(("embedding",), "gpt_neox.embed_in"),
        Entry(("stack.norm",), "gpt_neox.final_layer_norm"),
        Entry(("output",), HEADS[config.head]),
    ]
    for layer in range(config.layers):
        ours, public = f"stack.blocks.{layer}", f"gpt_neox.layers.{layer}"
        projections = tuple(f"{ours}.self.{part}" for part in ("query", "key", "value"))
        entries.append(Entry(projections, f"{public}.attention.query_key_value", JoinedByHead(config.heads)))
        entries += [Entry((f"{ours}.{own}",), f"{public}.{name}") for own, name in _LAYER.items()]
    tied = {"embed_out.weight": "gpt_neox.embed_in.weight"} if config.tie and config.head == "words" else {}
    return KeyMap(tuple(entries), tied, _IGNORED, "gpt_neox.")


def read_config(values: Mapping[str, Any], where: str) -> GPTNeoXConfig:
    """The config of a `config.json`. UserError for what our models do not have."""
    read = ConfigReader(values, where)
    read.require(attention_bias=True)
    width, heads = read.get("hidden_size", 6144), read.get("num_attention_heads", 64)
    share = read_share(read, 0.25)
    return GPTNeoXConfig(
        vocabulary=read.get("vocab_size", 50432),
        width=width,
        heads=heads,
        layers=read.get("num_hidden_layers", 44),
        feedforward=read.get("intermediate_size", 24576),
        max_length=read.get("max_position_embeddings", 2048),
        activation=read.choice("hidden_act", "gelu", _ACTIVATIONS),
        parallel=read.get("use_parallel_residual", True),
        rotary_width=int(width // heads * share),
        **read_rotary(read, 10_000.0, 2048),
        epsilon=read.get("layer_norm_eps", 1e-5),
        dropout=read.get("hidden_dropout", 0.0),
        attention_dropout=read.get("attention_dropout", 0.0),
        tie=read.get("tie_word_embeddings", False),
    )


def write_config(config: GPTNeoXConfig) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for parts that the public models lack."""
    plain = config.positions == "rotary" and not config.gated and config.norm_kind == "layer"
    if not plain or not config.bias or config.head_width or config.key_value_heads not in (None, config.heads):
        raise UserError("only a GPT-NeoX with rotary positions, plain attention and layer norms has a public layout")
    fields = ("window", "layer_scale", "input_norm")
    require_defaults(config, GPTNeoXConfig(vocabulary=1), fields, "transformers' GPT-NeoX")
    share = (config.rotary_width or config.width // config.heads) / (config.width // config.heads)
    activations = {ours: name for name, ours in reversed(_ACTIVATIONS.items())}
    return {
        "model_type": "gpt_neox",
        "architectures": [causal_class(config, LAYOUT.architectures)],
        "vocab_size": config.vocabulary,
        "hidden_size": config.width,
        "num_attention_heads": config.heads,
        "num_hidden_layers": config.layers,
        "intermediate_size": config.feedforward,
        "max_position_embeddings": config.max_length,
        "hidden_act": activations[config.activation],
        "use_parallel_residual": config.parallel,
        "rotary_pct": share,
        "rotary_emb_base": config.rotary_base,
        **write_rotary(config),
        "layer_norm_eps": config.epsilon,
        "hidden_dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "tie_word_embeddings": config.tie,
    }


LAYOUT = Layout(
    family="gpt-neox",
    architectures={
        "GPTNeoXForCausalLM": "words",
        "GPTNeoXModel": "words",
        "GPTNeoXForSequenceClassification": "text",
        "GPTNeoXForTokenClassification": "tokens",
    },
    key_map=key_map,
    read_config=read_config,
    write_config=write_config,
)
