"""The tensors of BERT and RoBERTa under the names of transformers, and back.

A model with the offset of RoBERTa's positions has RoBERTa's names, any other those of BERT.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from foveate.errors import UserError
from foveate.interop.layout import HEAD_FIELDS, ConfigReader, require_defaults
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
        "head.output": "cls.predictions.decoder",
    },
    "tokens": {"head.output": "classifier"},
    "text": {"head.inner": "bert.pooler.dense", "head.output": "classifier"},
    "pair": {"head.inner": "bert.pooler.dense", "head.output": "cls.seq_relationship"},
    "none": {},
}

_ROBERTA_HEADS = {
    "words": {"head.inner": "lm_head.dense", "head.norm": "lm_head.layer_norm", "head.output": "lm_head.decoder"},
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

_HEADS = ("cls.", "lm_head.", "classifier.", "pooler.", "bert.pooler.", "roberta.pooler.")

_COPIES = {"cls.predictions.bias": "cls.predictions.decoder.bias", "lm_head.bias": "lm_head.decoder.bias"}
"""The bias of the output layer has two names there."""

_WORDS, _TIED = "embeddings.word_embeddings.weight", ("cls.predictions.decoder.weight", "lm_head.decoder.weight")
"""The embeddings, and the weights of the output layer, which are the same and need not be in a file."""


def names(config: BertConfig) -> dict[str, str]:
    """Our names of modules and of the table of positions, each with theirs. UserError for a head that they lack."""
    roberta = config.position_offset is not None
    body, heads = ("roberta", _ROBERTA_HEADS) if roberta else ("bert", _BERT_HEADS)
    if config.head not in heads:
        raise UserError(f"RoBERTa has no head '{config.head}' in transformers")
    body = "" if config.head == "none" else f"{body}."
    found = {ours: f"{body}embeddings.{theirs}" for ours, theirs in _EMBEDDINGS.items()}
    found["stack.positions.positions.table"] = f"{body}embeddings.position_embeddings.weight"
    for layer in range(config.layers):
        found |= {
            f"stack.blocks.{layer}.{ours}": f"{body}encoder.layer.{layer}.{theirs}" for ours, theirs in _LAYER.items()
        }
    return found | heads[config.head]


def transformers(config: BertConfig, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A state of ours as that of transformers' model with the same head: BertForMaskedLM, BertModel (none), ..."""
    table = names(config)
    found = {_rename(name, table): value for name, value in state.items()}
    return found | {copy: found[name] for copy, name in _COPIES.items() if name in found}


def without_copies(config: BertConfig, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Returns the tensors of `transformers` without what a file lacks: the output layer's weights and bias, if they are
    tied."""
    copies = {*_TIED, *_COPIES.values()} if config.tie else set()
    return {name: value.clone() for name, value in transformers(config, state).items() if name not in copies}


def foveate(config: BertConfig, state: Mapping[str, Tensor], fresh_head: bool = False) -> dict[str, Tensor]:
    """The inverse of `transformers`: a state of ours from one of theirs, whichever head that has.

    With `fresh_head` only the tensors of the body are taken. Raises UserError for a tensor that is missing or unknown,
    and for an output layer that is not the one that the config ties it to.
    """
    given = _modern_names(state)
    words = _words_of(given)
    if config.head == "words" and not fresh_head and (own := _own_outputs(given, words if config.tie else "")):
        raise UserError(f"the tensor '{own[0]}' is another than the one that it is tied to")
    given |= {name: given[copy] for copy, name in _COPIES.items() if copy in given}
    if words in given and config.tie:
        given = dict.fromkeys(_TIED, given[words]) | given
    prefix, table, found, used = words.removesuffix(_WORDS), names(config), {}, {*_TIED}
    for name in expected(config):
        theirs = _rename(name, table)
        if not name.startswith("head."):
            theirs = prefix + theirs.removeprefix("roberta.").removeprefix("bert.")
        elif fresh_head:
            continue
        if theirs not in given:
            raise UserError(f"the tensor '{theirs}' is missing")
        found[name] = given[theirs]
        used.add(theirs)
    for name in given.keys() - used:
        if not name.endswith("embeddings.position_ids") and not name.startswith(_HEADS):
            raise UserError(f"the tensor '{name}' is unknown")
    return found


def untie(config: BertConfig, state: Mapping[str, Tensor]) -> BertConfig:
    """The config for a state of theirs: without tied embeddings where the output layer has weights of its own."""
    given = _modern_names(state)
    own = [name for name in _own_outputs(given, _words_of(given)) if name in _TIED]
    return replace(config, tie=False) if own and config.head == "words" else config


def _modern_names(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A state of theirs, with today's names of the parts of norms."""
    return {name.replace(".gamma", ".weight").replace(".beta", ".bias"): value for name, value in state.items()}


def _words_of(given: Mapping[str, Tensor]) -> str:
    return next((name for name in given if name.endswith(_WORDS)), _WORDS)


def _own_outputs(given: Mapping[str, Tensor], words: str) -> list[str]:
    """The tensors of the output layer that differ from the ones they are tied to: weights from the embeddings `words`,
    and the two names of the bias."""
    pairs = [*((name, words) for name in _TIED), *_COPIES.items()]
    known = ((name, other) for name, other in pairs if name in given and other in given)
    return [name for name, other in known if not torch.equal(given[name], given[other])]


def read_config(values: Mapping[str, Any], where: str, head: str = "none") -> BertConfig:
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
        head=head,  # type: ignore[arg-type]
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


def expected(config: BertConfig) -> list[str]:
    """The names of all our tensors."""
    found = []
    for module in names(config):
        if module.endswith(".table"):
            found.append(module)
        else:
            found += [f"{module}.{leaf}" for leaf in _leaves(module)]
    return found


def _leaves(module: str) -> tuple[str, ...]:
    return ("weight",) if module in ("embedding", "token_types") else ("weight", "bias")


def _rename(name: str, table: Mapping[str, str]) -> str:
    if name in table:
        return table[name]
    module, _, leaf = name.rpartition(".")
    return f"{table[module]}.{leaf}"
