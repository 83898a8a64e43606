"""Folders of timm: their `config.json` names an "architecture", whose sizes are those of the tensors beside it.

timm keeps the projections to queries, keys and values in one layer `attn.qkv`.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from foveate.errors import UserError, show_value
from foveate.interop.key_map import Entry, Joined, KeyMap
from foveate.interop.keys import convnext, efficientnet, mvit, resnet, swin, vit
from foveate.interop.layout import Layout
from foveate.models.vision.convnext import ConvNeXtConfig
from foveate.models.vision.efficientnet import EfficientNetConfig
from foveate.models.vision.mvit import MViTConfig
from foveate.models.vision.resnet import ResNetConfig
from foveate.models.vision.swin import SwinConfig
from foveate.models.vision.vit import ViTConfig

CLASSIFIER, BODY = "timm classifier", "timm body"
"""What a folder is instead of a class of transformers: a model with a classifier, or without one."""

BUFFERS = ("*relative_position_index", "*relative_coords_table", "*attn_mask")

HEADS = {192: 3, 320: 5, 384: 6, 512: 8, 768: 12, 1024: 16, 1152: 16, 1280: 16, 1408: 16, 1664: 16}
"""Attention heads of timm's ViTs by their width, where a folder does not say."""


class Tensors:
    """The sizes of a folder's tensors, which say what `config.json` does not."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self._shapes: Mapping[str, tuple[int, ...]] = values.get("tensors", {})
        self._where = where
        self.name, self.arguments = str(values.get("architecture")), values.get("model_args") or {}
        if not isinstance(self.arguments, Mapping):
            raise UserError(f"{where} has the model_args {show_value(self.arguments)}, which cannot be")
        self.image_size = self._image_size(values)

    def __contains__(self, name: str) -> bool:
        return name in self._shapes

    def size(self, name: str, axis: int = 0) -> int:
        """A tensor's size along an axis. UserError where there is none."""
        if len(shape := self._shapes.get(name, ())) <= axis:
            raise UserError(f"{self._where} names a {self.name}, but there is no such tensor '{name}' as that has")
        return shape[axis]

    def count(self, pattern: str) -> int:
        """How many tensors there are whose names have 0, 1, 2, ... in place of "*"."""
        found = 0
        while pattern.replace("*", str(found)) in self._shapes:
            found += 1
        return found

    def counts(self, pattern: str) -> tuple[int, ...]:
        """The same for each stage, whose number stands in place of a first "*"."""
        found: list[int] = []
        while count := self.count(pattern.replace("*", str(len(found)), 1)):
            found.append(count)
        return tuple(found)

    def argument(self, name: str, usual: int | None) -> int:
        """A number among the arguments that the model was made with. UserError where nothing says it."""
        found = self.arguments.get(name, usual)
        if type(found) is not int or found < 1:
            raise self.refuse(f"the {name} {show_value(found)}")
        return found

    def refuse(self, what: str) -> UserError:
        """The error for something that our models do not have."""
        return UserError(f"{self._where} names a {self.name} with {what}, which foveate does not have")

    def _image_size(self, values: Mapping[str, Any]) -> int:
        own = values.get("pretrained_cfg")
        size = (own if isinstance(own, Mapping) else {}).get("input_size", (3, 224, 224))
        size = self.arguments.get("img_size", size[-1] if isinstance(size, list | tuple) and size else size)
        height, width = size if isinstance(size, list | tuple) and len(size) == 2 else (size, size)
        if type(height) is not int or height != width or height < 1:
            raise self.refuse(f"images of the size {show_value(size)}")
        return height


def key_map(names: Mapping[str, str]) -> KeyMap:
    """The table of tensors, with `attn.qkv` in place of its parts. Swin V2 has biases apart, and none of keys."""
    entries = []
    for ours, theirs in names.items():
        place, _, part = theirs.rpartition(".")
        if part not in ("query", "key", "value"):
            entries.append(Entry((ours,), theirs))
        elif part == "query":
            parts = [f"{ours.removesuffix('query')}{one}" for one in ("query", "key", "value")]
            if f"{place}.logit_scale" in names.values():
                entries.append(Entry((f"{parts[0]}.bias",), f"{place}.q_bias"))
                entries.append(Entry((f"{parts[2]}.bias",), f"{place}.v_bias"))
                entries.append(Entry(tuple(f"{one}.weight" for one in parts), f"{place}.qkv.weight", Joined()))
            else:
                entries.append(Entry(tuple(parts), f"{place}.qkv", Joined()))
    return KeyMap(tuple(entries), ignored=BUFFERS)


def read_vit(values: Mapping[str, Any], where: str) -> ViTConfig:
    """The sizes of a `vit_...`, `deit_...` or `deit3_...`."""
    found = Tensors(values, where)
    width, patch = found.size("patch_embed.proj.weight"), found.size("patch_embed.proj.weight", 3)
    inner, tokens = found.size("blocks.0.mlp.fc1.weight"), sum(name in found for name in ("cls_token", "dist_token"))
    before = found.size("pos_embed", 1) - (found.image_size // patch) ** 2
    if found.size("blocks.0.mlp.fc2.weight", 1) != inner or before not in (0, tokens):
        raise found.refuse("gated layers" if before in (0, tokens) else f"{before} positions before the patches")
    pool = values.get("global_pool") or found.arguments.get("global_pool") or "token"
    if pool not in ("token", "avg"):
        raise found.refuse(f"the global_pool {show_value(pool)}")
    distilled = "none" if "dist_token" not in found else "classifier" if "head_dist.weight" in found else "token"
    return ViTConfig(
        classes=1,
        channels=found.size("patch_embed.proj.weight", 1),
        image_size=found.image_size,
        patch=patch,
        width=width,
        heads=found.argument("num_heads", HEADS.get(width)),
        feedforward=inner,
        layers=found.count("blocks.*.norm1.weight"),
        pooling="token" if pool == "token" else "patches" if "cls_token" in found else "mean",
        pooled_norm="fc_norm.weight" in found,
        distillation=distilled,  # type: ignore[arg-type]
        registers=found.size("reg_token", 1) if "reg_token" in found else None,
        class_position=before > 0,
        input_norm="norm_pre.weight" in found,
        patch_bias="patch_embed.proj.bias" in found,
        activation="gelu-sigmoid" if "quickgelu" in found.name else "gelu",
        layer_scale=1e-5 if "blocks.0.ls1.gamma" in found else None,
        epsilon=1e-5 if "_clip_" in found.name else 1e-6,
    )


def read_swin(values: Mapping[str, Any], where: str) -> SwinConfig:
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


def read_convnext(values: Mapping[str, Any], where: str) -> ConvNeXtConfig:
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


def read_resnet(values: Mapping[str, Any], where: str) -> ResNetConfig:
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


def read_mvit(values: Mapping[str, Any], where: str) -> MViTConfig:
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


def read_efficientnet(values: Mapping[str, Any], where: str) -> EfficientNetConfig:
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


def _refuse(config: Any) -> dict[str, Any]:
    raise UserError("foveate writes no folders of timm")


Names = Callable[[Any], Mapping[str, str]]


def _layout(family: str, names: Names, read: Callable[..., Any], body: bool = False) -> Layout:
    return Layout(
        family=family,
        architectures={CLASSIFIER: "label", **({BODY: "none"} if body else {})},
        key_map=lambda config: key_map(names(config)),
        read_config=read,
        write_config=_refuse,
        image_processor="ViTImageProcessor",
    )


VIT = _layout("vit", vit.timm, read_vit, body=True)
SWIN = _layout("swin", swin.timm, read_swin)
CONVNEXT = _layout("convnext", convnext.timm, read_convnext)
RESNET = _layout("resnet", resnet.torchvision, read_resnet)
MVIT = _layout("mvit", mvit.timm, read_mvit)
EFFICIENTNET = _layout("efficientnet", efficientnet.timm, read_efficientnet)
