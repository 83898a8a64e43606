"""What the `config.json` of a folder of timm says, in the words of one of transformers."""

from collections.abc import Mapping
from typing import Any

from foveate.errors import UserError, show_value

FAMILIES = {
    "vit_": "timm_vit",
    "deit_": "timm_vit",
    "deit3_": "timm_vit",
    "swin_": "timm_swin",
    "swinv2_": "timm_swin",
    "convnext_": "timm_convnext",
    "convnextv2_": "timm_convnext",
    "resnet": "timm_resnet",
    "mvitv2_": "timm_mvit",
    "tf_efficientnet_lite": "timm_efficientnet",
}
"""The "model_type" that stands for architectures of timm, by what their names begin with."""


def is_timm(values: Mapping[str, Any]) -> bool:
    """Returns whether a `config.json` is one of timm."""
    return "model_type" not in values and {"architecture", "pretrained_cfg"} <= values.keys()


def as_transformers(values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The fields with a "model_type", "architectures" and labels. UserError for an architecture without a family."""
    name, count = str(values["architecture"]), values.get("num_classes", 1000)
    kind = next((kind for begin, kind in FAMILIES.items() if name.startswith(begin)), None)
    if kind is None:
        known = ", ".join(f"{begin}..." for begin in FAMILIES)
        raise UserError(f"{where} names the architecture {show_value(name)} of timm; foveate has {known}")
    if type(count) is not int or count < 0:
        raise UserError(f"{where} has the num_classes {show_value(count)}, which cannot be")
    found = {**values, "model_type": kind, "architectures": ["timm classifier" if count else "timm body"]}
    names = values.get("label_names")
    if isinstance(names, list) and names:
        found["id2label"] = dict(enumerate(map(str, names)))
    return {**found, "num_labels": count} if count else found
