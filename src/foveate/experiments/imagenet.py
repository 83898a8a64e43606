"""The winners of ILSVRC and later models: published errors on ImageNet beside our parameters and operations."""

from dataclasses import asdict, dataclass

import torch
from rich.console import Console

from foveate import models
from foveate.errors import at_least
from foveate.experiments.comparison import Comparison, Options, Table
from foveate.experiments.drawing import legend_below, line, panels
from foveate.experiments.flops import flops
from foveate.viewer.plain_figure import PlainFigure

WINNERS = {
    "alexnet": ("AlexNet, winner of 2012", 16.4),
    "zfnet": ("ZFNet, winner of 2013", 11.7),
    "vgg16": ("VGG-16, second of 2014", 7.3),
    "vgg19": ("VGG-19, second of 2014", 7.3),
    "googlenet": ("GoogLeNet, winner of 2014", 6.7),
    "resnet152": ("ResNet-152, winner of 2015", 3.57),
}
"""Top-5 error of the team's submission in percent, mostly of several nets together."""

LATER = {
    "resnet50": ("ResNet-50 (torchvision's weights)", 76.1),
    "deit3-small-16": ("DeiT III-S", 81.4),
    "deit3-base-16": ("DeiT III-B", 83.8),
    "swin-tiny": ("Swin-T", 81.3),
    "swin-base": ("Swin-B", 83.5),
    "convnext-tiny": ("ConvNeXt-T", 82.1),
    "convnext-base": ("ConvNeXt-B", 83.8),
    "mvitv2-tiny": ("MViTv2-T", 82.3),
    "mvitv2-base": ("MViTv2-B", 84.4),
}
"""Top-1 accuracy of one model in percent, trained on ImageNet-1k alone, one crop of 224 x 224 pixels."""


@dataclass
class ImageNet(Options):
    """Count parameters and operations of models whose errors on ImageNet are published."""

    seeds: int = 1
    side: int = 224
    """Height and width of the images, in pixels."""


@dataclass(frozen=True)
class ImageNetModel:
    """A model of 1,000 classes: its published quality and its counted size."""

    preset: str
    name: str
    published: float
    """Percent: the top-5 error of a winner, the top-1 accuracy of a later model."""
    parameters: int
    flops: int
    """Of one image, forward."""


def run(options: ImageNet, console: Console) -> Comparison:
    """Count all of them; nothing is computed."""
    at_least(1, "side", options.side)
    winners, later = ([_count(*row, options.side) for row in table.items()] for table in (WINNERS, LATER))
    return Comparison(
        "ImageNet: published errors, our sizes",
        [
            _table("top-5 error, %", "Winners of ILSVRC", winners),
            _table("top-1 accuracy, %", "Trained on ImageNet-1k alone", later),
        ],
        {"": _scatter(later)},
        [asdict(part) for part in (*winners, *later)],
        [
            "Errors are those of the papers, those of winners for all nets of a team together. Parameters and "
            f"operations are counted on our models: 1,000 classes, one image of {options.side} x {options.side} "
            "pixels; a multiplication and an addition are two operations."
        ],
        conditions="Counted on shapes alone.",
    )


def _count(preset: str, published: tuple[str, float], side: int) -> ImageNetModel:
    model = models.create(preset, device="meta", classes=1000).eval()
    pixels = torch.empty(1, 3, side, side, device="meta")
    with torch.no_grad():
        operations = flops(lambda: model(pixels))
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return ImageNetModel(preset, *published, parameters, operations)


def _table(heading: str, title: str, counted: list[ImageNetModel]) -> Table:
    table = Table(["model", "preset", heading, "parameters, millions", "GFLOP"], title=title)
    for part in counted:
        numbers = f"{part.published:g}", f"{part.parameters / 1e6:.1f}", f"{part.flops / 1e9:.1f}"
        table.rows.append([part.name, f"`{part.preset}`", *numbers])
    return table


def _scatter(later: list[ImageNetModel]) -> PlainFigure:
    """Accuracy by operations; the sizes of a family are joined."""
    figure, grid = panels(1, 1, width=5.6)
    (axes,) = grid.flat
    families: dict[str, list[ImageNetModel]] = {}
    for part in later:
        families.setdefault(part.preset.partition("-")[0].rstrip("0123456789"), []).append(part)
    for number, parts in enumerate(families.values()):
        name = parts[0].name.partition(" (")[0].removesuffix("-S").removesuffix("-T")
        line(axes, number, [part.flops / 1e9 for part in parts], [part.published for part in parts], name)
    axes.set(xlabel="GFLOP for an image", ylabel="top-1 accuracy, % (published)", xlim=(0, None))
    legend_below(figure, axes, columns=3)
    return figure


OPTIONS = ImageNet
