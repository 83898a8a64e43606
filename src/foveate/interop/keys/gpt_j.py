"""GPT-J in transformers: `GPTJForCausalLM`."""

from collections.abc import Mapping
from typing import Any

from foveate.interop.key_map import Entry, Interleaved, KeyMap, Same
from foveate.interop.layout import ConfigReader, Layout, causal_class, require_plain
from foveate.models.text.gpt_j import GPTJConfig

_LAYER = {
    "norm": "ln_1",
    "self.query": "attn.q_proj",
    "self.key": "attn.k_proj",
    "self.value": "attn.v_proj",
    "self.output": "attn.out_proj",
    "feedforward.inner": "mlp.fc_in",
    "feedforward.outer": "mlp.fc_out",
}

_ACTIVATIONS = {"gelu_new": "gelu-tanh", "gelu": "gelu", "relu": "relu", "silu": "silu"}

_IGNORED = ("*.attn.bias", "*.attn.masked_bias", "*.attn.embed_positions")

_WRITTEN = (
    *("width", "heads", "layers", "feedforward", "max_length", "rotary_width", "activation", "epsilon"),
    *("attention_dropout", "tie"),
)
"""Fields of configs that files say."""

HEADS = {"words": "lm_head", "text": "score", "none": "lm_head"}
"""The output layer there, by what it predicts."""


def key_map(config: GPTJConfig) -> KeyMap:
    """The table of tensors."""
    names = {"embedding": "transformer.wte", "stack.norm": "transformer.ln_f", "output": HEADS[config.head]}
    entries = [Entry((ours,), public) for ours, public in names.items()]
    turned = Interleaved(config.heads, config.rotary_width or config.width // config.heads)
    for layer in range(config.layers):
        for ours, public in _LAYER.items():
            transform = turned if ours in ("self.query", "self.key") else Same()
            entries.append(Entry((f"stack.blocks.{layer}.{ours}",), f"transformer.h.{layer}.{public}", transform))
    tied = {"lm_head.weight": "transformer.wte.weight"} if config.tie and config.head == "words" else {}
    return KeyMap(tuple(entries), tied, _IGNORED, "transformer.")


def read_config(values: Mapping[str, Any], where: str) -> GPTJConfig:
    """The config of a `config.json`. UserError for what our models do not have."""
    read = ConfigReader(values, where)
    width = read.get("n_embd", 4096)
    if (turned := read.optional("rotary_dim", 64)) is None or turned % 2:
        raise read.unlike(f"rotary_dim is {turned}, but must be an even number")
    return GPTJConfig(
        vocabulary=read.get("vocab_size", 50400),
        width=width,
        heads=read.get("n_head", 16),
        layers=read.get("n_layer", 28),
        feedforward=read.optional("n_inner", None) or 4 * width,
        max_length=read.get("n_positions", 2048),
        rotary_width=turned,
        activation=read.choice("activation_function", "gelu_new", _ACTIVATIONS),
        epsilon=read.get("layer_norm_epsilon", 1e-5),
        dropout=read.get("resid_pdrop", 0.0),
        attention_dropout=read.get("attn_pdrop", 0.0),
        tie=read.get("tie_word_embeddings", False),
    )


def write_config(config: GPTJConfig) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for parts that the public models lack."""
    require_plain(config, GPTJConfig(vocabulary=1), _WRITTEN, "transformers' GPTJ")
    activations = {ours: name for name, ours in _ACTIVATIONS.items()}
    return {
        "model_type": "gptj",
        "architectures": [causal_class(config, LAYOUT.architectures)],
        "vocab_size": config.vocabulary,
        "n_embd": config.width,
        "n_head": config.heads,
        "n_layer": config.layers,
        "n_inner": config.feedforward,
        "n_positions": config.max_length,
        "rotary_dim": config.rotary_width or config.width // config.heads,
        "activation_function": activations[config.activation],
        "layer_norm_epsilon": config.epsilon,
        "resid_pdrop": config.dropout,
        "embd_pdrop": config.dropout,
        "attn_pdrop": config.attention_dropout,
        "tie_word_embeddings": config.tie,
    }


LAYOUT = Layout(
    family="gpt-j",
    architectures={"GPTJForCausalLM": "words", "GPTJModel": "words", "GPTJForSequenceClassification": "text"},
    key_map=key_map,
    read_config=read_config,
    write_config=write_config,
)
