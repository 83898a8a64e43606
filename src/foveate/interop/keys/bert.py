"""The models of `models/text/bert.py` in transformers, but ModernBERT: BERT, RoBERTa (XLM-RoBERTa and CamemBERT are
RoBERTas), DistilBERT, ELECTRA and MPNet.

What a config has that only one of them has, says which it is (`names_of`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from foveate.errors import UserError
from foveate.interop.key_map import Entry, JoinedTransposed, KeyMap
from foveate.interop.layout import ConfigReader, Layout, UnlikeOurs, require_defaults
from foveate.models.text.bert import BertConfig

ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu-tanh", "relu": "relu", "silu": "silu"}

KINDS = {
    "Model": "none",
    "ForMaskedLM": "words",
    "ForPreTraining": "words",
    "ForSequenceClassification": "text",
    "ForTokenClassification": "tokens",
    "ForQuestionAnswering": "span",
    "ForNextSentencePrediction": "pair",
}
"""What the heads of transformers' classes predict, by the ends of their names."""

WRITTEN = {
    "words": "ForMaskedLM",
    "text": "ForSequenceClassification",
    "tokens": "ForTokenClassification",
    "span": "ForQuestionAnswering",
}
"""The ends of the names of transformers' models that are written, by their heads."""

Table = Mapping[str, str]

LAYER = {
    "self.query": "attention.self.query",
    "self.key": "attention.self.key",
    "self.value": "attention.self.value",
    "self.output": "attention.output.dense",
    "around_self.norm": "attention.output.LayerNorm",
    "feedforward.inner": "intermediate.dense",
    "feedforward.outer": "output.dense",
    "around_feedforward.norm": "output.LayerNorm",
}

_CLASSIFIER = {
    "tokens": {"head.output": "classifier"},
    "text": {"head.inner": "classifier.dense", "head.output": "classifier.out_proj"},
    "span": {"head.output": "qa_outputs"},
    "none": {},
}

LM_HEAD = {
    "head.inner": "lm_head.dense",
    "head.norm": "lm_head.layer_norm",
    "head.output.weight": "lm_head.decoder.weight",
    "head.output.bias": "lm_head.bias",
}

LEGACY_WORDS = {
    "head.inner": "cls.predictions.transform.dense",
    "head.norm": "cls.predictions.transform.LayerNorm",
    "head.output.weight": "cls.predictions.decoder.weight",
    "head.output.bias": "cls.predictions.bias",
}
"""BERT's layers before the logits of words."""


@dataclass(frozen=True)
class Names:
    """How transformers names the parts of one of these models."""

    types: tuple[str, ...]
    """The "model_type" that is written, and others of the same kind."""
    begins: str
    """What the names of its classes begin with."""
    body: str
    heads: Mapping[str, Table]
    layer: Table = field(default_factory=lambda: LAYER)
    layers: str = "encoder.layer"
    config: Table = field(default_factory=dict)
    """Its own names of fields of a `config.json`, each by that of BERT."""
    word_activation: Any = None
    """The activation function before the logits of words, where it is not that of the layers."""

    def field(self, name: str) -> str:
        return self.config.get(name, name)


BERT = Names(
    types=("bert",),
    begins="Bert",
    body="bert",
    heads={
        **_CLASSIFIER,
        "words": LEGACY_WORDS,
        "text": {"head.inner": "bert.pooler.dense", "head.output": "classifier"},
        "pair": {"head.inner": "bert.pooler.dense", "head.output": "cls.seq_relationship"},
    },
)
ROBERTA = Names(
    types=("roberta", "xlm-roberta", "camembert"),
    begins="Roberta",
    body="roberta",
    heads={**_CLASSIFIER, "words": LM_HEAD},
    word_activation="gelu",
)
DISTILBERT = Names(
    types=("distilbert",),
    begins="DistilBert",
    body="distilbert",
    heads={
        **_CLASSIFIER,
        "words": {
            "head.inner": "vocab_transform",
            "head.norm": "vocab_layer_norm",
            "head.output": "vocab_projector",
        },
        "text": {"head.inner": "pre_classifier", "head.output": "classifier"},
    },
    layer={
        "self.query": "attention.q_lin",
        "self.key": "attention.k_lin",
        "self.value": "attention.v_lin",
        "self.output": "attention.out_lin",
        "around_self.norm": "sa_layer_norm",
        "feedforward.inner": "ffn.lin1",
        "feedforward.outer": "ffn.lin2",
        "around_feedforward.norm": "output_layer_norm",
    },
    layers="transformer.layer",
    config={
        "hidden_size": "dim",
        "num_attention_heads": "n_heads",
        "num_hidden_layers": "n_layers",
        "intermediate_size": "hidden_dim",
        "hidden_act": "activation",
        "hidden_dropout_prob": "dropout",
        "attention_probs_dropout_prob": "attention_dropout",
    },
)
ELECTRA = Names(
    types=("electra",),
    begins="Electra",
    body="electra",
    heads={
        **_CLASSIFIER,
        "words": {
            "head.inner": "generator_predictions.dense",
            "head.norm": "generator_predictions.LayerNorm",
            "head.output": "generator_lm_head",
        },
    },
    word_activation="gelu",
)
MPNET = Names(
    types=("mpnet",),
    begins="MPNet",
    body="mpnet",
    heads={**_CLASSIFIER, "words": LM_HEAD},
    layer={
        **LAYER,
        "self.query": "attention.attn.q",
        "self.key": "attention.attn.k",
        "self.value": "attention.attn.v",
        "self.output": "attention.attn.o",
        "around_self.norm": "attention.LayerNorm",
    },
    word_activation="gelu",
)
ALL = (BERT, ROBERTA, DISTILBERT, ELECTRA, MPNET)

_PLAIN: dict[str, dict[str, Any]] = {
    "bert": {"vocab_size": 30522},
    "roberta": {"vocab_size": 50265},
    "distilbert": {"vocab_size": 30522, "num_hidden_layers": 6},
    "electra": {
        "vocab_size": 30522,
        "hidden_size": 256,
        "num_attention_heads": 4,
        "intermediate_size": 1024,
        "embedding_size": 128,
    },
    "mpnet": {"vocab_size": 30527},
}
"""Sizes that a file may leave out, where they are not BERT's."""

_AS_IN_THE_PAPER = (
    *("positions", "norm", "norm_kind", "position_join", "input_norm", "bias", "gated", "parallel"),
    *("window", "key_value_heads", "head_width", "layer_scale", "label_layer", "head_bias"),
)
"""Fields that must have their defaults in a model of transformers."""


def names_of(config: BertConfig) -> Names:
    """Which of transformers' models a config is of."""
    if config.distance_buckets is not None:
        return MPNET
    if config.position_offset is not None:
        return ROBERTA
    if config.input_width is not None:
        return ELECTRA
    return BERT if config.token_types else DISTILBERT


def key_map(config: BertConfig) -> KeyMap:
    """The table of tensors. UserError for a head that transformers lacks."""
    names = names_of(config)
    body, kind = names.body, "none" if config.head == "vector" else config.head
    if kind not in names.heads:
        raise UserError(f"{names.begins} has no head '{config.head}' in transformers")
    table = {
        "embedding": f"{body}.embeddings.word_embeddings",
        "stack.positions.positions.table": f"{body}.embeddings.position_embeddings.weight",
        "stack.input_norm": f"{body}.embeddings.LayerNorm",
        **names.heads[kind],
    }
    if config.token_types:
        table["token_types"] = f"{body}.embeddings.token_type_embeddings"
    if config.input_width not in (None, config.width):
        table["stack.widen"] = f"{body}.embeddings_project"
    for layer in range(config.layers):
        there = f"{body}.{names.layers}.{layer}"
        table |= {f"stack.blocks.{layer}.{ours}": f"{there}.{own}" for ours, own in names.layer.items()}
    tied = tied_words(config, names.heads[kind], table["embedding"]) if kind == "words" else {}
    pooled = any(name.startswith(f"{body}.pooler.") for name in names.heads[kind].values())
    ignored = ("*embeddings.position_ids", "cls.seq_relationship.*", *(() if pooled else ("*pooler.dense.*",)))
    ignored = tuple(pattern for pattern in ignored if kind != "pair" or not pattern.startswith("cls."))
    found = KeyMap.of(table, tied, ignored, f"{body}.")
    if config.distance_buckets is None:
        return found
    distances = Entry(("stack.distances.table",), f"{body}.encoder.relative_attention_bias.weight", JoinedTransposed())
    return KeyMap((*found.entries, distances), tied, ignored, found.prefix)


def tied_words(config: BertConfig, head: Table, embedding: str) -> dict[str, str]:
    """What of the output layer of words is something else too: its bias, by two names, and the embeddings."""
    weight = head.get("head.output.weight", f"{head.get('head.output')}.weight")
    bias, tied = head.get("head.output.bias"), {}
    if bias is not None:
        tied[weight.removesuffix("weight") + "bias"] = bias
    if config.tie:
        tied[weight] = f"{embedding}.weight"
    return tied


def read_config(values: Mapping[str, Any], where: str) -> BertConfig:
    """The config of a `config.json`; `where` names it in errors. UserError for what our models do not have."""
    kind = values.get("model_type")
    names = next((one for one in ALL if kind in one.types), None)
    if names is None:
        known = ", ".join(name for one in ALL for name in one.types)
        raise UserError(f"{where} is of a model of the type {kind!r}, but must be one of {known}")
    if values.get("position_embedding_type", "absolute") != "absolute" or values.get("is_decoder"):
        raise UnlikeOurs(f"{where} is of a decoder, or has relative positions, which foveate's BERT has not")
    read, usual = ConfigReader(values, where), _PLAIN[names.body]

    def size(name: str, default: Any) -> Any:
        return read.get(names.field(name), usual.get(name, default))

    activation = read.choice(names.field("hidden_act"), "gelu", ACTIVATIONS)
    offset = {ROBERTA.body: read.get("pad_token_id", 1) + 1, MPNET.body: 2}.get(names.body, 0)
    found = BertConfig(
        vocabulary=size("vocab_size", 30522),
        width=size("hidden_size", 768),
        heads=size("num_attention_heads", 12),
        layers=size("num_hidden_layers", 12),
        feedforward=size("intermediate_size", 3072),
        max_length=size("max_position_embeddings", 512) - offset,
        position_offset=offset or None,
        token_types=None if names in (DISTILBERT, MPNET) else size("type_vocab_size", 2),
        epsilon=1e-12 if names is DISTILBERT else size("layer_norm_eps", 1e-12),
        activation=activation,
        word_activation=names.word_activation or activation,
        dropout=size("hidden_dropout_prob", 0.1),
        attention_dropout=size("attention_probs_dropout_prob", 0.1),
        tie=read.get("tie_word_embeddings", True),
    )
    if names is DISTILBERT:
        read.require(sinusoidal_pos_embds=False)
        found.text_activation = "relu"
    if names is ELECTRA:
        found.text_activation, found.input_width = "gelu", size("embedding_size", 128)
    if names is MPNET:
        read.require(relative_attention_num_buckets=32)  # transformers has 32, whatever is said
        found.distance_buckets = 32
    return found


def write_config(config: BertConfig) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for parts that the public models lack."""
    names = names_of(config)
    if config.head not in WRITTEN:
        raise UserError(f"a BERT with the head {config.head} is not written in the public layout")
    require_defaults(config, BertConfig(vocabulary=1), _AS_IN_THE_PAPER, "transformers' BERT")
    if config.pooling != "first":
        raise UserError("transformers' BERT reads a text's first token: train with --architecture.pooling first")
    if names is not ROBERTA and config.position_offset not in (None, 2):
        raise UserError(f"{names.begins}'s positions begin at row 2, not {config.position_offset}")
    if config.head == "words" and config.word_activation != (names.word_activation or config.activation):
        raise UserError(
            f"transformers' BERT has {config.activation} before its words too, but this one {config.word_activation}"
        )
    text = {"distilbert": "relu", "electra": "gelu"}.get(names.body, "tanh")
    if config.head == "text" and config.text_activation != text:
        raise UserError(f"{names.begins} has {text} before the label of a text, but this one {config.text_activation}")
    values = {
        "vocab_size": config.vocabulary,
        "hidden_size": config.width,
        "num_attention_heads": config.heads,
        "num_hidden_layers": config.layers,
        "intermediate_size": config.feedforward,
        "max_position_embeddings": config.max_length + (config.position_offset or 0),
        "layer_norm_eps": config.epsilon,
        "hidden_act": {ours: name for name, ours in ACTIVATIONS.items()}[config.activation],
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.attention_dropout,
    }
    more = {"embedding_size": config.input_width, "relative_attention_num_buckets": config.distance_buckets}
    return {
        "model_type": names.types[0],
        "architectures": [names.begins + WRITTEN[config.head]],
        **{names.field(name): value for name, value in values.items()},
        **{name: value for name, value in more.items() if value is not None},
        **({"type_vocab_size": config.token_types} if config.token_types else {}),
        **({"pad_token_id": (config.position_offset or 2) - 1} if names is ROBERTA else {}),
        "tie_word_embeddings": config.tie,
    }


_OTHERS = {"XLMRoberta": ROBERTA, "Camembert": ROBERTA}
"""Beginnings of the names of further classes."""


def _architectures() -> dict[str, str]:
    found = {}
    for begins, names in ({one.begins: one for one in ALL} | _OTHERS).items():
        for kind, head in KINDS.items():
            if head in names.heads and not (names is ELECTRA and kind == "ForPreTraining"):
                found[begins + kind] = head
    return found


OTHER_HEADS = (
    *("cls.*", "lm_head.*", "classifier.*", "qa_outputs.*", "*pooler.dense.*", "pre_classifier.*", "vocab_*"),
    *("generator_*", "discriminator_predictions.*", "lm_predictions.*", "mask_predictions.*"),
)
"""What a file may have beside a body that is used alone."""

LAYOUT = Layout(
    family="bert",
    architectures=_architectures(),
    key_map=key_map,
    read_config=read_config,
    write_config=write_config,
    aliases=lambda config: {"gamma": "weight", "beta": "bias"},
    holds=lambda config: config.first_norm,
    heads=OTHER_HEADS,
)
