"""BERT and RoBERTa in transformers.

A model with the offset of RoBERTa's positions has RoBERTa's names, any other those of BERT.
"""

from collections.abc import Mapping
from typing import Any

from foveate.errors import UserError
from foveate.interop.key_map import KeyMap
from foveate.interop.layout import HEAD_FIELDS, ConfigReader, Layout, require_defaults
from foveate.models.text.bert import BertConfig

_ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu-tanh", "relu": "relu", "silu": "silu"}

_EMBEDDINGS = {
    "embedding": "word_embeddings",
    "token_types": "token_type_embeddings",
    "stack.input_norm": "LayerNorm",
}

_LAYER = {
    "self.query": "attention.self.query",
    "self.key": "attention.self.key",
    "self.value": "attention.self.value",
    "self.output": "attention.output.dense",
    "around_self.norm": "attention.output.LayerNorm",
    "feedforward.inner": "intermediate.dense",
    "feedforward.outer": "output.dense",
    "around_feedforward.norm": "output.LayerNorm",
}

_BERT_HEADS = {
    "words": {
        "head.inner": "cls.predictions.transform.dense",
        "head.norm": "cls.predictions.transform.LayerNorm",
        "head.output.weight": "cls.predictions.decoder.weight",
        "head.output.bias": "cls.predictions.bias",
    },
    "tokens": {"head.output": "classifier"},
    "text": {"head.inner": "bert.pooler.dense", "head.output": "classifier"},
    "pair": {"head.inner": "bert.pooler.dense", "head.output": "cls.seq_relationship"},
    "none": {},
}

_ROBERTA_HEADS = {
    "words": {
        "head.inner": "lm_head.dense",
        "head.norm": "lm_head.layer_norm",
        "head.output.weight": "lm_head.decoder.weight",
        "head.output.bias": "lm_head.bias",
    },
    "tokens": {"head.output": "classifier"},
    "text": {"head.inner": "classifier.dense", "head.output": "classifier.out_proj"},
    "none": {},
}

_CLASSES = {"words": "ForMaskedLM", "text": "ForSequenceClassification", "tokens": "ForTokenClassification"}
"""The ends of the names of transformers' models that are written, by their heads."""

_AS_IN_THE_PAPER = (
    *("positions", "norm", "norm_kind", "position_join", "input_norm", "bias", "gated", "parallel"),
    *(*HEAD_FIELDS, "key_value_heads", "head_width", "layer_scale"),
)
"""Fields that must have their defaults in a model of transformers."""

_OUTPUTS = {"bert": "cls.predictions", "roberta": "lm_head"}
"""The head that predicts words. The bias of its output layer has two names there."""


def key_map(config: BertConfig) -> KeyMap:
    """The table of tensors. UserError for a head that transformers lacks."""
    body, heads = ("roberta", _ROBERTA_HEADS) if config.position_offset is not None else ("bert", _BERT_HEADS)
    kind = "none" if config.head == "vector" else config.head
    if kind not in heads:
        raise UserError(f"RoBERTa has no head '{config.head}' in transformers")
    names = {ours: f"{body}.embeddings.{theirs}" for ours, theirs in _EMBEDDINGS.items()}
    names["stack.positions.positions.table"] = f"{body}.embeddings.position_embeddings.weight"
    for layer in range(config.layers):
        names |= {f"stack.blocks.{layer}.{ours}": f"{body}.encoder.layer.{layer}.{own}" for ours, own in _LAYER.items()}
    output, tied = _OUTPUTS[body], {}
    if kind == "words":
        tied[f"{output}.decoder.bias"] = f"{output}.bias"
        if config.tie:
            tied[f"{output}.decoder.weight"] = f"{body}.embeddings.word_embeddings.weight"
    pooled = any(name.startswith(f"{body}.pooler.") for name in heads[kind].values())
    ignored = ("*embeddings.position_ids", "cls.seq_relationship.*", *(() if pooled else ("*pooler.dense.*",)))
    ignored = tuple(pattern for pattern in ignored if kind != "pair" or not pattern.startswith("cls."))
    return KeyMap.of(names | heads[kind], tied, ignored, f"{body}.")


def read_config(values: Mapping[str, Any], where: str) -> BertConfig:
    """The config of a `config.json`; `where` names it in errors. UserError for what our models do not have."""
    roberta = values.get("model_type") in ("roberta", "xlm-roberta")
    if not roberta and values.get("model_type") != "bert":
        raise UserError(f"{where} is of a model of the type {values.get('model_type')!r}, but must be bert or roberta")
    if values.get("position_embedding_type", "absolute") != "absolute" or values.get("is_decoder"):
        raise UserError(f"{where} is of a decoder, or has relative positions, which foveate's BERT has not")
    read, offset = ConfigReader(values, where), 2 if roberta else 0
    return BertConfig(
        vocabulary=read.get("vocab_size", 50265 if roberta else 30522),
        width=read.get("hidden_size", 768),
        heads=read.get("num_attention_heads", 12),
        layers=read.get("num_hidden_layers", 12),
        feedforward=read.get("intermediate_size", 3072),
        max_length=read.get("max_position_embeddings", 512) - offset,
        position_offset=offset or None,
        token_types=read.get("type_vocab_size", 2),
        epsilon=read.get("layer_norm_eps", 1e-12),
        activation=read.choice("hidden_act", "gelu", _ACTIVATIONS),
        word_activation="gelu" if roberta else read.choice("hidden_act", "gelu", _ACTIVATIONS),
        dropout=read.get("hidden_dropout_prob", 0.1),
        attention_dropout=read.get("attention_probs_dropout_prob", 0.1),
        tie=read.get("tie_word_embeddings", True),
    )


def write_config(config: BertConfig) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for parts that the public models lack."""
    if config.head not in _CLASSES:
        raise UserError(f"a BERT with the head {config.head} is not written in the public layout")
    require_defaults(config, BertConfig(vocabulary=1), _AS_IN_THE_PAPER, "transformers' BERT")
    if config.pooling != "first":
        raise UserError("transformers' BERT reads a text's first token: train with --architecture.pooling first")
    if config.position_offset not in (None, 2):
        raise UserError(f"RoBERTa's positions begin at row 2, not {config.position_offset}")
    roberta = config.position_offset is not None
    if config.head == "words" and config.word_activation != ("gelu" if roberta else config.activation):
        raise UserError(
            f"transformers' BERT has {config.activation} before its words too, but this one {config.word_activation}"
        )
    return {
        "model_type": "roberta" if roberta else "bert",
        "architectures": [("Roberta" if roberta else "Bert") + _CLASSES[config.head]],
        "vocab_size": config.vocabulary,
        "hidden_size": config.width,
        "num_attention_heads": config.heads,
        "num_hidden_layers": config.layers,
        "intermediate_size": config.feedforward,
        "max_position_embeddings": config.max_length + (config.position_offset or 0),
        "type_vocab_size": config.token_types,
        "layer_norm_eps": config.epsilon,
        "hidden_act": {ours: name for name, ours in _ACTIVATIONS.items()}[config.activation],
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.attention_dropout,
        "tie_word_embeddings": config.tie,
    }


_KINDS = {
    "Model": "none",
    "ForMaskedLM": "words",
    "ForPreTraining": "words",
    "ForSequenceClassification": "text",
    "ForTokenClassification": "tokens",
    "ForNextSentencePrediction": "pair",
}
"""What the heads of transformers' classes predict."""

LAYOUT = Layout(
    family="bert",
    architectures={f"{name}{kind}": head for name in ("Bert", "Roberta") for kind, head in _KINDS.items()},
    key_map=key_map,
    read_config=read_config,
    write_config=write_config,
    aliases=lambda config: {"gamma": "weight", "beta": "bias"},
    heads=("cls.*", "lm_head.*", "classifier.*", "qa_outputs.*", "*pooler.dense.*"),
)
