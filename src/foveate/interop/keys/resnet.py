"""Other libraries' names for a ResNet: transformers' `ResNetForImageClassification`, and torchvision's `resnet18` and
the others."""

from collections.abc import Mapping
from typing import Any

from foveate.errors import show_value
from foveate.interop.key_map import KeyMap
from foveate.interop.keys.timm import Tensors, timm_layout
from foveate.interop.layout import ConfigReader, Layout, UnlikeOurs, require_defaults
from foveate.models.vision.resnet import ResNetConfig

EXPANSION = 4
"""How many times as wide as its 3x3 convolution a bottleneck block is."""


def torchvision(config: ResNetConfig) -> dict[str, str]:
    """For networks with projections, which are the published ones."""
    names = {"stem.0.convolution": "conv1", "stem.0.norm": "bn1", "output": "fc"}
    bottleneck = config.block == "bottleneck"
    for stage, count in enumerate(config.blocks):
        for block in range(count):
            ours, theirs = f"stages.{stage}.{block}", f"layer{stage + 1}.{block}"
            for layer in range(3 if bottleneck else 2):
                names[f"{ours}.branch.{layer}.convolution"] = f"{theirs}.conv{layer + 1}"
                names[f"{ours}.branch.{layer}.norm"] = f"{theirs}.bn{layer + 1}"
        if stage or bottleneck:
            names[f"stages.{stage}.0.shortcut.convolution"] = f"layer{stage + 1}.0.downsample.0"
            names[f"stages.{stage}.0.shortcut.norm"] = f"layer{stage + 1}.0.downsample.1"
    return names


def transformers(config: ResNetConfig, prefix: str = "resnet.") -> dict[str, str]:
    """For networks with projections. The names are those in files; `prefix` is where the network is in a model."""
    names = {"output": "classifier.1"} if prefix == "resnet." else {}
    parts = {"convolution": "convolution", "norm": "normalization"}
    deep, pooled = config.stem == "deep", config.shortcut == "pooled"
    for ours, theirs in parts.items():
        for number in range(3 if deep else 1):
            names[f"stem.{number}.{ours}"] = f"{prefix}embedder.embedder.{f'{number}.' if deep else ''}{theirs}"
    bottleneck = config.block == "bottleneck"
    for stage, count in enumerate(config.blocks):
        for ours, theirs in parts.items():
            for block in range(count):
                for layer in range(3 if bottleneck else 2):
                    place = f"{prefix}encoder.stages.{stage}.layers.{block}.layer.{layer}"
                    names[f"stages.{stage}.{block}.branch.{layer}.{ours}"] = f"{place}.{theirs}"
            if stage or bottleneck or pooled:
                inner = "1." if pooled and stage else ""  # behind the pooling
                place = f"{prefix}encoder.stages.{stage}.layers.0.shortcut.{inner}"
                names[f"stages.{stage}.0.shortcut.{inner}{ours}"] = f"{place}{theirs}"
    return names


def read_config(values: Mapping[str, Any], where: str) -> ResNetConfig:
    """The config of a `config.json`. UserError for what our models do not have."""
    read = ConfigReader(values, where)
    read.require(hidden_act="relu", downsample_in_first_stage=False, downsample_in_bottleneck=False)
    block = read.choice("layer_type", "bottleneck", {"bottleneck": "bottleneck", "basic": "basic"})
    outer = read.numbers("hidden_sizes", (256, 512, 1024, 2048))
    widths = tuple(width // EXPANSION for width in outer) if block == "bottleneck" else outer
    if (stem := read.get("embedding_size", 64)) != widths[0]:
        raise UnlikeOurs(
            f"{where} has the embedding_size {stem}, but the hidden_sizes {show_value(list(outer))}: foveate's first "
            f"stage is as wide as the layer before it"
        )
    return ResNetConfig(
        classes=1,
        channels=read.get("num_channels", 3),
        blocks=read.numbers("depths", (3, 4, 6, 3)),
        widths=widths,
        block=block,
    )


def write_config(config: ResNetConfig) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for a plain network, and for one with another first layer."""
    require_defaults(config, ResNetConfig(classes=1), ("shortcut", "stem"), "transformers' ResNet")
    return {"model_type": "resnet", "architectures": ["ResNetForImageClassification"], **size_fields(config)}


def size_fields(config: ResNetConfig) -> dict[str, Any]:
    """The fields of the sizes."""
    times = EXPANSION if config.block == "bottleneck" else 1
    return {
        "num_channels": config.channels,
        "embedding_size": config.widths[0],
        "hidden_sizes": [times * width for width in config.widths],
        "depths": list(config.blocks),
        "layer_type": config.block,
        "hidden_act": "relu",
    }


LAYOUT = Layout(
    family="resnet",
    architectures={"ResNetForImageClassification": "label"},
    key_map=lambda config: KeyMap.of(transformers(config)),
    read_config=read_config,
    write_config=write_config,
    image_processor="ConvNextImageProcessor",
)


def read_timm(values: Mapping[str, Any], where: str) -> ResNetConfig:
    """The sizes of a `resnet18`, `resnet34`, `resnet50`, ..."""
    found = Tensors(values, where)
    blocks = tuple(found.count(f"layer{stage}.*.bn1.weight") for stage in range(1, 5))
    return ResNetConfig(
        classes=1,
        channels=found.size("conv1.weight", 1),
        blocks=blocks,
        widths=tuple(found.size(f"layer{stage}.0.bn1.weight") for stage in range(1, 5)),
        block="bottleneck" if "layer1.0.bn3.weight" in found else "basic",
    )


TIMM = timm_layout("resnet", torchvision, read_timm)
