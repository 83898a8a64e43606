"""OPT in transformers: `OPTForCausalLM`, but not of 350 million parameters, whose norms and embeddings are others."""

from collections.abc import Mapping
from typing import Any

from foveate.interop.key_map import Entry, KeyMap
from foveate.interop.layout import ConfigReader, Layout, causal_class, require_plain
from foveate.models.text.opt import OPTConfig

_LAYER = {
    "self.query": "self_attn.q_proj",
    "self.key": "self_attn.k_proj",
    "self.value": "self_attn.v_proj",
    "self.output": "self_attn.out_proj",
    "around_self.norm": "self_attn_layer_norm",
    "around_feedforward.norm": "final_layer_norm",
    "feedforward.inner": "fc1",
    "feedforward.outer": "fc2",
}

_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_new": "gelu-tanh", "silu": "silu"}

_WRITTEN = ("width", "heads", "layers", "feedforward", "max_length", "activation", "attention_dropout", "tie")
"""Fields of configs that files say."""

HEADS = {"words": "lm_head", "text": "score", "none": "lm_head"}
"""The output layer there, by what it predicts."""


def key_map(config: OPTConfig) -> KeyMap:
    """The table of tensors."""
    names = {
        "embedding": "model.decoder.embed_tokens",
        "stack.positions.positions.table": "model.decoder.embed_positions.weight",
        "stack.norm": "model.decoder.final_layer_norm",
        "output": HEADS[config.head],
    }
    for layer in range(config.layers):
        names |= {f"stack.blocks.{layer}.{own}": f"model.decoder.layers.{layer}.{name}" for own, name in _LAYER.items()}
    entries = tuple(Entry((ours,), public) for ours, public in names.items())
    tied = {"lm_head.weight": "model.decoder.embed_tokens.weight"} if config.tie and config.head == "words" else {}
    return KeyMap(entries, tied, (), "model.")


def read_config(values: Mapping[str, Any], where: str) -> OPTConfig:
    """The config of a `config.json`. UserError for what our models do not have."""
    read = ConfigReader(values, where)
    width = read.get("hidden_size", 768)
    read.require(do_layer_norm_before=True, _remove_final_layer_norm=False, word_embed_proj_dim=width)
    read.require(enable_bias=True, layer_norm_elementwise_affine=True)
    return OPTConfig(
        vocabulary=read.get("vocab_size", 50272),
        width=width,
        heads=read.get("num_attention_heads", 12),
        layers=read.get("num_hidden_layers", 12),
        feedforward=read.get("ffn_dim", 3072),
        max_length=read.get("max_position_embeddings", 2048),
        activation=read.choice("activation_function", "relu", _ACTIVATIONS),
        dropout=read.get("dropout", 0.1),
        attention_dropout=read.get("attention_dropout", 0.0),
        tie=read.get("tie_word_embeddings", True),
    )


def write_config(config: OPTConfig) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for parts that the public models lack."""
    require_plain(config, OPTConfig(vocabulary=1), _WRITTEN, "transformers' OPT")
    activations = {ours: name for name, ours in _ACTIVATIONS.items()}
    return {
        "model_type": "opt",
        "architectures": [causal_class(config, LAYOUT.architectures)],
        "vocab_size": config.vocabulary,
        "hidden_size": config.width,
        "word_embed_proj_dim": config.width,
        "num_attention_heads": config.heads,
        "num_hidden_layers": config.layers,
        "ffn_dim": config.feedforward,
        "max_position_embeddings": config.max_length,
        "activation_function": activations[config.activation],
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "tie_word_embeddings": config.tie,
        "pad_token_id": None,  # else transformers' own, whose embedding does not learn
    }


LAYOUT = Layout(
    family="opt",
    architectures={"OPTForCausalLM": "words", "OPTModel": "words", "OPTForSequenceClassification": "text"},
    key_map=key_map,
    read_config=read_config,
    write_config=write_config,
)
