"""DeBERTa and its second and third version in transformers. The first has queries, keys and values in one matrix, head
by head, and their biases apart."""

from collections.abc import Mapping
from typing import Any

from foveate.errors import UserError, show_value
from foveate.interop.key_map import Entry, JoinedByHead, KeyMap, Same, Transform
from foveate.interop.keys.bert import ACTIVATIONS, KINDS, LEGACY_WORDS, OTHER_HEADS, WRITTEN, tied_words
from foveate.interop.layout import ConfigReader, Layout, UnlikeOurs, require_defaults
from foveate.models.text.deberta import DebertaConfig

_HEADS: dict[str, dict[str, str]] = {
    "words": LEGACY_WORDS,
    "text": {"head.inner": "pooler.dense", "head.output": "classifier"},
    "tokens": {"head.output": "classifier"},
    "span": {"head.output": "qa_outputs"},
    "none": {},
}

_LAYER = {
    "self.output": "attention.output.dense",
    "around_self.norm": "attention.output.LayerNorm",
    "feedforward.inner": "intermediate.dense",
    "feedforward.outer": "output.dense",
    "around_feedforward.norm": "output.LayerNorm",
}

_SECOND = {
    "self.query": "attention.self.query_proj",
    "self.key": "attention.self.key_proj",
    "self.value": "attention.self.value_proj",
}

_TERMS = {"c2p": "to_position", "p2c": "from_position"}

_AS_IN_THE_PAPER = (
    *("norm", "norm_kind", "position_join", "input_norm", "bias", "gated", "parallel", "input_width", "first_norm"),
    *("window", "key_value_heads", "head_width", "layer_scale", "label_layer", "head_bias", "position_offset"),
    *("distance_buckets", "pooling"),
)
"""Fields that must have their defaults in a model of transformers."""


def key_map(config: DebertaConfig) -> KeyMap:
    """The table of tensors. UserError for a head that transformers lacks."""
    kind = "none" if config.head == "vector" else config.head
    if kind not in _HEADS:
        raise UserError(f"Deberta has no head '{config.head}' in transformers")
    words = "deberta.embeddings.word_embeddings"
    names = {
        "embedding": words,
        "stack.input_norm": "deberta.embeddings.LayerNorm",
        "stack.distances.table": "deberta.encoder.rel_embeddings.weight",
        **_HEADS[kind],
    }
    if config.token_types:
        names["token_types"] = "deberta.embeddings.token_type_embeddings"
    if config.positions == "learned":
        names["stack.positions.positions.table"] = "deberta.embeddings.position_embeddings.weight"
    if config.norm_distances:
        names["stack.distances.norm"] = "deberta.encoder.LayerNorm"
    rows: dict[tuple[str, ...], tuple[str, Transform]] = {(ours,): (theirs, Same()) for ours, theirs in names.items()}
    for layer in range(config.layers):
        rows |= _layer(config, f"stack.blocks.{layer}", f"deberta.encoder.layer.{layer}")
    tied = tied_words(config, _HEADS[kind], words) if kind == "words" else {}
    # Without positions of its own, the input ignores the table that files may have.
    ignored: tuple[str, ...] = ("*embeddings.position_ids", "lm_predictions.*", "mask_predictions.*")
    ignored += ("*embeddings.position_embeddings.*",) if config.positions != "learned" else ()
    return KeyMap(tuple(Entry(ours, *row) for ours, row in rows.items()), tied, ignored, "deberta.")


def _layer(config: DebertaConfig, ours: str, theirs: str) -> dict[tuple[str, ...], tuple[str, Transform]]:
    found: dict[tuple[str, ...], tuple[str, Transform]] = {}
    there = f"{theirs}.attention.self"
    if config.key_bias:
        names, positions = {**_LAYER, **_SECOND}, ("pos_key_proj", "pos_query_proj")
    else:
        names, positions = _LAYER, ("pos_proj", "pos_q_proj")
        parts = tuple(f"{ours}.self.{name}.weight" for name in ("query", "key", "value"))
        found[parts] = f"{there}.in_proj.weight", JoinedByHead(config.heads)
        found[(f"{ours}.self.query.bias",)] = f"{there}.q_bias", Same()
        found[(f"{ours}.self.value.bias",)] = f"{there}.v_bias", Same()
    for name, own in names.items():
        found[(f"{ours}.{name}",)] = f"{theirs}.{own}", Same()
    for name, own, there_is in zip(
        ("position_key", "position_query"), positions, (config.to_position, config.from_position), strict=True
    ):
        if there_is and not config.share_projections:
            found[(f"{ours}.self.{name}",)] = f"{there}.{own}", Same()
    return found


def read_config(values: Mapping[str, Any], where: str) -> DebertaConfig:
    """The config of a `config.json`. UserError for what our models do not have."""
    read, first = ConfigReader(values, where), values.get("model_type") == "deberta"
    width, activation = read.get("hidden_size", 768 if first else 1536), read.choice("hidden_act", "gelu", ACTIVATIONS)
    read.require(relative_attention=True, talking_head=False, embedding_size=width, pooler_hidden_size=width)
    read.require(conv_kernel_size=0, legacy=True, attention_head_size=width // max(1, read.get(_HEAD_COUNT, 12)))
    if "relative_attention" not in values:
        raise UnlikeOurs(f"{where} has no relative_attention; foveate's DeBERTa has relative positions")
    terms = _terms(values, where)
    longest = _signed(values, "max_relative_positions", where) or read.get("max_position_embeddings", 512)
    buckets = 0 if first else _signed(values, "position_buckets", where)
    norms = [part.strip() for part in str(values.get("norm_rel_ebd", "none")).lower().split("|")]
    return DebertaConfig(
        vocabulary=read.get("vocab_size", 50265 if first else 128100),
        width=width,
        heads=read.get(_HEAD_COUNT, 12 if first else 24),
        layers=read.get("num_hidden_layers", 12 if first else 24),
        feedforward=read.get("intermediate_size", 3072 if first else 6144),
        max_length=read.get("max_position_embeddings", 512),
        positions="learned" if read.get("position_biased_input", True) else "none",
        token_types=read.get("type_vocab_size", 0) or None,
        epsilon=read.get("layer_norm_eps", 1e-7),
        activation=activation,
        word_activation=activation,
        text_activation=read.choice("pooler_hidden_act", "gelu", {**ACTIVATIONS, "tanh": "tanh"}),
        distances=buckets or longest,
        longest=longest if buckets else None,
        to_position="c2p" in terms,
        from_position="p2c" in terms,
        share_projections=not first and read.get("share_att_key", False),
        norm_distances=not first and "layer_norm" in norms,
        key_bias=not first,
        dropout=read.get("hidden_dropout_prob", 0.1),
        attention_dropout=read.get("attention_probs_dropout_prob", 0.1),
        tie=read.get("tie_word_embeddings", True),
    )


_HEAD_COUNT = "num_attention_heads"


def _terms(values: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """Which products are added to those of contents."""
    found = values.get("pos_att_type") or []
    parts = [part.strip() for part in found.lower().split("|")] if isinstance(found, str) else found
    if not isinstance(parts, list) or any(part not in _TERMS for part in parts):
        raise UnlikeOurs(f"{where} has the pos_att_type {show_value(found)}; foveate's models have {', '.join(_TERMS)}")
    return tuple(parts)


def _signed(values: Mapping[str, Any], name: str, where: str) -> int:
    """A size that files leave out by a number below 1; then 0."""
    value = values.get(name, -1)
    return 0 if type(value) is int and value < 1 else int(ConfigReader(values, where).get(name, 0))


def write_config(config: DebertaConfig) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for parts that the public models lack."""
    first = not config.key_bias
    if config.head not in WRITTEN:
        raise UserError(f"a DeBERTa with the head {config.head} is not written in the public layout")
    require_defaults(config, DebertaConfig(vocabulary=1), _AS_IN_THE_PAPER, "transformers' DeBERTa")
    if config.head == "words" and config.word_activation != config.activation:
        raise UserError(f"transformers' DeBERTa has {config.activation} before its words too")
    if config.positions not in ("learned", "none"):
        raise UserError(f"transformers' DeBERTa has no {config.positions} positions")
    if first and (config.share_projections or config.norm_distances or config.longest):
        raise UserError("transformers' first DeBERTa has no shared projections, no norm of distances and no buckets")
    names = {ours: name for name, ours in ACTIVATIONS.items()} | {"tanh": "tanh"}
    second = {
        "position_buckets": config.distances if config.longest else -1,
        "share_att_key": config.share_projections,
        "norm_rel_ebd": "layer_norm" if config.norm_distances else "none",
    }
    return {
        "model_type": "deberta" if first else "deberta-v2",
        "architectures": [("Deberta" if first else "DebertaV2") + WRITTEN[config.head]],
        "vocab_size": config.vocabulary,
        "hidden_size": config.width,
        _HEAD_COUNT: config.heads,
        "num_hidden_layers": config.layers,
        "intermediate_size": config.feedforward,
        "max_position_embeddings": config.max_length,
        "position_biased_input": config.positions == "learned",
        "type_vocab_size": config.token_types or 0,
        "layer_norm_eps": config.epsilon,
        "hidden_act": names[config.activation],
        "pooler_hidden_act": names[config.text_activation],
        "relative_attention": True,
        "max_relative_positions": config.longest or config.distances,
        "pos_att_type": [name for name, ours in _TERMS.items() if getattr(config, ours)],
        **({} if first else second),
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.attention_dropout,
        "tie_word_embeddings": config.tie,
    }


LAYOUT = Layout(
    family="deberta",
    architectures={
        f"{begins}{kind}": head
        for begins in ("DebertaV2", "Deberta")
        for kind, head in KINDS.items()
        if head in _HEADS and "Pre" not in kind
    },
    key_map=key_map,
    read_config=read_config,
    write_config=write_config,
    aliases=lambda config: {"gamma": "weight", "beta": "bias"},
    heads=OTHER_HEADS,
)
