"""Image models beside timm's, with the same sizes and random weights: a forward pass and a step of training.

    python benchmarks/vision.py                          # all of it, minutes of one core
    python benchmarks/vision.py --only resnet50 --batch 4
    python benchmarks/vision.py --training               # training steps
    python benchmarks/vision.py --look                   # ours with and without `foveate.look`, at most 1.05

timm is eager, with its fused attention on. Ours is laid out for the CPU (`foveate.inference.cpu`). The runs take turns
in one process; with one thread, times are those of the processor. `--compiled` adds timm under torch.compile, which
needs a C++ compiler, and timm in OpenVINO where that is installed. It prints milliseconds for each image and their
ratio to timm's float32.
"""

import argparse
import contextlib
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import foveate  # isort: skip, before torch: its threads shall sleep, not spin, while others work on the machine

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from references import timm

from foveate.experiments.measuring import side_by_side
from foveate.inference.cpu import optimize_for_cpu

MODELS = {
    "vit-base-16": "vit_base_patch16_224",
    "resnet50": "resnet50",
    "swin-tiny": "swin_tiny_patch4_window7_224",
    "convnext-tiny": "convnext_tiny",
    "mvitv2-tiny": "mvitv2_tiny",
}
"""Our preset and timm's model."""

AIMS = {
    "float32": {"vit-base-16": 1.1, "resnet50": 1.05, "swin-tiny": 1.05, "convnext-tiny": 1.05, "mvitv2-tiny": 1.05},
    "bfloat16": {"vit-base-16": 2, "resnet50": 2, "swin-tiny": 1.8, "convnext-tiny": 2, "mvitv2-tiny": 1.5},
}
"""How many times as fast as timm's float32 ours shall be."""

ATTENDING = ("vit-base-16", "swin-tiny", "mvitv2-tiny")
"""Compared while they are looked at."""

TRAINED = {"deit3-small-16": "vit_small_patch16_224", "resnet18": "resnet18", "resnet20": "resnet20"}
"""Compared in training: models of equal sizes."""


def timm_resnet20() -> nn.Module:
    """timm's parts at the sizes of a ResNet-20 for small images, with projected shortcuts: timm has no name for it."""
    from timm.models.resnet import BasicBlock, ResNet

    net = ResNet(BasicBlock, (3, 3, 3, 1), num_classes=1000, channels=(16, 32, 64, 64))
    net.conv1, net.maxpool = nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.Identity()
    net.bn1, net.layer1[0], net.layer4 = nn.BatchNorm2d(16), BasicBlock(16, 16), nn.Identity()
    return net


def forward_runs(name: str, batch: int, compiled: bool) -> dict[str, Callable[[], Any]]:
    """Runs of ours and of timm's."""
    ours = foveate.create(name, classes=1000).eval().to(memory_format=torch.channels_last)
    theirs = timm.create_model(MODELS[name]).eval().to(memory_format=torch.channels_last)
    pixels = torch.randn(batch, 3, 224, 224).contiguous(memory_format=torch.channels_last)
    half = pixels.bfloat16()
    runs: dict[str, Callable[[], Any]] = {
        "timm float32": partial(theirs, pixels),
        "float32": partial(optimize_for_cpu(ours), pixels),
        "bfloat16": partial(optimize_for_cpu(ours, "bfloat16"), half),
        "timm bfloat16": partial(timm.create_model(MODELS[name]).eval().bfloat16(), half),
    }
    if compiled:
        runs["timm compiled"] = partial(torch.compile(theirs), pixels)
        for kind in ("f32", "bf16"):
            with contextlib.suppress(ImportError):
                runs[f"openvino {kind}"] = openvino_run(theirs, pixels, kind)
    return runs


def openvino_run(model: nn.Module, pixels: torch.Tensor, kind: str) -> Callable[[], Any]:
    """The model converted by OpenVINO, and its run on as many threads as torch has."""
    import openvino

    options = {"INFERENCE_NUM_THREADS": torch.get_num_threads(), "INFERENCE_PRECISION_HINT": kind}
    converted = openvino.convert_model(model, example_input=pixels)
    return partial(openvino.Core().compile_model(converted, "CPU", options), pixels.numpy())


def training_runs(name: str, batch: int) -> dict[str, Callable[[], Any]]:
    """A step of AdamW of ours and of timm's, in float32 and in bfloat16."""
    side = 32 if name == "resnet20" else 224
    pixels = torch.randn(batch, 3, side, side).contiguous(memory_format=torch.channels_last)
    labels = torch.randint(1000, (batch,))
    values = {} if name.startswith("resnet") else {"depth_dropout": 0.0}
    ours = foveate.create(name, classes=1000, **values).train()
    theirs = (timm_resnet20() if name == "resnet20" else timm.create_model(TRAINED[name])).train()
    runs: dict[str, Callable[[], Any]] = {}
    for who, model in (("timm ", theirs), ("", ours)):
        model = model.to(memory_format=torch.channels_last)
        optimizer = torch.optim.AdamW(model.parameters(), fused=True)
        for kind, enabled in (("float32", False), ("bfloat16", True)):
            runs[who + kind] = partial(step, model, optimizer, pixels, labels, enabled)
    return runs


def looked_at(model: nn.Module, pixels: torch.Tensor) -> None:
    with foveate.look(model):
        model(pixels)


def look_runs(name: str, batch: int) -> dict[str, Callable[[], Any]]:
    """A forward pass of ours, and the same while it is looked at."""
    model, pixels = foveate.create(name, classes=1000).eval(), torch.randn(batch, 3, 224, 224)
    return {"plain": partial(model, pixels), "look": partial(looked_at, model, pixels)}


def step(
    model: nn.Module, optimizer: torch.optim.Optimizer, pixels: torch.Tensor, labels: torch.Tensor, half: bool
) -> None:
    with torch.enable_grad():
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            output = model(pixels)
        logits = getattr(output, "logits", output)
        torch.nn.functional.cross_entropy(logits.float(), labels).backward()
    optimizer.step()
    optimizer.zero_grad()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--training", action="store_true")
    parser.add_argument("--look", action="store_true")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    for name in asked.only or (TRAINED if asked.training else ATTENDING if asked.look else MODELS):
        torch.manual_seed(0)
        if asked.look:
            with torch.inference_mode():
                found = side_by_side(look_runs(name, asked.batch), asked.repeats)
            print(f"{name:15} looking takes {found['look'] / found['plain']:.3f} times as long", flush=True)
            continue
        runs = training_runs(name, asked.batch) if asked.training else forward_runs(name, asked.batch, asked.compiled)
        with torch.inference_mode(not asked.training):
            found = side_by_side(runs, asked.repeats)
        base = found["timm float32"]
        for way, seconds in found.items():
            aim = AIMS.get(way, {}).get(name) if not asked.training else None
            note = f" (aim {aim})" if aim else ""
            print(f"{name:15} {way:14} {1000 * seconds / asked.batch:7.1f} ms  {base / seconds:5.2f}{note}", flush=True)


if __name__ == "__main__":
    main()
