"""Other libraries' names for a vision Transformer: transformers' `ViTForImageClassification`, and timm's
`vit_base_patch16_224`, `deit3_small_patch16_224` and the others."""

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from foveate.errors import UserError, show_value
from foveate.interop.key_map import KeyMap
from foveate.interop.keys.timm import Tensors, timm_layout
from foveate.interop.layout import ConfigReader, Layout, require_defaults
from foveate.models.vision.vit import WITH_TOKEN, ViTConfig

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

_EMBEDDINGS = {
    "class_token": "cls_token",
    "teacher_token": "distillation_token",
    "registers": "register_tokens",
    "positions": "position_embeddings",
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

_TIMM_PARTS = {
    "class_token": "cls_token",
    "teacher_token": "dist_token",
    "registers": "reg_token",
    "positions": "pos_embed",
    "stack.input_norm": "norm_pre",
    "stack.norm": "norm",
    "pooled_norm": "fc_norm",
    "output": "head",
    "teacher_output": "head_dist",
}

_TIMM_SCALES = {"around_self.scale": "ls1.gamma", "around_feedforward.scale": "ls2.gamma"}


def transformers(config: ViTConfig, body: str = "vit", scales: tuple[str, str] | None = None) -> dict[str, str]:
    """The names in files of a ViT, and of what descends from it: `body` is the model's name there, `scales` are those
    of layer scales."""
    table = dict(_TRANSFORMERS)
    if scales is not None and config.layer_scale is not None:
        table |= dict(zip(("around_self.scale", "around_feedforward.scale"), scales, strict=True))
    names = embedding_names(config, f"{body}.embeddings.")
    for layer in range(config.layers):
        for ours, theirs in table.items():
            names[f"stack.blocks.{layer}.{ours}"] = f"{body}.encoder.layer.{layer}.{theirs}"
    return names | {"stack.norm": f"{body}.layernorm"} | classifier_names(config)


def classifier_names(config: ViTConfig) -> dict[str, str]:
    """The name of the classifier, if there is one."""
    return {"output": "classifier"} if config.head == "label" else {}


def embedding_names(config: ViTConfig, prefix: str) -> dict[str, str]:
    """The names of what becomes the first layer's input."""
    found = {ours: f"{prefix}{_EMBEDDINGS[ours]}" for ours, has in _there(config).items() if has}
    return {**found, "patches": f"{prefix}patch_embeddings.projection"}


def _there(config: ViTConfig) -> dict[str, bool]:
    """Which tokens a model has, and whether positions are a table."""
    return {
        "class_token": config.pooling in WITH_TOKEN,
        "teacher_token": config.distillation != "none",
        "registers": config.registers is not None,
        "positions": config.positions == "learned",
    }


def timm(config: ViTConfig) -> dict[str, str]:
    """For every ViT without attention pooling. timm keeps the projections to queries, keys and values in one layer
    `attn.qkv`: the names here are those after `split_projections` and before `join_projections`."""
    there = {
        **_there(config),
        "stack.input_norm": config.input_norm,
        "stack.norm": not config.pooled_norm,
        "pooled_norm": config.pooled_norm,
        "output": config.head == "label",
        "teacher_output": config.distillation == "classifier",
    }
    names = {ours: _TIMM_PARTS[ours] for ours, has in there.items() if has} | {"patches": "patch_embed.proj"}
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


SIZES = {
    "channels": ("num_channels", 3),
    "image_size": ("image_size", 224),
    "patch": ("patch_size", 16),
    "width": ("hidden_size", 768),
    "heads": ("num_attention_heads", 12),
    "feedforward": ("intermediate_size", 3072),
    "layers": ("num_hidden_layers", 12),
    "epsilon": ("layer_norm_eps", 1e-12),
    "dropout": ("hidden_dropout_prob", 0.0),
    "attention_dropout": ("attention_probs_dropout_prob", 0.0),
}
"""Fields of our config, with the names and the defaults of transformers' ViT and of what descends from it."""

ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "quick_gelu": "gelu-sigmoid",
    "relu": "relu",
    "silu": "silu",
}
"""transformers' names of activation functions, with ours."""

WITHOUT_HEAD = ("classifier.*", "pooler.*", "*.pooler.*", "*mask_token", "decoder.*")
"""Tensors beside a body, of its heads."""


def read_sizes(values: Mapping[str, Any], where: str, **own: Any) -> ViTConfig:
    """The config of a `config.json` of a ViT, with what its descendant has of its `own`."""
    read = ConfigReader(values, where)
    found = {ours: read.get(public, usual) for ours, (public, usual) in SIZES.items() if ours not in own}
    activation = read.choice("hidden_act", "gelu", ACTIVATIONS)
    return ViTConfig(**{"classes": 1, "activation": activation, **found, **own})


def write_sizes(config: ViTConfig, model_type: str, kind: str, own: Collection[str] = ()) -> dict[str, Any]:
    """The inverse of `read_sizes`. UserError where fields beside these and the `own` ones of the descendant are other
    than those of a ViT; `kind` is the class without its head."""
    free = {"classes", "head", "activation", "depth_dropout", *SIZES, *own}
    others = [part.name for part in fields(ViTConfig) if part.name not in free]
    require_defaults(config, ViTConfig(classes=1), others, f"transformers' {kind}")
    public = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
    return {
        "model_type": model_type,
        "architectures": [f"{kind}Model" if config.head == "none" else f"{kind}ForImageClassification"],
        **{public: getattr(config, ours) for ours, (public, _) in SIZES.items()},
        "hidden_act": public[config.activation],
    }


def read_config(values: Mapping[str, Any], where: str) -> ViTConfig:
    """The config of a `config.json`. UserError for what our models do not have."""
    biased = ConfigReader(values, where).get("qkv_bias", True)
    return read_sizes(values, where, key_bias=biased, query_value_bias=biased)


def write_config(config: ViTConfig) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for a model that transformers' ViT is not equal to."""
    if config.key_bias != config.query_value_bias:
        raise UserError("transformers' ViT has biases of queries, keys and values, or none of these")
    return {**write_sizes(config, "vit", "ViT", ("key_bias", "query_value_bias")), "qkv_bias": config.key_bias}


LAYOUT = Layout(
    family="vit",
    architectures={"ViTForImageClassification": "label", "ViTModel": "none"},
    key_map=lambda config: KeyMap.of(transformers(config), prefix="vit."),
    read_config=read_config,
    write_config=write_config,
    heads=WITHOUT_HEAD,
    image_processor="ViTImageProcessor",
)


HEADS = {192: 3, 320: 5, 384: 6, 512: 8, 768: 12, 1024: 16, 1152: 16, 1280: 16, 1408: 16, 1664: 16}
"""Attention heads of timm's ViTs by their width, where a folder does not say."""


def read_timm(values: Mapping[str, Any], where: str) -> ViTConfig:
    """The sizes of a `vit_...`, `deit_...` or `deit3_...`."""
    found = Tensors(values, where)
    width, patch = found.size("patch_embed.proj.weight"), found.size("patch_embed.proj.weight", 3)
    inner, tokens = found.size("blocks.0.mlp.fc1.weight"), sum(name in found for name in ("cls_token", "dist_token"))
    before = found.size("pos_embed", 1) - (found.image_size // patch) ** 2
    if found.size("blocks.0.mlp.fc2.weight", 1) != inner or before not in (0, tokens):
        raise found.refuse("gated layers" if before in (0, tokens) else f"{before} positions before the patches")
    pool = values.get("global_pool") or found.arguments.get("global_pool") or "token"
    if pool not in ("token", "avg"):
        raise found.refuse(f"the global_pool {show_value(pool)}")
    distilled = "none" if "dist_token" not in found else "classifier" if "head_dist.weight" in found else "token"
    return ViTConfig(
        classes=1,
        channels=found.size("patch_embed.proj.weight", 1),
        image_size=found.image_size,
        patch=patch,
        width=width,
        heads=found.argument("num_heads", HEADS.get(width)),
        feedforward=inner,
        layers=found.count("blocks.*.norm1.weight"),
        pooling="token" if pool == "token" else "patches" if "cls_token" in found else "mean",
        pooled_norm="fc_norm.weight" in found,
        distillation=distilled,  # type: ignore[arg-type]
        registers=found.size("reg_token", 1) if "reg_token" in found else None,
        class_position=before > 0,
        input_norm="norm_pre.weight" in found,
        patch_bias="patch_embed.proj.bias" in found,
        activation="gelu-sigmoid" if "quickgelu" in found.name else "gelu",
        layer_scale=1e-5 if "blocks.0.ls1.gamma" in found else None,
        epsilon=1e-5 if "_clip_" in found.name else 1e-6,
    )


TIMM = timm_layout("vit", timm, read_timm, body=True)
