"""Other libraries' names for an EfficientNet: transformers' `EfficientNetForImageClassification`, and for a Lite one
timm's, and those of the package `efficientnet-lite-pytorch`."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from foveate.errors import UserError, show_value
from foveate.interop.key_map import KeyMap
from foveate.interop.keys.timm import Tensors, timm_layout
from foveate.interop.layout import ConfigReader, Layout, UnlikeOurs
from foveate.models.vision.efficientnet import EXPANSIONS, KERNELS, STRIDES, EfficientNetConfig

BASE = {"in_channels": (32, 16, 24, 40, 80, 112, 192), "out_channels": (16, 24, 40, 80, 112, 192, 320)}
"""Widths that a file multiplies by its width_coefficient."""


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


def key_map(config: EfficientNetConfig) -> KeyMap:
    """The table of transformers' tensors."""
    names = {"output": "classifier"}
    ends = {
        "stem": ("embeddings.convolution", "embeddings.batchnorm"),
        "features": ("encoder.top_conv", "encoder.top_bn"),
    }
    for branch, stage, _, place in _branches(config):
        block = f"encoder.blocks.{place}"
        layers = [
            *([(f"{block}.expansion.expand_conv", f"{block}.expansion.expand_bn")] if EXPANSIONS[stage] > 1 else []),
            (f"{block}.depthwise_conv.depthwise_conv", f"{block}.depthwise_conv.depthwise_norm"),
        ]
        ends |= {f"{branch}.{number}": layer for number, layer in enumerate(layers)}
        excite = f"{branch}.{len(layers)}"
        names |= {f"{excite}.{part}": f"efficientnet.{block}.squeeze_excite.{part}" for part in ("reduce", "expand")}
        ends[f"{branch}.{len(layers) + 1}"] = f"{block}.projection.project_conv", f"{block}.projection.project_bn"
    for ours, theirs in ends.items():
        for part, public in zip(("convolution", "norm"), theirs, strict=True):
            names[f"{ours}.{part}"] = f"efficientnet.{public}"
    return KeyMap.of(names)


def read_config(values: Mapping[str, Any], where: str) -> EfficientNetConfig:
    """The config of a `config.json`. UserError for what our models do not have."""
    read = ConfigReader(values, where)
    read.require(hidden_act="swish", pooling_type="mean", batch_norm_eps=1e-3, strides=[*STRIDES])
    read.require(kernel_sizes=[*KERNELS], expand_ratios=[*EXPANSIONS])
    times, unit = float(read.get("width_coefficient", 2.0)), read.get("depth_divisor", 8)
    inner, outer = (tuple(_rounded(width * times, unit) for width in read.numbers(name, BASE[name])) for name in BASE)
    stem, count = _rounded(32 * times, unit), len(KERNELS)
    if len(outer) != count or inner != (stem, *outer[:-1]):
        raise UnlikeOurs(f"{where} has the in_channels {list(inner)}, but {[stem, *outer[:-1]]} are what blocks give")
    depth = float(read.get("depth_coefficient", 3.1))
    blocks = tuple(math.ceil(depth * one) for one in read.numbers("num_block_repeats", (1, 2, 2, 3, 3, 4, 1)))
    if len(blocks) != count:
        raise UnlikeOurs(f"{where} has {len(blocks)} stages; foveate's models have {count}")
    if same := [one for one, two, stride in zip(inner, outer, STRIDES, strict=True) if one == two and stride == 1]:
        raise UnlikeOurs(f"{where} has a stage that begins and ends with the width {same[0]}; foveate adds its input")
    size = read.get("image_size", 600)
    _check_padding(values, size, blocks, where)
    return EfficientNetConfig(
        classes=1,
        channels=read.get("num_channels", 3),
        image_size=size,
        blocks=blocks,
        widths=outer,
        stem_width=stem,
        feature_width=read.get("hidden_dim", 2560),
        squeeze=read.get("squeeze_expansion_ratio", 0.25),
        activation="silu",
        depth_dropout=float(read.get("drop_connect_rate", 0.2)),
        dropout=float(read.get("dropout_rate", 0.5)),
    )


def _rounded(width: float, unit: int) -> int:
    """A width as a multiple of a unit, which is not more than a tenth below it."""
    found = max(unit, int(width + unit / 2) // unit * unit)
    return found + unit if found < 0.9 * width else found


def _check_padding(values: Mapping[str, Any], size: int, blocks: tuple[int, ...], where: str) -> None:
    """UserError for a file that pads maps of odd sizes otherwise than TensorFlow does, for images of its size."""
    wanted, side = odd_blocks(size, blocks), values.get("depthwise_padding") or []
    if [*side] != wanted:
        raise UnlikeOurs(
            f"{where} has the depthwise_padding {show_value(side)}; for images of {size} pixels foveate's is {wanted}"
        )


def odd_blocks(size: int, blocks: tuple[int, ...]) -> list[int]:
    """The blocks that halve a map with an odd number of rows, where images have this many."""
    found, side, place = [], -(-size // 2), 0
    for stride, count in zip(STRIDES, blocks, strict=True):
        if stride == 2 and side % 2:
            found.append(place)
        side, place = -(-side // stride), place + count
    return found


def write_config(config: EfficientNetConfig) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for a Lite model, and for one without all stages."""
    if config.squeeze is None or config.activation != "silu" or config.stages != len(KERNELS):
        raise UserError("an EfficientNet-Lite has no public layout of transformers")
    return {
        "model_type": "efficientnet",
        "architectures": ["EfficientNetForImageClassification"],
        "num_channels": config.channels,
        "image_size": config.image_size,
        "depthwise_padding": odd_blocks(config.image_size, config.blocks),
        **_width_fields(config),
        "depth_coefficient": 1.0,
        "num_block_repeats": [*config.blocks],
        "hidden_dim": config.feature_width,
        "squeeze_expansion_ratio": config.squeeze,
        "drop_connect_rate": config.depth_dropout,
        "dropout_rate": config.dropout,
    }


def _width_fields(config: EfficientNetConfig) -> dict[str, Any]:
    """The fields that widths are computed from. UserError for widths that are no multiple of the usual ones."""
    times, widths = config.feature_width / 1280, (config.stem_width, *config.widths)
    for unit in range(8, 0, -1):
        if tuple(_rounded(width * times, unit) for width in (32, *BASE["out_channels"])) == widths:
            return {"width_coefficient": times, "depth_divisor": unit}
    raise UserError(f"the widths are {list(widths)}, which transformers' EfficientNet cannot have")


LAYOUT = Layout(
    family="efficientnet",
    architectures={"EfficientNetForImageClassification": "label"},
    key_map=key_map,
    read_config=read_config,
    write_config=write_config,
    image_processor="EfficientNetImageProcessor",
)

TIMM = timm_layout("efficientnet", timm, read_timm)
