"""ModernBERT in transformers. Queries, keys and values are one matrix there, and so are a feed-forward layer's gate and
what it gates."""

from collections.abc import Mapping
from typing import Any

from foveate.errors import UserError, show_value
from foveate.interop.key_map import Entry, Joined, KeyMap, Same, Transform
from foveate.interop.keys.bert import ACTIVATIONS, KINDS, WRITTEN, tied_words
from foveate.interop.layout import ConfigReader, Layout, UnlikeOurs, require_defaults
from foveate.interop.rotary_fields import read_rotary
from foveate.models.text.bert import BertConfig

_POOLING = {"cls": "first", "mean": "mean"}

_LABELS = {"head.inner": "head.dense", "head.norm": "head.norm", "head.output": "classifier"}
_HEADS: dict[str, dict[str, str]] = {
    "words": {**_LABELS, "head.output": "decoder"},
    "text": _LABELS,
    "tokens": _LABELS,
    "span": _LABELS,
    "none": {},
}

_OTHERS = ("positions", "norm", "norm_kind", "first_norm", "gated", "label_layer", "token_types", "position_offset")
_PLAIN = {
    "positions": "rotary",
    "norm": "pre",
    "norm_kind": "layer-unbiased",
    "first_norm": False,
    "gated": True,
    "label_layer": True,
    "token_types": None,
    "rotary_width": None,
}
"""What all of these models have."""


def key_map(config: BertConfig) -> KeyMap:
    """The table of tensors. UserError for a head that transformers lacks."""
    kind = "none" if config.head == "vector" else config.head
    if kind not in _HEADS:
        raise UserError(f"ModernBert has no head '{config.head}' in transformers")
    rows: list[tuple[tuple[str, ...], str, Transform]] = [
        (("embedding",), "model.embeddings.tok_embeddings", Same()),
        (("stack.input_norm",), "model.embeddings.norm", Same()),
        (("stack.norm",), "model.final_norm", Same()),
        *(((ours,), theirs, Same()) for ours, theirs in _HEADS[kind].items()),
    ]
    for layer in range(config.layers):
        ours, theirs = f"stack.blocks.{layer}", f"model.layers.{layer}"
        projections = tuple(f"{ours}.self.{name}" for name in ("query", "key", "value"))
        gated = tuple(f"{ours}.feedforward.{name}" for name in ("gate", "inner"))
        rows += [
            (projections, f"{theirs}.attn.Wqkv", Joined()),
            ((f"{ours}.self.output",), f"{theirs}.attn.Wo", Same()),
            (gated, f"{theirs}.mlp.Wi", Joined()),
            ((f"{ours}.feedforward.outer",), f"{theirs}.mlp.Wo", Same()),
            ((f"{ours}.around_feedforward.norm",), f"{theirs}.mlp_norm", Same()),
        ]
        if layer:
            rows.append(((f"{ours}.around_self.norm",), f"{theirs}.attn_norm", Same()))
    words = kind == "words" and config.tie
    tied = tied_words(config, _HEADS[kind], "model.embeddings.tok_embeddings") if words else {}
    return KeyMap(tuple(Entry(*row) for row in rows), tied, (), "model.")


def read_config(values: Mapping[str, Any], where: str) -> BertConfig:
    """The config of a `config.json`. UserError for what our models do not have."""
    read = ConfigReader(values, where)
    bias = read.get("attention_bias", False)
    read.require(mlp_bias=bias, decoder_bias=True, norm_bias=False)
    layers, activation = read.get("num_hidden_layers", 22), read.choice("hidden_activation", "gelu", ACTIVATIONS)
    return BertConfig(
        **_PLAIN,  # type: ignore[arg-type]
        vocabulary=read.get("vocab_size", 50368),
        width=read.get("hidden_size", 768),
        heads=read.get("num_attention_heads", 12),
        layers=layers,
        feedforward=read.get("intermediate_size", 1152),
        max_length=read.get("max_position_embeddings", 8192),
        epsilon=read.get("norm_eps", 1e-5),
        activation=activation,
        word_activation=read.choice("classifier_activation", "gelu", ACTIVATIONS),
        bias=bias,
        head_bias=read.get("classifier_bias", False),
        pooling=read.choice("classifier_pooling", "cls", _POOLING),
        rotary_base=_base(values, where, "full_attention", "global_rope_theta", 160_000.0),
        window_rotary_base=_base(values, where, "sliding_attention", "local_rope_theta", 10_000.0),
        window=read.get("local_attention", 128) // 2,
        window_layers=_windows(values, where, layers),
        dropout=read.get("embedding_dropout", 0.0),
        attention_dropout=read.get("attention_dropout", 0.0),
        activation_dropout=read.get("mlp_dropout", 0.0),
        tie=read.get("tie_word_embeddings", True),
    )


def _windows(values: Mapping[str, Any], where: str, layers: int) -> tuple[bool, ...]:
    """Which layers have a window. UserError for a list that cannot be."""
    kinds = values.get("layer_types")
    if kinds is None:
        every = ConfigReader(values, where).get("global_attn_every_n_layers", 3)
        return tuple(bool(every and number % every) for number in range(layers))
    known = ("sliding_attention", "full_attention")
    if not isinstance(kinds, list) or len(kinds) != layers or any(kind not in known for kind in kinds):
        raise UserError(f"{where} has the layer_types {show_value(kinds)}, but {layers} layers, each of {known}")
    return tuple(kind == known[0] for kind in kinds)


def _base(values: Mapping[str, Any], where: str, kind: str, older: str, default: float) -> float:
    """The rotary base of one kind of layers, under its old name or its new one."""
    table = values.get("rope_parameters") or {}
    own = table.get(kind) or {} if isinstance(table, Mapping) else table
    base = float(ConfigReader(values, where).get(older, default))
    fields = read_rotary(ConfigReader({"rope_parameters": own}, where), base, 1)
    if "rotary_scaling" in fields:
        raise UnlikeOurs(f"{where} has scaled rotary positions, which foveate's ModernBERT has not")
    return float(fields["rotary_base"])


def write_config(config: BertConfig) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for parts that the public models lack."""
    if config.head not in WRITTEN:
        raise UserError(f"a ModernBERT with the head {config.head} is not written in the public layout")
    plain = BertConfig(vocabulary=1, **_PLAIN)  # type: ignore[arg-type]
    own = (*_OTHERS, "key_value_heads", "head_width", "parallel")
    require_defaults(config, plain, (*own, "layer_scale", "input_norm", "input_width"), "transformers' ModernBERT")
    if config.window is None or config.window_layers is None:
        raise UserError("transformers' ModernBERT has windows, but this one none")
    near = config.rotary_base if config.window_rotary_base is None else config.window_rotary_base
    names = {ours: name for name, ours in ACTIVATIONS.items()}
    pattern = config.window_layers
    windowed = [pattern[number % len(pattern)] for number in range(config.layers)]
    kinds = ["sliding_attention" if one else "full_attention" for one in windowed]
    return {
        "model_type": "modernbert",
        "architectures": ["ModernBert" + WRITTEN[config.head]],
        "vocab_size": config.vocabulary,
        "hidden_size": config.width,
        "num_attention_heads": config.heads,
        "num_hidden_layers": config.layers,
        "intermediate_size": config.feedforward,
        "max_position_embeddings": config.max_length,
        "norm_eps": config.epsilon,
        "hidden_activation": names[config.activation],
        "classifier_activation": names[config.word_activation],
        "attention_bias": config.bias,
        "mlp_bias": config.bias,
        "classifier_bias": config.head_bias,
        "classifier_pooling": {ours: name for name, ours in _POOLING.items()}[config.pooling],
        "global_rope_theta": config.rotary_base,
        "local_rope_theta": near,
        "local_attention": 2 * config.window,
        "layer_types": kinds,
        "embedding_dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "mlp_dropout": config.dropout if config.activation_dropout is None else config.activation_dropout,
        "tie_word_embeddings": config.tie,
    }


LAYOUT = Layout(
    family="bert",
    architectures={f"ModernBert{kind}": head for kind, head in KINDS.items() if head in _HEADS if "Pre" not in kind},
    key_map=key_map,
    read_config=read_config,
    write_config=write_config,
    holds=lambda config: not config.first_norm,
    heads=("head.*", "decoder.*", "classifier.*"),
)
