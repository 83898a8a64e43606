"""timm's names for an MViTv2: `mvitv2_tiny` and `mvitv2_base`."""

from collections.abc import Mapping
from typing import Any

from foveate.interop.keys.timm import Tensors, timm_layout
from foveate.models.vision.mvit import MViTConfig

_BLOCK = {
    "norm": "norm1",
    "self.query": "attn.query",
    "self.key": "attn.key",
    "self.value": "attn.value",
    "self.output": "attn.proj",
    "self.query_pool": "attn.pool_q",
    "self.key_pool": "attn.pool_k",
    "self.value_pool": "attn.pool_v",
    "self.query_pool.norm": "attn.norm_q",
    "self.key_pool.norm": "attn.norm_k",
    "self.value_pool.norm": "attn.norm_v",
    "self.position.rows": "attn.rel_pos_h",
    "self.position.columns": "attn.rel_pos_w",
    "around_feedforward.norm": "norm2",
    "feedforward.inner": "mlp.fc1",
    "feedforward.outer": "mlp.fc2",
}


def timm(config: MViTConfig) -> dict[str, str]:
    """For every MViTv2. timm keeps the projections to queries, keys and values in one layer `attn.qkv`: the names here
    are those after `foveate.interop.keys.vit.split_projections` and before `join_projections`."""
    names = {"patches": "patch_embed.proj", "norm": "norm", "output": "head.fc"}
    for stage, count in enumerate(config.blocks):
        for number in range(count):
            block = f"stages.{stage}.{number}", f"stages.{stage}.blocks.{number}"
            for ours, theirs in _BLOCK.items():
                names[f"{block[0]}.{ours}"] = f"{block[1]}.{theirs}"
            if stage and not number:
                names[f"{block[0]}.project"] = f"{block[1]}.shortcut_proj_attn"
    return names


def read_timm(values: Mapping[str, Any], where: str) -> MViTConfig:
    """The sizes of an `mvitv2_...` without a class token."""
    found = Tensors(values, where)
    width = found.size("patch_embed.proj.weight")
    return MViTConfig(
        classes=1,
        channels=found.size("patch_embed.proj.weight", 1),
        image_size=found.image_size,
        patch=(found.size("patch_embed.proj.weight", 3) + 1) // 2,
        width=width,
        blocks=found.counts("stages.*.blocks.*.norm1.weight"),
        head_width=found.size("stages.0.blocks.0.attn.rel_pos_h", 1),
        expansion=found.size("stages.0.blocks.0.mlp.fc1.weight") // width,
    )


TIMM = timm_layout("mvit", timm, read_timm)
