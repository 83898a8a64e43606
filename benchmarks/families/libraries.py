"""The libraries whose families are looked at."""

import functools
import importlib
from types import ModuleType

import torch

LIBRARIES = {"transformers": "families.hugging_face", "timm": "families.timm_models"}


def of(library: str) -> ModuleType:
    """The module that knows a library's families."""
    _declare_vision_operators()
    return importlib.import_module(LIBRARIES[library])


@functools.cache
def _declare_vision_operators() -> None:
    """torchvision's own are compiled for another torch; timm and transformers need no more than their names."""
    for name in ("nms", "qnms"):
        torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
