"""transformers' names for a BEiT: `BeitForImageClassification`."""

from collections.abc import Mapping
from typing import Any

from foveate.errors import UserError
from foveate.interop.key_map import KeyMap
from foveate.interop.keys import vit
from foveate.interop.layout import ConfigReader, Layout, UnlikeOurs
from foveate.models.vision.vit import ViTConfig

OWN = ("pooling", "pooled_norm", "positions", "layer_scale", "key_bias")


def key_map(config: ViTConfig) -> KeyMap:
    """The table of tensors."""
    names = vit.transformers(config, "beit", ("lambda_1", "lambda_2"))
    for layer in range(config.layers if config.positions == "relative" else 0):
        table = "attention.attention.relative_position_bias.relative_position_bias_table"
        names[f"distances.{layer}.table"] = f"beit.encoder.layer.{layer}.{table}"
    if config.pooled_norm:
        names["pooled_norm"] = "beit.pooler.layernorm"
        names.pop("stack.norm")
    return KeyMap.of(names, ignored=("*.relative_position_index", "*mask_token"), prefix="beit.")


def read_config(values: Mapping[str, Any], where: str) -> ViTConfig:
    """The config of a `config.json`. UserError for what our models do not have."""
    read = ConfigReader(values, where)
    read.require(use_shared_relative_position_bias=False)
    learned, relative = (
        read.get(name, False) for name in ("use_absolute_position_embeddings", "use_relative_position_bias")
    )
    if learned and relative:
        raise UnlikeOurs(f"{where} has positions of both kinds, absolute and relative; foveate's models have one")
    mean = read.get("use_mean_pooling", True)
    return vit.read_sizes(
        values,
        where,
        pooling="patches" if mean else "token",
        pooled_norm=mean,
        positions="relative" if relative else "learned" if learned else "none",
        layer_scale=read.get("layer_scale_init_value", 0.1) or None,
        key_bias=False,
        depth_dropout=read.get("drop_path_rate", 0.1),
    )


def write_config(config: ViTConfig) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for a model that transformers' BEiT is not equal to."""
    mean = config.pooling == "patches"
    if config.key_bias or config.pooling not in ("patches", "token") or config.pooled_norm != mean:
        raise UserError("transformers' BEiT has no bias of keys, and normalizes the mean that its classifier reads")
    if config.positions not in ("relative", "learned", "none") or not config.class_position:
        raise UserError("transformers' BEiT has learned or relative positions, for its class token too")
    return {
        **vit.write_sizes(config, "beit", "Beit", OWN),
        "use_mean_pooling": mean,
        "use_relative_position_bias": config.positions == "relative",
        "use_shared_relative_position_bias": False,
        "use_absolute_position_embeddings": config.positions == "learned",
        "layer_scale_init_value": config.layer_scale or 0.0,
        "drop_path_rate": config.depth_dropout,
    }


LAYOUT = Layout(
    family="vit",
    architectures={"BeitForImageClassification": "label", "BeitModel": "none"},
    key_map=key_map,
    read_config=read_config,
    write_config=write_config,
    heads=("classifier.*", "lm_head.*", "layernorm.*"),
    image_processor="BeitImageProcessor",
)
