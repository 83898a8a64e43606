"""Llama in transformers: `LlamaForCausalLM`, also SmolLM2; and what its relatives have in common with it."""

from collections.abc import Mapping, Sequence
from typing import Any

from foveate.errors import UserError
from foveate.interop.key_map import Entry, KeyMap
from foveate.interop.layout import ConfigReader, Layout, causal_class, require_plain
from foveate.interop.rotary_fields import read_rotary, read_share, write_rotary
from foveate.models.text.llama import LlamaConfig

_LAYER = {
    "self.query": "self_attn.q_proj",
    "self.key": "self_attn.k_proj",
    "self.value": "self_attn.v_proj",
    "self.output": "self_attn.o_proj",
    "self.query_norm": "self_attn.q_norm",
    "self.key_norm": "self_attn.k_norm",
    "feedforward.gate": "mlp.gate_proj",
    "feedforward.inner": "mlp.up_proj",
    "feedforward.outer": "mlp.down_proj",
}

NORMS = {
    "pre": {"around_self.norm": "input_layernorm", "around_feedforward.norm": "post_attention_layernorm"},
    "output": {"around_self.norm": "post_attention_layernorm", "around_feedforward.norm": "post_feedforward_layernorm"},
    "sandwich": {
        "around_self.norm": "input_layernorm",
        "around_self.last_norm": "post_attention_layernorm",
        "around_feedforward.norm": "pre_feedforward_layernorm",
        "around_feedforward.last_norm": "post_feedforward_layernorm",
    },
}
"""The norms of a layer, by where they are."""

ACTIVATIONS = {"silu": "silu", "gelu": "gelu", "gelu_pytorch_tanh": "gelu-tanh", "relu": "relu"}

IGNORED = ("*.rotary_emb.inv_freq",)

HEADS = {"words": "lm_head", "text": "score", "tokens": "score", "none": "lm_head"}
"""The output layer there, by what it predicts."""

FIELDS = (
    *("width", "heads", "key_value_heads", "head_width", "layers", "feedforward", "max_length", "activation"),
    *("rotary_base", "rotary_scaling", "epsilon", "attention_dropout", "tie"),
)
"""Fields of configs that `write_fields` writes."""

WINDOWS = ("window", "window_every", "window_layers")
"""Those that `write_windows` writes."""

BIASES = ("bias", "attention_bias")
"""Those that `write_biases` writes."""


def outside(config: LlamaConfig) -> dict[str, str]:
    """The modules beside the layers."""
    return {"embedding": "model.embed_tokens", "stack.norm": "model.norm", "output": HEADS[config.head]}


def tied(config: LlamaConfig) -> dict[str, str]:
    """The tensor that files of tied models lack."""
    return {"lm_head.weight": "model.embed_tokens.weight"} if config.tie and config.head == "words" else {}


def key_map(config: LlamaConfig) -> KeyMap:
    """The table of tensors."""
    names = outside(config)
    for layer in range(config.layers):
        own = {**_LAYER, **NORMS[config.norm]}
        names |= {f"stack.blocks.{layer}.{part}": f"model.layers.{layer}.{name}" for part, name in own.items()}
    return KeyMap(tuple(Entry((ours,), public) for ours, public in names.items()), tied(config), IGNORED, "model.")


def read_fields(read: ConfigReader, usual: LlamaConfig, activation: str = "hidden_act") -> dict[str, Any]:
    """The fields that all relatives have, where `usual` are those of transformers' config."""
    width, heads = read.get("hidden_size", usual.width), read.get("num_attention_heads", usual.heads)
    head_width = read.optional("head_dim", usual.head_width)
    public = {ours: name for name, ours in ACTIVATIONS.items()}
    return {
        "vocabulary": read.get("vocab_size", usual.vocabulary),
        "width": width,
        "heads": heads,
        "key_value_heads": read.optional("num_key_value_heads", usual.key_value_heads),
        "head_width": None if head_width == width / heads else head_width,
        "layers": read.get("num_hidden_layers", usual.layers),
        "feedforward": read.get("intermediate_size", usual.feedforward),
        "max_length": read.get("max_position_embeddings", usual.max_length),
        "activation": read.choice(activation, public[usual.activation], ACTIVATIONS),
        **read_rotary(read, usual.rotary_base, usual.max_length),
        "epsilon": read.get("rms_norm_eps", usual.epsilon),
        "attention_dropout": read.get("attention_dropout", usual.attention_dropout),
        "tie": read.get("tie_word_embeddings", usual.tie),
    }


def read_biases(read: ConfigReader) -> dict[str, Any]:
    """The biases of all layers, and of attention where it has others."""
    attention, feedforward = read.get("attention_bias", False), read.get("mlp_bias", False)
    own = None if attention == feedforward else "all" if attention else "none"
    return {"bias": feedforward, "attention_bias": own}


def write_biases(config: LlamaConfig) -> dict[str, Any]:
    if config.attention_bias == "inputs":
        raise UserError("only a Qwen2 has a public layout with biases of queries, keys and values alone")
    attention = config.bias if config.attention_bias is None else config.attention_bias == "all"
    return {"attention_bias": attention, "mlp_bias": config.bias}


def refuse_share(read: ConfigReader) -> None:
    """UserError where a part of each head's width turns."""
    if (share := read_share(read, 1.0)) != 1:
        raise read.unlike(f"partial_rotary_factor is {share}, but all of a head's width turns in this model")


def period(pattern: Sequence[bool]) -> tuple[bool, ...]:
    """The shortest beginning of a pattern that repeats to give the whole."""
    count = len(pattern)
    lengths = (size for size in range(1, count + 1) if all(pattern[n] == pattern[n % size] for n in range(count)))
    return tuple(pattern[: next(lengths, 0)])


KINDS = {"full_attention": False, "sliding_attention": True}


def read_windows(read: ConfigReader, layers: int, size: int | None, usual: Sequence[bool]) -> dict[str, Any]:
    """The window of tokens, our own of positions before each, and the layers that have it: those of "layer_types", or
    the `usual` ones."""
    given = read.choices("layer_types", KINDS)
    if given is not None and len(given) != layers:
        raise read.error(f"layer_types has {len(given)} values for {layers} layers")
    windows = period(given or usual)
    if not any(windows):
        return {"window": None, "window_layers": None}
    if not size:
        raise read.error("layer_types has windows, but sliding_window is 0 or left out")
    return {"window": size - 1, "window_layers": None if windows == (True,) else windows}


def write_windows(config: LlamaConfig) -> dict[str, Any]:
    """The inverse, for a model whose layers may differ."""
    pattern = config.window_layers or (*(False,) * (config.window_every - 1), True)
    names = {windowed: name for name, windowed in KINDS.items()}
    layers = [config.window is not None and pattern[layer % len(pattern)] for layer in range(config.layers)]
    return {
        "sliding_window": None if config.window is None else config.window + 1,
        "use_sliding_window": config.window is not None,
        "layer_types": [names[windowed] for windowed in layers],
    }


def write_fields(config: LlamaConfig, activation: str = "hidden_act") -> dict[str, Any]:
    """The inverse of `read_fields`."""
    activations = {ours: name for name, ours in ACTIVATIONS.items()}
    return {
        "vocab_size": config.vocabulary,
        "hidden_size": config.width,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.key_value_heads or config.heads,
        "head_dim": config.head_width or config.width // config.heads,
        "num_hidden_layers": config.layers,
        "intermediate_size": config.feedforward,
        "max_position_embeddings": config.max_length,
        activation: activations[config.activation],
        **write_rotary(config),
        "rms_norm_eps": config.epsilon,
        "attention_dropout": config.attention_dropout,
        "tie_word_embeddings": config.tie,
        "pad_token_id": None,  # else transformers' own, which a small vocabulary has not
    }


def read_config(values: Mapping[str, Any], where: str) -> LlamaConfig:
    """The config of a `config.json`. UserError for what our models do not have."""
    read = ConfigReader(values, where)
    refuse_share(read)
    return LlamaConfig(**read_fields(read, LlamaConfig(vocabulary=32000)), **read_biases(read))


def write_config(config: LlamaConfig) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for parts that the public models lack."""
    require_plain(config, LlamaConfig(vocabulary=1), (*FIELDS, *BIASES), "transformers' Llama")
    own = {"model_type": "llama", "architectures": [causal_class(config, LAYOUT.architectures)]}
    return {**own, **write_fields(config), **write_biases(config)}


def classes(name: str, tokens: bool = True) -> dict[str, str]:
    """The classes of a relative in transformers, with what they predict; one may have none that labels `tokens`."""
    found = {f"{name}ForCausalLM": "words", f"{name}Model": "words", f"{name}ForSequenceClassification": "text"}
    return found | ({f"{name}ForTokenClassification": "tokens"} if tokens else {})


LAYOUT = Layout(
    family="llama",
    architectures=classes("Llama"),
    key_map=key_map,
    read_config=read_config,
    write_config=write_config,
)
