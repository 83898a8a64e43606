"""transformers' names for a DINOv3: `DINOv3ViTModel`, which has no classifier."""

from collections.abc import Mapping
from typing import Any

from foveate.errors import UserError
from foveate.interop.key_map import KeyMap
from foveate.interop.keys import vit
from foveate.interop.layout import ConfigReader, Layout
from foveate.models.vision.vit import ViTConfig

OWN = ("positions", "rotary_base", "registers", "layer_scale", "gated", "key_bias")

_BLOCK = {
    "self.query": "attention.q_proj",
    "self.key": "attention.k_proj",
    "self.value": "attention.v_proj",
    "self.output": "attention.o_proj",
    "around_self.norm": "norm1",
    "around_self.scale": "layer_scale1.lambda1",
    "around_feedforward.norm": "norm2",
    "around_feedforward.scale": "layer_scale2.lambda1",
    "feedforward.inner": "mlp.up_proj",
    "feedforward.outer": "mlp.down_proj",
    "feedforward.gate": "mlp.gate_proj",
}


def key_map(config: ViTConfig) -> KeyMap:
    """The table of tensors."""
    names = vit.embedding_names(config, "embeddings.")
    names |= {"patches": "embeddings.patch_embeddings", "stack.norm": "norm"}
    table = _BLOCK if config.gated else {ours: theirs for ours, theirs in _BLOCK.items() if "gate" not in ours}
    for layer in range(config.layers):
        names |= {f"stack.blocks.{layer}.{ours}": f"layer.{layer}.{theirs}" for ours, theirs in table.items()}
    return KeyMap.of(names, ignored=("*mask_token", "*inv_freq"))


def read_config(values: Mapping[str, Any], where: str) -> ViTConfig:
    """The config of a `config.json`. UserError for what our models do not have."""
    read = ConfigReader(values, where)
    read.require(query_bias=True, value_bias=True, proj_bias=True, mlp_bias=True)
    gated, usual = read.get("use_gated_mlp", False), {"width": 384, "heads": 6, "feedforward": 1536}
    sizes = {name: read.get(vit.SIZES[name][0], size) for name, size in usual.items()}
    return vit.read_sizes(
        values,
        where,
        **sizes,
        positions="rotary",
        rotary_base=read.get("rope_theta", 100.0),
        registers=read.get("num_register_tokens", 0) or None,
        epsilon=read.get("layer_norm_eps", 1e-5),
        layer_scale=read.get("layerscale_value", 1.0),
        gated=gated,
        key_bias=read.get("key_bias", False),
        dropout=0.0,
        attention_dropout=read.get("attention_dropout", 0.0),
        depth_dropout=read.get("drop_path_rate", 0.0),
    )


def write_config(config: ViTConfig) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for a model that transformers' DINOv3 is not equal to."""
    if config.head != "none" or config.positions != "rotary" or config.layer_scale is None:
        raise UserError("transformers' DINOv3 has rotary positions and no classifier")
    found = vit.write_sizes(config, "dinov3_vit", "DINOv3ViT", OWN)
    return {
        **{name: value for name, value in found.items() if "dropout" not in name},
        "rope_theta": config.rotary_base,
        "num_register_tokens": config.registers or 0,
        "layerscale_value": config.layer_scale,
        "use_gated_mlp": config.gated,
        "key_bias": config.key_bias,
        "attention_dropout": config.attention_dropout,
        "drop_path_rate": config.depth_dropout,
    }


LAYOUT = Layout(
    family="vit",
    architectures={"DINOv3ViTModel": "none"},
    key_map=key_map,
    read_config=read_config,
    write_config=write_config,
    image_processor="DINOv3ViTImageProcessor",
)
