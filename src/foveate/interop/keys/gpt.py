"""GPT-1 and GPT-2 in transformers: `OpenAIGPTLMHeadModel` (post-norm) and `GPT2LMHeadModel` (pre-norm)."""

from collections.abc import Mapping
from typing import Any

from foveate.errors import UserError
from foveate.interop.key_map import Entry, JoinedTransposed, KeyMap
from foveate.interop.layout import ConfigReader, Layout, causal_class, require_defaults
from foveate.models.text.gpt import GPTConfig

LINEAR = {"self.output": "attn.c_proj", "feedforward.inner": "mlp.c_fc", "feedforward.outer": "mlp.c_proj"}
NORMS = {"around_self.norm": "ln_1", "around_feedforward.norm": "ln_2"}
_PROJECTIONS = ("query", "key", "value")

_IGNORED = ("*.attn.bias", "*.attn.masked_bias", "*position_ids")

_ACTIVATIONS = {"gelu_new": "gelu-tanh", "gelu_pytorch_tanh": "gelu-tanh", "relu": "relu", "silu": "silu"}
_GPT1_ACTIVATIONS = {"gelu": "gelu-tanh", "relu": "relu", "silu": "silu"}
GPT2_ACTIVATIONS = {**_ACTIVATIONS, "gelu": "gelu"}

_AS_IN_THE_PAPER = ("window", "head_width", "layer_scale", "position_join", "position_offset", "input_norm")
"""Fields that must have their defaults in a model of transformers, beside those that `write_config` names."""

HEADS = {"words": "lm_head", "text": "score", "tokens": "classifier", "none": "lm_head"}
"""The output layer there, by what it predicts."""

_FIRST = {"OpenAIGPTLMHeadModel": "words", "OpenAIGPTModel": "words", "OpenAIGPTForSequenceClassification": "text"}
_SECOND = {
    "GPT2LMHeadModel": "words",
    "GPT2Model": "words",
    "GPT2ForSequenceClassification": "text",
    "GPT2ForTokenClassification": "tokens",
}


def key_map(config: GPTConfig) -> KeyMap:
    """The table of tensors. UserError for a model with conditions, which the public ones lack."""
    if config.condition is not None:
        raise UserError("a model with conditions has no public layout: only foveate has them")
    words, places = ("wte", "wpe") if config.norm == "pre" else ("tokens_embed", "positions_embed")
    entries = [
        Entry(("embedding",), f"transformer.{words}"),
        Entry(("stack.positions.positions.table",), f"transformer.{places}.weight"),
        Entry(("output",), HEADS[config.head]),
    ]
    if config.norm == "pre":
        entries.append(Entry(("stack.norm",), "transformer.ln_f"))
    for layer in range(config.layers):
        ours, public = f"stack.blocks.{layer}", f"transformer.h.{layer}"
        projections = tuple(f"{ours}.self.{part}" for part in _PROJECTIONS)
        entries.append(Entry(projections, f"{public}.attn.c_attn", JoinedTransposed()))
        entries += [Entry((f"{ours}.{own}",), f"{public}.{name}", JoinedTransposed()) for own, name in LINEAR.items()]
        entries += [Entry((f"{ours}.{own}",), f"{public}.{name}") for own, name in NORMS.items()]
    tied = {"lm_head.weight": f"transformer.{words}.weight"} if config.tie and config.head == "words" else {}
    return KeyMap(tuple(entries), tied, _IGNORED, "transformer.")


def read_config(values: Mapping[str, Any], where: str) -> GPTConfig:
    """The config of a `config.json`. UserError for what our models do not have."""
    read = ConfigReader(values, where)
    first = values["model_type"] == "openai-gpt"
    read.require(scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False, add_cross_attention=False)
    width = read.get("n_embd", 768)
    activations, name = (_GPT1_ACTIVATIONS, "afn") if first else (GPT2_ACTIVATIONS, "activation_function")
    return GPTConfig(
        vocabulary=read.get("vocab_size", 40478 if first else 50257),
        width=width,
        heads=read.get("n_head", 12),
        layers=read.get("n_layer", 12),
        feedforward=4 * width if first else read.get("n_inner", None) or 4 * width,
        max_length=read.get("n_positions", 512 if first else 1024),
        norm="post" if first else "pre",
        activation=read.choice(name, "gelu" if first else "gelu_new", activations),
        epsilon=read.get("layer_norm_epsilon", 1e-5),
        dropout=read.get("resid_pdrop", 0.1),
        attention_dropout=read.get("attn_pdrop", 0.1),
        tie=read.get("tie_word_embeddings", True),
    )


def write_config(config: GPTConfig) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for parts that the public models lack."""
    plain = config.positions == "learned" and not config.gated and config.norm_kind == "layer"
    if not plain or not config.bias or config.parallel or config.key_value_heads not in (None, config.heads):
        raise UserError("only a GPT with learned positions, plain attention and layer norms has a public layout")
    require_defaults(config, GPTConfig(vocabulary=1), _AS_IN_THE_PAPER, "transformers' GPT")
    first = config.norm == "post"
    if first and config.feedforward != 4 * config.width:
        raise UserError(f"GPT-1's feed-forward layers are 4 times as wide as it, not {config.feedforward}")
    activations = {ours: name for name, ours in (_GPT1_ACTIVATIONS if first else GPT2_ACTIVATIONS).items()}
    activation = "gelu_new" if config.activation == "gelu-tanh" and not first else activations[config.activation]
    sizes = {"n_embd": config.width, "n_head": config.heads, "n_layer": config.layers, "n_positions": config.max_length}
    kind = {"afn": activation} if first else {"n_inner": config.feedforward, "activation_function": activation}
    return {
        "model_type": "openai-gpt" if first else "gpt2",
        "architectures": [causal_class(config, _FIRST if first else _SECOND)],
        "vocab_size": config.vocabulary,
        **sizes,
        **kind,
        "layer_norm_epsilon": config.epsilon,
        "resid_pdrop": config.dropout,
        "embd_pdrop": config.dropout,
        "attn_pdrop": config.attention_dropout,
        "tie_word_embeddings": config.tie,
    }


LAYOUT = Layout(
    family="gpt",
    architectures={**_SECOND, **_FIRST},
    key_map=key_map,
    read_config=read_config,
    write_config=write_config,
)
