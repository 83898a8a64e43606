"""Llama in transformers: `LlamaForCausalLM`, also SmolLM2."""

from collections.abc import Mapping
from typing import Any

from foveate.errors import UserError
from foveate.interop.key_map import Entry, KeyMap
from foveate.interop.layout import HEAD_FIELDS, ConfigReader, Layout, require_defaults
from foveate.models.text.llama import LlamaConfig

_LAYER = {
    "self.query": "self_attn.q_proj",
    "self.key": "self_attn.k_proj",
    "self.value": "self_attn.v_proj",
    "self.output": "self_attn.o_proj",
    "around_self.norm": "input_layernorm",
    "around_feedforward.norm": "post_attention_layernorm",
    "feedforward.gate": "mlp.gate_proj",
    "feedforward.inner": "mlp.up_proj",
    "feedforward.outer": "mlp.down_proj",
}

_ACTIVATIONS = {"silu": "silu", "gelu": "gelu", "gelu_pytorch_tanh": "gelu-tanh", "relu": "relu"}

HEADS = {"words": "lm_head", "text": "score", "tokens": "score"}
"""The output layer there, by what it predicts."""


def key_map(config: LlamaConfig) -> KeyMap:
    """The table of tensors."""
    names = {"embedding": "model.embed_tokens", "stack.norm": "model.norm", "output": HEADS[config.head]}
    for layer in range(config.layers):
        names |= {f"stack.blocks.{layer}.{own}": f"model.layers.{layer}.{name}" for own, name in _LAYER.items()}
    entries = tuple(Entry((ours,), public) for ours, public in names.items())
    tied = {"lm_head.weight": "model.embed_tokens.weight"} if config.tie and config.head == "words" else {}
    return KeyMap(entries, tied, ("*.rotary_emb.inv_freq",), "model.")


def read_config(values: Mapping[str, Any], where: str) -> LlamaConfig:
    """The config of a `config.json`. UserError for what our models do not have."""
    read = ConfigReader(values, where)
    bias = read.get("attention_bias", False)
    read.require(mlp_bias=bias)
    width, heads = read.get("hidden_size", 4096), read.get("num_attention_heads", 32)
    return LlamaConfig(
        vocabulary=read.get("vocab_size", 32000),
        width=width,
        heads=heads,
        key_value_heads=read.get("num_key_value_heads", None),
        head_width=read.get("head_dim", None),
        layers=read.get("num_hidden_layers", 32),
        feedforward=read.get("intermediate_size", 11008),
        max_length=read.get("max_position_embeddings", 2048),
        activation=read.choice("hidden_act", "silu", _ACTIVATIONS),
        rotary_base=read.rotary_base(10_000.0),
        epsilon=read.get("rms_norm_eps", 1e-6),
        bias=bias,
        attention_dropout=read.get("attention_dropout", 0.0),
        tie=read.get("tie_word_embeddings", False),
    )


def write_config(config: LlamaConfig) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for parts that the public models lack."""
    if config.head != "words":
        raise UserError("only a model that predicts words is written in the public layout, not one of labels")
    plain = config.positions == "rotary" and config.gated and config.norm_kind == "rms"
    if not plain or config.parallel or config.rotary_width is not None:
        raise UserError("only a Llama with rotary positions, gated layers and RMS norms has a public layout")
    fields = (*HEAD_FIELDS, "layer_scale", "input_norm")
    require_defaults(config, LlamaConfig(vocabulary=1), fields, "transformers' Llama")
    activations = {ours: name for name, ours in _ACTIVATIONS.items()}
    return {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": config.vocabulary,
        "hidden_size": config.width,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.key_value_heads or config.heads,
        "head_dim": config.head_width or config.width // config.heads,
        "num_hidden_layers": config.layers,
        "intermediate_size": config.feedforward,
        "max_position_embeddings": config.max_length,
        "hidden_act": activations[config.activation],
        "rope_theta": config.rotary_base,
        "rms_norm_eps": config.epsilon,
        "attention_bias": config.bias,
        "mlp_bias": config.bias,
        "attention_dropout": config.attention_dropout,
        "tie_word_embeddings": config.tie,
    }


LAYOUT = Layout(
    family="llama",
    architectures={
        "LlamaForCausalLM": "words",
        "LlamaModel": "words",
        "LlamaForSequenceClassification": "text",
        "LlamaForTokenClassification": "tokens",
    },
    key_map=key_map,
    read_config=read_config,
    write_config=write_config,
)
