"""Other libraries' names for a Swin Transformer: transformers' `SwinForImageClassification`, and timm's
`swin_tiny_patch4_window7_224` and the others."""

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
