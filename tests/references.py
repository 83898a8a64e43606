"""torchvision and timm, which image models are compared with, and pycocoevalcap, which captions are measured with;
`make test` installs them into a folder of their own.

torchvision is installed without its compiled operators, which fit one build of torch; their names are declared before
it is imported. In the environment itself transformers would find it, and could not import it so.
"""

import sys
from pathlib import Path

import torch

FOLDER = Path(sys.prefix) / "references"

if not FOLDER.is_dir():
    raise ImportError(f"there is no {FOLDER}: `make test` installs what image models are compared with")

sys.path.append(str(FOLDER))

_OPERATORS = torch.library.Library("torchvision", "DEF")
for _name in ("nms", "qnms"):
    _OPERATORS.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

import timm  # noqa: E402
import torchvision  # noqa: E402

__all__ = ["timm", "torchvision"]
