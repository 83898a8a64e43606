"""Other libraries' names for a Swin Transformer: transformers' `SwinForImageClassification`, and timm's
`swin_tiny_patch4_window7_224` and the others."""

import re
from collections.abc import Mapping
from typing import Any

from foveate.errors import UserError, show_value
from foveate.interop.key_map import KeyMap
from foveate.interop.keys.timm import Tensors, timm_layout
from foveate.interop.layout import ConfigReader, Layout, UnlikeOurs
from foveate.models.vision.swin import SwinConfig

_TRANSFORMERS = {
    "self.attention.query": "attention.self.query",
    "self.attention.key": "attention.self.key",
    "self.attention.value": "attention.self.value",
    "self.attention.output": "attention.output.dense",
    "self.position.table": "attention.self.relative_position_bias_table",
    "feedforward.inner": "intermediate.dense",
    "feedforward.outer": "output.dense",
    "around_self.norm": "layernorm_before",
    "around_feedforward.norm": "layernorm_after",
}

_SECOND = {
    "self.attention.score.log_factor": "attention.self.logit_scale",
    "self.position.inner": "attention.self.continuous_position_bias_mlp.0",
    "self.position.outer": "attention.self.continuous_position_bias_mlp.2",
}
"""What Swin V2 has in place of a table of positions."""

_TIMM_SECOND = {
    "self.attention.score.log_factor": "attn.logit_scale",
    "self.position.inner": "attn.cpb_mlp.0",
    "self.position.outer": "attn.cpb_mlp.2",
}

_TIMM = {
    "self.attention.query": "attn.query",
    "self.attention.key": "attn.key",
    "self.attention.value": "attn.value",
    "self.attention.output": "attn.proj",
    "self.position.table": "attn.relative_position_bias_table",
    "feedforward.inner": "mlp.fc1",
    "feedforward.outer": "mlp.fc2",
    "around_self.norm": "norm1",
    "around_feedforward.norm": "norm2",
}


def transformers(config: SwinConfig) -> dict[str, str]:
    """For every Swin. The names are those in files."""
    body = "swin" if config.version == "v1" else "swinv2"
    names = {
        "patches": f"{body}.embeddings.patch_embeddings.projection",
        "patch_norm": f"{body}.embeddings.norm",
        **({"norm": f"{body}.layernorm"} if config.last_norm else {}),
        "output": "classifier",
    }
    return names | _parts(config, f"{body}.encoder.layers", _of_version(config, _TRANSFORMERS, _SECOND), 0)


def _of_version(config: SwinConfig, first: dict[str, str], second: dict[str, str]) -> dict[str, str]:
    """The parts of a block."""
    if config.version == "v1":
        return first
    return {ours: theirs for ours, theirs in first.items() if not ours.endswith("table")} | second


def timm(config: SwinConfig) -> dict[str, str]:
    """For every Swin. timm keeps the projections to queries, keys and values in one layer `attn.qkv`: the names here
    are those after `foveate.interop.keys.vit.split_projections` and before `join_projections`."""
    names = {"patches": "patch_embed.proj", "patch_norm": "patch_embed.norm", "norm": "norm", "output": "head.fc"}
    return names | _parts(config, "layers", _of_version(config, _TIMM, _TIMM_SECOND), 1)


def _parts(config: SwinConfig, stages: str, of_block: dict[str, str], first: int) -> dict[str, str]:
    """The names of blocks and mergers; `first` is the number of the stage that has the first merger."""
    names = {}
    for stage, count in enumerate(config.blocks):
        for number in range(count):
            for ours, theirs in of_block.items():
                names[f"stages.{stage}.{number}.{ours}"] = f"{stages}.{stage}.blocks.{number}.{theirs}"
        if stage:
            for part in ("norm", "reduction"):
                names[f"mergers.{stage - 1}.{part}"] = f"{stages}.{stage - 1 + first}.downsample.{part}"
    return names


def read_config(values: Mapping[str, Any], where: str) -> SwinConfig:
    """The config of a `config.json`. UserError for what our models do not have."""
    read = ConfigReader(values, where)
    read.require(hidden_act="gelu", qkv_bias=True, use_absolute_embeddings=False, layer_norm_eps=1e-5)
    width, blocks = read.get("embed_dim", 96), read.numbers("depths", (2, 2, 6, 2))
    heads = read.numbers("num_heads", (3, 6, 12, 24))
    head_width = width // heads[0] if heads and heads[0] else 0
    if not head_width or any(count * head_width != width << stage for stage, count in enumerate(heads)):
        raise UnlikeOurs(f"{where} has the num_heads {show_value(list(heads))}; foveate's heads have one width")
    if len(heads) != len(blocks):
        raise UserError(f"{where} has {len(blocks)} depths, but {len(heads)} num_heads")
    expansion = read.get("mlp_ratio", 4.0)
    if expansion != int(expansion):
        raise UnlikeOurs(f"{where} has the mlp_ratio {expansion}; foveate's is a whole number")
    second = values["model_type"] == "swinv2"
    trained = values.get("pretrained_window_sizes") if second else None
    return SwinConfig(
        classes=1,
        channels=read.get("num_channels", 3),
        patch=read.get("patch_size", 4),
        width=width,
        blocks=blocks,
        version="v2" if second else "v1",
        trained_windows=read.numbers("pretrained_window_sizes", ()) if trained and any(trained) else None,
        head_width=head_width,
        window=read.get("window_size", 7),
        expansion=int(expansion),
        dropout=read.get("hidden_dropout_prob", 0.0),
        attention_dropout=read.get("attention_probs_dropout_prob", 0.0),
        depth_dropout=read.get("drop_path_rate", 0.1),
    )


def write_config(config: SwinConfig) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for a Swin without its last norm."""
    if not config.last_norm:
        raise UserError("transformers' Swin normalizes its last feature map")
    second = config.version == "v2"
    return {
        "model_type": "swinv2" if second else "swin",
        "architectures": ["Swinv2ForImageClassification" if second else "SwinForImageClassification"],
        **({"pretrained_window_sizes": list(config.trained_windows)} if config.trained_windows else {}),
        "num_channels": config.channels,
        "patch_size": config.patch,
        "embed_dim": config.width,
        "depths": list(config.blocks),
        "num_heads": [(config.width << stage) // config.head_width for stage in range(len(config.blocks))],
        "window_size": config.window,
        "mlp_ratio": float(config.expansion),
        "qkv_bias": True,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-5,
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.attention_dropout,
        "drop_path_rate": config.depth_dropout,
    }


def key_map(config: SwinConfig) -> KeyMap:
    """The table of tensors; files may also have places in the tables of positions, which follow from the window."""
    table = KeyMap.of(transformers(config))
    return KeyMap(table.entries, ignored=("*.relative_position_index", "*.relative_coords_table"))


LAYOUT = Layout(
    family="swin",
    architectures={"SwinForImageClassification": "label", "Swinv2ForImageClassification": "label"},
    key_map=key_map,
    read_config=read_config,
    write_config=write_config,
    image_processor="ViTImageProcessor",
)


def read_timm(values: Mapping[str, Any], where: str) -> SwinConfig:
    """The sizes of a `swin_...` or `swinv2_...`."""
    found = Tensors(values, where)
    width, first = found.size("patch_embed.proj.weight"), "layers.0.blocks.0."
    second = f"{first}attn.logit_scale" in found
    named = re.search(r"window(\d+)(?:to(\d+))?", found.name)
    if second:
        heads = found.size(f"{first}attn.logit_scale")
        window = found.argument("window_size", int(named[2] or named[1]) if named else None)
    else:
        table = f"{first}attn.relative_position_bias_table"
        heads, window = found.size(table, 1), (int(found.size(table) ** 0.5) + 1) // 2
    blocks = found.counts("layers.*.blocks.*.norm1.weight")
    return SwinConfig(
        classes=1,
        channels=found.size("patch_embed.proj.weight", 1),
        patch=found.size("patch_embed.proj.weight", 3),
        width=width,
        blocks=blocks,
        version="v2" if second else "v1",
        trained_windows=_trained_windows(found, named, len(blocks)) if second else None,
        head_width=width // heads,
        window=window,
        expansion=found.size(f"{first}mlp.fc1.weight") // width,
    )


def _trained_windows(found: Tensors, named: re.Match[str] | None, stages: int) -> tuple[int, ...] | None:
    """The windows of a model that was trained with others before: all stages had these, the last one half of them."""
    given = found.arguments.get("pretrained_window_sizes")
    if given is not None:
        return tuple(map(int, given)) if any(given) else None
    if named is None or named[2] is None:
        return None
    return (*[int(named[1])] * (stages - 1), int(named[1]) // 2)


TIMM = timm_layout("swin", timm, read_timm)
