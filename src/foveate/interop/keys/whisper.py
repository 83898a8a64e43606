"""Whisper in transformers: `WhisperForConditionalGeneration`."""

from collections.abc import Mapping
from typing import Any

from foveate.errors import UserError
from foveate.interop.key_map import Entry, KeyMap
from foveate.interop.layout import ConfigReader, Layout
from foveate.models.speech.whisper import WhisperConfig

_ATTENTION = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}

_BLOCK = {
    **{f"self.{ours}": f"self_attn.{theirs}" for ours, theirs in _ATTENTION.items()},
    "around_self.norm": "self_attn_layer_norm",
    "feedforward.inner": "fc1",
    "feedforward.outer": "fc2",
    "around_feedforward.norm": "final_layer_norm",
}

_CROSS = {
    **{f"cross.{ours}": f"encoder_attn.{theirs}" for ours, theirs in _ATTENTION.items()},
    "around_cross.norm": "encoder_attn_layer_norm",
}

_OUTSIDE = {
    "first": "model.encoder.conv1",
    "second": "model.encoder.conv2",
    "source_positions": "model.encoder.embed_positions.weight",
    "encoder_norm": "model.encoder.layer_norm",
    "embedding": "model.decoder.embed_tokens",
    "positions.positions.table": "model.decoder.embed_positions.weight",
    "decoder_norm": "model.decoder.layer_norm",
    "output": "proj_out",
}


def key_map(config: WhisperConfig) -> KeyMap:
    """The table of tensors. UserError for a model with an output layer for CTC, which the public ones lack."""
    if config.ctc:
        raise UserError(
            "a Whisper with an output layer for CTC has no public layout: train it with --architecture.no-ctc"
        )
    names = dict(_OUTSIDE)
    for side, layers, parts in (
        ("encoder", config.encoder_layers, _BLOCK),
        ("decoder", config.decoder_layers, _BLOCK | _CROSS),
    ):
        for layer in range(layers):
            names |= {f"{side}.{layer}.{ours}": f"model.{side}.layers.{layer}.{name}" for ours, name in parts.items()}
    entries = tuple(Entry((ours,), public) for ours, public in names.items())
    return KeyMap(entries, {"proj_out.weight": "model.decoder.embed_tokens.weight"}, (), "model.")


def read_config(values: Mapping[str, Any], where: str) -> WhisperConfig:
    """The config of a `config.json`. UserError for what our models do not have."""
    read = ConfigReader(values, where)
    read.require(scale_embedding=False, activation_function="gelu")
    width, heads = read.get("d_model", 384), read.get("encoder_attention_heads", 6)
    feedforward = read.get("encoder_ffn_dim", 4 * width)
    if (heads, feedforward) != (read.get("decoder_attention_heads", heads), read.get("decoder_ffn_dim", feedforward)):
        raise UserError(f"{where} has an encoder of other sizes than its decoder, which foveate's models cannot have")
    return WhisperConfig(
        bands=read.get("num_mel_bins", 80),
        vocabulary=read.get("vocab_size", 51865),
        width=width,
        heads=heads,
        feedforward=feedforward,
        encoder_layers=read.get("encoder_layers", 4),
        decoder_layers=read.get("decoder_layers", 4),
        max_source=read.get("max_source_positions", 1500),
        max_length=read.get("max_target_positions", 448),
        windows=True,
        dropout=read.get("dropout", 0.0),
    )


def write_config(config: WhisperConfig) -> dict[str, Any]:
    """The inverse of `read_config`."""
    sides = {
        f"{side}_{name}": value
        for side, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers))
        for name, value in {
            "layers": layers,
            "attention_heads": config.heads,
            "ffn_dim": config.feedforward,
        }.items()
    }
    return {
        "model_type": "whisper",
        "architectures": ["WhisperForConditionalGeneration"],
        "num_mel_bins": config.bands,
        "vocab_size": config.vocabulary,
        "d_model": config.width,
        **sides,
        "max_source_positions": config.max_source,
        "max_target_positions": config.max_length,
        "dropout": config.dropout,
    }


LAYOUT = Layout(
    family="whisper",
    architectures={"WhisperForConditionalGeneration": "words"},
    key_map=key_map,
    read_config=read_config,
    write_config=write_config,
    feature_extractor="WhisperFeatureExtractor",
)
