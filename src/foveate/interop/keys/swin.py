"""Other libraries' names for a Swin Transformer: transformers' `SwinForImageClassification`, and timm's
`swin_tiny_patch4_window7_224` and the others."""

from collections.abc import Mapping
from typing import Any

from foveate.errors import UserError, show_value
from foveate.interop.key_map import KeyMap
from foveate.interop.layout import ConfigReader, Layout
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
    names = {
        "patches": "swin.embeddings.patch_embeddings.projection",
        "patch_norm": "swin.embeddings.norm",
        "norm": "swin.layernorm",
        "output": "classifier",
    }
    return names | _parts(config, "swin.encoder.layers", _TRANSFORMERS, 0)


def timm(config: SwinConfig) -> dict[str, str]:
    """For every Swin. timm keeps the projections to queries, keys and values in one layer `attn.qkv`: the names here
    are those after `foveate.interop.keys.vit.split_projections` and before `join_projections`."""
    names = {"patches": "patch_embed.proj", "patch_norm": "patch_embed.norm", "norm": "norm", "output": "head.fc"}
    return names | _parts(config, "layers", _TIMM, 1)


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
        raise UserError(f"{where} has the num_heads {show_value(list(heads))}; foveate's heads have one width")
    if len(heads) != len(blocks):
        raise UserError(f"{where} has {len(blocks)} depths, but {len(heads)} num_heads")
    expansion = read.get("mlp_ratio", 4.0)
    if expansion != int(expansion):
        raise UserError(f"{where} has the mlp_ratio {expansion}; foveate's is a whole number")
    return SwinConfig(
        classes=1,
        channels=read.get("num_channels", 3),
        patch=read.get("patch_size", 4),
        width=width,
        blocks=blocks,
        head_width=head_width,
        window=read.get("window_size", 7),
        expansion=int(expansion),
        dropout=read.get("hidden_dropout_prob", 0.0),
        attention_dropout=read.get("attention_probs_dropout_prob", 0.0),
        depth_dropout=read.get("drop_path_rate", 0.1),
    )


def write_config(config: SwinConfig) -> dict[str, Any]:
    """The inverse of `read_config`."""
    return {
        "model_type": "swin",
        "architectures": ["SwinForImageClassification"],
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
    return KeyMap(table.entries, ignored=("*.relative_position_index",))


LAYOUT = Layout(
    family="swin",
    architectures={"SwinForImageClassification": "label"},
    key_map=key_map,
    read_config=read_config,
    write_config=write_config,
    image_processor="ViTImageProcessor",
)
