"""T5, Flan-T5 and mT5 in transformers: `T5ForConditionalGeneration`, `MT5ForConditionalGeneration`."""

from collections.abc import Mapping
from typing import Any

from foveate.errors import UserError
from foveate.interop.key_map import Entry, JoinedTransposed, KeyMap
from foveate.interop.layout import ConfigReader, Layout
from foveate.models.text.t5 import T5Config

_ACTIVATIONS = {
    "relu": ("relu", False),
    "gelu": ("gelu", False),
    "gelu_new": ("gelu-tanh", False),
    "silu": ("silu", False),
    "gated-gelu": ("gelu-tanh", True),
    "gated-gelu_new": ("gelu-tanh", True),
    "gated-relu": ("relu", True),
    "gated-silu": ("silu", True),
}
"""What transformers means by `feed_forward_proj`: the activation, and whether it gates."""

_DEFAULTS = {"t5": ("relu", 32128, 2048, 8, 6), "mt5": ("gated-gelu", 250112, 1024, 6, 8)}
"""What a `config.json` leaves out: the activation, the vocabulary, the inner width, the heads and the layers."""

_ATTENTION = {"query": "q", "key": "k", "value": "v", "output": "o"}


def key_map(config: T5Config) -> KeyMap:
    """The table of tensors."""
    names = {"source_embedding": "encoder.embed_tokens", "target_embedding": "shared", "output": "lm_head"}
    inner = {"gate": "wi_0", "inner": "wi_1"} if config.gated else {"inner": "wi"}
    for side, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        for layer in range(layers):
            ours, theirs = f"{side}.{layer}", f"{side}.block.{layer}.layer"
            kinds = (("self", "SelfAttention"), ("cross", "EncDecAttention"))[: 1 + (side == "decoder")]
            for number, (kind, own) in enumerate(kinds):
                names |= {f"{ours}.{kind}.{one}": f"{theirs}.{number}.{own}.{name}" for one, name in _ATTENTION.items()}
                names[f"{ours}.around_{kind}.norm"] = f"{theirs}.{number}.layer_norm"
            last = f"{theirs}.{len(kinds)}"
            for one, name in (inner | {"outer": "wo"}).items():
                names[f"{ours}.feedforward.{one}"] = f"{last}.DenseReluDense.{name}"
            names[f"{ours}.around_feedforward.norm"] = f"{last}.layer_norm"
        names[f"{side}_norm"] = f"{side}.final_layer_norm"
    entries = [Entry((ours,), public) for ours, public in names.items()]
    for side, own in (("encoder", "source"), ("decoder", "target")):
        public = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        entries.append(Entry((f"{own}_distances.table",), public, JoinedTransposed()))
    tied = ("encoder.embed_tokens", "decoder.embed_tokens", *(["lm_head"] if config.tie else []))
    unused = ("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",)
    return KeyMap(tuple(entries), {f"{name}.weight": "shared.weight" for name in tied}, unused)


def read_config(values: Mapping[str, Any], where: str) -> T5Config:
    """The config of a `config.json`. UserError for what our models do not have."""
    read = ConfigReader(values, where)
    activation, words, feedforward, heads, layers = _DEFAULTS[str(values["model_type"])]
    activation, gated = read.choice("feed_forward_proj", activation, _ACTIVATIONS)
    layers, vocabulary = read.get("num_layers", layers), read.get("vocab_size", words)
    return T5Config(
        src_vocab=vocabulary,
        tgt_vocab=vocabulary,
        width=read.get("d_model", 512),
        heads=read.get("num_heads", heads),
        head_width=read.get("d_kv", 64),
        feedforward=read.get("d_ff", feedforward),
        encoder_layers=layers,
        decoder_layers=read.get("num_decoder_layers", layers),
        activation=activation,
        gated=gated,
        buckets=read.get("relative_attention_num_buckets", 32),
        farthest=read.get("relative_attention_max_distance", 128),
        epsilon=read.get("layer_norm_epsilon", 1e-6),
        dropout=read.get("dropout_rate", 0.1),
        scale_output=values["model_type"] == "t5"
        and read.get("scale_decoder_outputs", read.get("tie_word_embeddings", True)),
    )


def write_config(config: T5Config) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for two vocabularies."""
    if config.src_vocab != config.tgt_vocab:
        raise UserError("transformers' T5 has one vocabulary for source and target: train with --shared")
    known = {ours: name for name, ours in reversed(_ACTIVATIONS.items())}
    return {
        "model_type": "t5",
        "architectures": ["T5ForConditionalGeneration"],
        "vocab_size": config.src_vocab,
        "d_model": config.width,
        "num_heads": config.heads,
        "d_kv": config.head_width,
        "d_ff": config.feedforward,
        "num_layers": config.encoder_layers,
        "num_decoder_layers": config.decoder_layers,
        "feed_forward_proj": known[config.activation, config.gated],
        "relative_attention_num_buckets": config.buckets,
        "relative_attention_max_distance": config.farthest,
        "layer_norm_epsilon": config.epsilon,
        "dropout_rate": config.dropout,
        "tie_word_embeddings": config.scale_output,
        "is_encoder_decoder": True,
    }


LAYOUT = Layout(
    family="t5",
    architectures={
        "T5ForConditionalGeneration": "words",
        "T5WithLMHeadModel": "words",
        "T5Model": "words",
        "MT5ForConditionalGeneration": "words",
        "MT5Model": "words",
    },
    key_map=key_map,
    read_config=read_config,
    write_config=write_config,
)
