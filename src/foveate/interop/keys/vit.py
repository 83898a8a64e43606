"""Other libraries' names for a vision Transformer: transformers' `ViTForImageClassification`, and timm's
`vit_base_patch16_224`, `deit3_small_patch16_224` and the others."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from foveate.interop.key_map import KeyMap
from foveate.interop.layout import HEAD_FIELDS, ConfigReader, Layout, require_defaults
from foveate.models.vision.vit import ViTConfig

_TRANSFORMERS = {
    "self.query": "attention.attention.query",
    "self.key": "attention.attention.key",
    "self.value": "attention.attention.value",
    "self.output": "attention.output.dense",
    "feedforward.inner": "intermediate.dense",
    "feedforward.outer": "output.dense",
    "around_self.norm": "layernorm_before",
    "around_feedforward.norm": "layernorm_after",
}

_TIMM = {
    "self.query": "attn.query",
    "self.key": "attn.key",
    "self.value": "attn.value",
    "self.output": "attn.proj",
    "feedforward.inner": "mlp.fc1",
    "feedforward.outer": "mlp.fc2",
    "around_self.norm": "norm1",
    "around_feedforward.norm": "norm2",
}

_TIMM_SCALES = {"around_self.scale": "ls1.gamma", "around_feedforward.scale": "ls2.gamma"}


def transformers(config: ViTConfig) -> dict[str, str]:
    """For models with a class token that has a position, and without layer scale. The names are those in files."""
    names = {
        "class_token": "vit.embeddings.cls_token",
        "positions": "vit.embeddings.position_embeddings",
        "patches": "vit.embeddings.patch_embeddings.projection",
        "stack.norm": "vit.layernorm",
        "output": "classifier",
    }
    for layer in range(config.layers):
        for ours, theirs in _TRANSFORMERS.items():
            names[f"stack.blocks.{layer}.{ours}"] = f"vit.encoder.layer.{layer}.{theirs}"
    return names


def timm(config: ViTConfig) -> dict[str, str]:
    """For models with a class token. timm keeps the projections to queries, keys and values in one layer `attn.qkv`:
    the names here are those after `split_projections` and before `join_projections`."""
    names = {
        "class_token": "cls_token",
        "positions": "pos_embed",
        "patches": "patch_embed.proj",
        "stack.norm": "norm",
        "output": "head",
    }
    for layer in range(config.layers):
        for ours, theirs in (_TIMM if config.layer_scale is None else _TIMM | _TIMM_SCALES).items():
            names[f"stack.blocks.{layer}.{ours}"] = f"blocks.{layer}.{theirs}"
    return names


_PARTS = ("query", "key", "value")


def split_projections(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """timm's state with `attn.query`, `attn.key` and `attn.value` in place of each `attn.qkv`."""
    found = {}
    for name, value in state.items():
        if ".qkv." not in name:
            found[name] = value
            continue
        for part, each in zip(_PARTS, value.chunk(3), strict=True):
            found[name.replace(".qkv.", f".{part}.")] = each
    return found


def join_projections(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """The inverse of `split_projections`."""
    found = {}
    for name, value in state.items():
        if ".query." in name:
            parts = [state[name.replace(".query.", f".{part}.")] for part in _PARTS]
            found[name.replace(".query.", ".qkv.")] = torch.cat(parts)
        elif ".key." not in name and ".value." not in name:
            found[name] = value
    return found


def read_config(values: Mapping[str, Any], where: str) -> ViTConfig:
    """The config of a `config.json`. UserError for what our models do not have."""
    read = ConfigReader(values, where)
    read.require(hidden_act="gelu", qkv_bias=True)
    return ViTConfig(
        classes=1,
        channels=read.get("num_channels", 3),
        image_size=read.get("image_size", 224),
        patch=read.get("patch_size", 16),
        width=read.get("hidden_size", 768),
        heads=read.get("num_attention_heads", 12),
        feedforward=read.get("intermediate_size", 3072),
        layers=read.get("num_hidden_layers", 12),
        epsilon=read.get("layer_norm_eps", 1e-12),
        dropout=read.get("hidden_dropout_prob", 0.0),
        attention_dropout=read.get("attention_probs_dropout_prob", 0.0),
    )


def write_config(config: ViTConfig) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for a model that transformers' ViT is not equal to."""
    plain = ViTConfig(classes=1)
    fields = ("pooling", "positions", "class_position", "layer_scale", "cnn", *HEAD_FIELDS)
    require_defaults(config, plain, fields, "transformers' ViT")
    return {
        "model_type": "vit",
        "architectures": ["ViTForImageClassification"],
        "num_channels": config.channels,
        "image_size": config.image_size,
        "patch_size": config.patch,
        "hidden_size": config.width,
        "num_attention_heads": config.heads,
        "intermediate_size": config.feedforward,
        "num_hidden_layers": config.layers,
        "layer_norm_eps": config.epsilon,
        "hidden_act": "gelu",
        "qkv_bias": True,
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.attention_dropout,
    }


LAYOUT = Layout(
    family="vit",
    architectures={"ViTForImageClassification": "label"},
    key_map=lambda config: KeyMap.of(transformers(config)),
    read_config=read_config,
    write_config=write_config,
    image_processor="ViTImageProcessor",
)
