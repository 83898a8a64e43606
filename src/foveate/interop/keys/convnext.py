"""Other libraries' names for a ConvNeXt: transformers' `ConvNextForImageClassification`, and timm's `convnext_tiny` and
the others."""

from collections.abc import Mapping
from typing import Any

from foveate.interop.key_map import Entry, KeyMap, Reshaped, Same
from foveate.interop.keys.timm import Tensors, timm_layout
from foveate.interop.layout import ConfigReader, Layout
from foveate.models.vision.convnext import ConvNeXtConfig

_TRANSFORMERS = {
    "convolution": "dwconv",
    "norm": "layernorm",
    "inner": "pwconv1",
    "outer": "pwconv2",
    "scale": "layer_scale_parameter",
}

_BRANCH = {"convolution": "conv_dw", "norm": "norm", "inner": "mlp.fc1", "outer": "mlp.fc2", "scale": "gamma"}


def _of_version(config: ConvNeXtConfig, table: dict[str, str], norm: str) -> dict[str, str]:
    """The parts of a branch; `norm` is the name of a response norm."""
    if not config.response_norm:
        return table
    return {ours: theirs for ours, theirs in table.items() if ours != "scale"} | {"response": norm}


def timm(config: ConvNeXtConfig) -> dict[str, str]:
    """For every ConvNeXt."""
    names = {"norm": "head.norm", "output": "head.fc"}
    for stage, count in enumerate(config.blocks):
        for part in range(2):
            names[f"reductions.{stage}.{part}"] = f"stages.{stage}.downsample.{part}" if stage else f"stem.{part}"
        for block in range(count):
            for ours, theirs in _of_version(config, _BRANCH, "mlp.grn").items():
                names[f"stages.{stage}.{block}.branch.{ours}"] = f"stages.{stage}.blocks.{block}.{theirs}"
    return names


def transformers(config: ConvNeXtConfig) -> dict[str, str]:
    """For every ConvNeXt. The names are those in files."""
    body = "convnextv2" if config.response_norm else "convnext"
    names = {
        "reductions.0.0": f"{body}.embeddings.patch_embeddings",
        "reductions.0.1": f"{body}.embeddings.layernorm",
        "norm": f"{body}.layernorm",
        "output": "classifier",
    }
    for stage, count in enumerate(config.blocks):
        place = f"{body}.encoder.stages.{stage}"
        if stage:
            names |= {f"reductions.{stage}.{part}": f"{place}.downsampling_layer.{part}" for part in range(2)}
        for block in range(count):
            for ours, theirs in _of_version(config, _TRANSFORMERS, "grn").items():
                names[f"stages.{stage}.{block}.branch.{ours}"] = f"{place}.layers.{block}.{theirs}"
    return names


def key_map(config: ConvNeXtConfig) -> KeyMap:
    """The table of tensors; files have response norms as maps of one place."""
    rows = transformers(config).items()
    shaped = Reshaped((1, 1, 1, -1))
    return KeyMap(tuple(Entry((ours,), name, shaped if name.endswith(".grn") else Same()) for ours, name in rows))


def read_config(values: Mapping[str, Any], where: str) -> ConvNeXtConfig:
    """The config of a `config.json`. UserError for what our models do not have."""
    read = ConfigReader(values, where)
    read.require(hidden_act="gelu")
    return ConvNeXtConfig(
        classes=1,
        channels=read.get("num_channels", 3),
        patch=read.get("patch_size", 4),
        blocks=read.numbers("depths", (3, 3, 9, 3)),
        widths=read.numbers("hidden_sizes", (96, 192, 384, 768)),
        response_norm=values["model_type"] == "convnextv2",
        layer_scale=read.get("layer_scale_init_value", 1e-6),
        depth_dropout=read.get("drop_path_rate", 0.0),
        epsilon=read.get("layer_norm_eps", 1e-12),
    )


def write_config(config: ConvNeXtConfig) -> dict[str, Any]:
    """The inverse of `read_config`."""
    kind = ("convnextv2", "ConvNextV2") if config.response_norm else ("convnext", "ConvNext")
    return {
        "model_type": kind[0],
        "architectures": [f"{kind[1]}ForImageClassification"],
        "num_channels": config.channels,
        "patch_size": config.patch,
        "depths": list(config.blocks),
        "num_stages": len(config.blocks),
        "hidden_sizes": list(config.widths),
        "hidden_act": "gelu",
        **({} if config.response_norm else {"layer_scale_init_value": config.layer_scale}),
        "drop_path_rate": config.depth_dropout,
        "layer_norm_eps": config.epsilon,
    }


LAYOUT = Layout(
    family="convnext",
    architectures={"ConvNextForImageClassification": "label", "ConvNextV2ForImageClassification": "label"},
    key_map=key_map,
    read_config=read_config,
    write_config=write_config,
    image_processor="ConvNextImageProcessor",
)


def read_timm(values: Mapping[str, Any], where: str) -> ConvNeXtConfig:
    """The sizes of a `convnext_...` or `convnextv2_...`."""
    found = Tensors(values, where)
    blocks = found.counts("stages.*.blocks.*.norm.weight")
    return ConvNeXtConfig(
        classes=1,
        channels=found.size("stem.0.weight", 1),
        patch=found.size("stem.0.weight", 3),
        blocks=blocks,
        widths=tuple(found.size(f"stages.{stage}.blocks.0.norm.weight") for stage in range(len(blocks))),
        response_norm="stages.0.blocks.0.mlp.grn.weight" in found,
    )


TIMM = timm_layout("convnext", timm, read_timm)
