"""The audio spectrogram Transformer in transformers: `ASTForAudioClassification`."""

from collections.abc import Mapping
from typing import Any

from foveate.errors import UserError
from foveate.interop.key_map import Entry, KeyMap
from foveate.interop.layout import ConfigReader, Layout, require_defaults
from foveate.models.speech.audio_transformer import AudioTransformerConfig

_BODY = "audio_spectrogram_transformer."

_BLOCK = {
    "self.query": "attention.q_proj",
    "self.key": "attention.k_proj",
    "self.value": "attention.v_proj",
    "self.output": "attention.o_proj",
    "feedforward.inner": "mlp.fc1",
    "feedforward.outer": "mlp.fc2",
    "around_self.norm": "layernorm_before",
    "around_feedforward.norm": "layernorm_after",
}

_OLDER = {
    "attention.attention.query": "attention.q_proj",
    "attention.attention.key": "attention.k_proj",
    "attention.attention.value": "attention.v_proj",
    "attention.output.dense": "attention.o_proj",
    "intermediate.dense": "mlp.fc1",
    "output.dense": "mlp.fc2",
    "layernorm_before": "layernorm_before",
    "layernorm_after": "layernorm_after",
}
"""The names in files of transformers 4, below `encoder.layer`."""


def key_map(config: AudioTransformerConfig) -> KeyMap:
    """The table of tensors; the two tokens are tensors of their own there."""
    names = {
        "tokens": f"{_BODY}embeddings.tokens",
        "positions": f"{_BODY}embeddings.position_embeddings",
        "patches": f"{_BODY}embeddings.patch_embeddings.projection",
        "norm": f"{_BODY}layernorm",
        "output_norm": "classifier.layernorm",
        "output": "classifier.dense",
    }
    for layer in range(config.layers):
        names |= {f"blocks.{layer}.{ours}": f"{_BODY}layers.{layer}.{name}" for ours, name in _BLOCK.items()}
    tokens = tuple(f"{_BODY}embeddings.{name}_token" for name in ("cls", "distillation"))
    entries = tuple(Entry((ours,), public) for ours, public in names.items())
    return KeyMap(entries, prefix=_BODY, divided={names["tokens"]: tokens})


def aliases(config: AudioTransformerConfig) -> dict[str, str]:
    """The names of older files."""
    return {
        f"{_BODY}encoder.layer.{layer}.{older}": f"{_BODY}layers.{layer}.{name}"
        for layer in range(config.layers)
        for older, name in _OLDER.items()
    }


def read_config(values: Mapping[str, Any], where: str) -> AudioTransformerConfig:
    """The config of a `config.json`. UserError for what our models do not have."""
    read = ConfigReader(values, where)
    read.require(hidden_act="gelu", qkv_bias=True)
    strides = read.get("frequency_stride", 10), read.get("time_stride", 10)
    if strides[0] != strides[1]:
        raise UserError(f"{where} has the strides {strides[0]} and {strides[1]}; foveate's models have one for both")
    return AudioTransformerConfig(
        classes=2,
        bands=read.get("num_mel_bins", 128),
        frames=read.get("max_length", 1024),
        patch=read.get("patch_size", 16),
        stride=strides[0],
        width=read.get("hidden_size", 768),
        heads=read.get("num_attention_heads", 12),
        feedforward=read.get("intermediate_size", 3072),
        layers=read.get("num_hidden_layers", 12),
        epsilon=read.get("layer_norm_eps", 1e-12),
        dropout=read.get("hidden_dropout_prob", 0.0),
    )


def write_config(config: AudioTransformerConfig) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for what transformers does not have."""
    plain = AudioTransformerConfig(2, config.bands, config.frames)
    require_defaults(config, plain, ("window",), "transformers' AST")
    return {
        "model_type": "audio-spectrogram-transformer",
        "architectures": ["ASTForAudioClassification"],
        "num_mel_bins": config.bands,
        "max_length": config.frames,
        "patch_size": config.patch,
        "frequency_stride": config.stride,
        "time_stride": config.stride,
        "hidden_size": config.width,
        "num_attention_heads": config.heads,
        "intermediate_size": config.feedforward,
        "num_hidden_layers": config.layers,
        "layer_norm_eps": config.epsilon,
        "hidden_dropout_prob": config.dropout,
    }


LAYOUT = Layout(
    family="audio-transformer",
    architectures={"ASTForAudioClassification": "label"},
    key_map=key_map,
    read_config=read_config,
    write_config=write_config,
    aliases=aliases,
    heads=("classifier.*",),
    feature_extractor="ASTFeatureExtractor",
)
