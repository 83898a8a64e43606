"""transformers' names for a DeiT: `DeiTForImageClassification` and `DeiTForImageClassificationWithTeacher`."""

from collections.abc import Mapping
from typing import Any

from foveate.interop.key_map import KeyMap
from foveate.interop.keys import vit
from foveate.interop.layout import ConfigReader, Layout
from foveate.models.vision.vit import ViTConfig

WITH_TEACHER = "DeiTForImageClassificationWithTeacher"


def key_map(config: ViTConfig) -> KeyMap:
    """The table of tensors; two classifiers have other names than one alone."""
    names = vit.transformers(config, "deit")
    if config.distillation == "classifier":
        names |= {"output": "cls_classifier", "teacher_output": "distillation_classifier"}
    return KeyMap.of(names, prefix="deit.")


def read_config(values: Mapping[str, Any], where: str) -> ViTConfig:
    """The config of a `config.json`. UserError for what our models do not have."""
    ConfigReader(values, where).require(qkv_bias=True)
    second = "classifier" if WITH_TEACHER in (values.get("architectures") or ()) else "token"
    return vit.read_sizes(values, where, distillation=second)


def write_config(config: ViTConfig) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for a model that transformers' DeiT is not equal to."""
    found = {**vit.write_sizes(config, "deit", "DeiT", ("distillation",)), "qkv_bias": True}
    return {**found, "architectures": [WITH_TEACHER]} if config.distillation == "classifier" else found


LAYOUT = Layout(
    family="vit",
    architectures={"DeiTForImageClassification": "label", WITH_TEACHER: "label", "DeiTModel": "none"},
    key_map=key_map,
    read_config=read_config,
    write_config=write_config,
    heads=(*vit.WITHOUT_HEAD, "cls_classifier.*", "distillation_classifier.*"),
    image_processor="DeiTImageProcessor",
)
