"""Other libraries' names for an EfficientNet-Lite: timm's, and those of the package `efficientnet-lite-pytorch`."""

from collections.abc import Iterator, Mapping
from typing import Any

from foveate.interop.keys.timm import Tensors, timm_layout
from foveate.models.vision.efficientnet import EXPANSIONS, STRIDES, EfficientNetConfig


def timm(config: EfficientNetConfig) -> dict[str, str]:
    """Of `tf_efficientnet_lite0` and the others."""
    names = {"stem.convolution": "conv_stem", "stem.norm": "bn1", "output": "classifier"}
    names |= {"features.convolution": "conv_head", "features.norm": "bn2"}
    for branch, stage, block, _ in _branches(config):
        layers = ("conv_pw", "conv_dw", "conv_pwl") if EXPANSIONS[stage] > 1 else ("conv_dw", "conv_pw")
        for number, layer in enumerate(layers):
            names[f"{branch}.{number}.convolution"] = f"blocks.{stage}.{block}.{layer}"
            names[f"{branch}.{number}.norm"] = f"blocks.{stage}.{block}.bn{number + 1}"
    return names


def lite_package(config: EfficientNetConfig) -> dict[str, str]:
    """Of `efficientnet-lite-pytorch`, which numbers the blocks of all stages together."""
    names = {"stem.convolution": "_conv_stem", "stem.norm": "_bn0", "output": "_fc"}
    names |= {"features.convolution": "_conv_head", "features.norm": "_bn1"}
    for branch, stage, _, place in _branches(config):
        layers = [("_expand_conv", "_bn0"), ("_depthwise_conv", "_bn1"), ("_project_conv", "_bn2")]
        for number, (layer, norm) in enumerate(layers if EXPANSIONS[stage] > 1 else layers[1:]):
            names[f"{branch}.{number}.convolution"] = f"_blocks.{place}.{layer}"
            names[f"{branch}.{number}.norm"] = f"_blocks.{place}.{norm}"
    return names


def _branches(config: EfficientNetConfig) -> Iterator[tuple[str, int, int, int]]:
    """Of each block: our name of its branch, its stage, its number there and its number among all blocks."""
    width, place = config.stem_width, 0
    for stage, (count, outer) in enumerate(zip(config.blocks, config.widths, strict=True)):
        for block in range(count):
            added = width == outer and (block > 0 or STRIDES[stage] == 1)
            # A block that is added to its input is a module around its branch.
            yield f"stages.{stage}.{block}" + (".branch" if added else ""), stage, block, place
            width, place = outer, place + 1


def read_timm(values: Mapping[str, Any], where: str) -> EfficientNetConfig:
    """The sizes of a `tf_efficientnet_lite...`."""
    found = Tensors(values, where)
    blocks = found.counts("blocks.*.*.bn1.weight")
    last = ["conv_pw", *["conv_pwl"] * (len(blocks) - 1)]
    return EfficientNetConfig(
        classes=1,
        channels=found.size("conv_stem.weight", 1),
        blocks=blocks,
        widths=tuple(found.size(f"blocks.{stage}.0.{layer}.weight") for stage, layer in enumerate(last)),
        stem_width=found.size("conv_stem.weight"),
        feature_width=found.size("conv_head.weight"),
    )


TIMM = timm_layout("efficientnet", timm, read_timm)
