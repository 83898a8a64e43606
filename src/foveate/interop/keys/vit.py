"""Other libraries' names for a vision Transformer: transformers' `ViTForImageClassification`, and timm's
`vit_base_patch16_224`, `deit3_small_patch16_224` and the others."""

import torch
from torch import Tensor

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
