"""What a net keeps of a shallower one that it contains, by how large the weights of the added layers are.

He et al. 2016 (https://arxiv.org/abs/1512.03385): a net that is deepened by layers of the identity equals the shallower
one, so it need not be worse. In a residual net these are layers of zeros, which training comes from; plain layers must
learn the identity itself.
"""

from dataclasses import asdict, dataclass, replace
from typing import cast

import torch
from rich.console import Console
from torch import Tensor, nn

from foveate import models
from foveate.errors import UserError, at_least
from foveate.experiments.comparison import Comparison, DeviceOptions, Table, on_device
from foveate.experiments.drawing import legend_below, line, panels
from foveate.models.vision.resnet import ResNet
from foveate.nn import ConvNorm
from foveate.viewer.plain_figure import PlainFigure

WAYS = {
    "residual": ("resnet20", False),
    "plain": ("plain20", False),
    "plain, identity added": ("plain20", True),
}
"""The net that is deepened, and whether the identity is added to the weights of the new layers."""


@dataclass
class Identity(DeviceOptions):
    """Compare nets of 20 layers with deeper ones that contain them, by the size of the other layers' weights."""

    blocks: tuple[int, ...] = (9, 9, 9)
    """Blocks of each stage of the deeper nets; 3 in the shallower ones."""
    scales: tuple[float, ...] = (0.0, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)
    """What the random weights of the added layers are multiplied by; 1 is how training begins."""
    images: int = 64
    """Random images that the nets read."""
    side: int = 14
    """Height and width of the images."""


@dataclass(frozen=True)
class Kept:
    """One deepened net."""

    way: str
    scale: float
    correlation: float
    """Between the features of the two nets, over all images and channels."""
    difference: float
    """The greatest one between the features of the two nets, as a share of the greatest feature."""


@on_device
def run(options: Identity, console: Console) -> Comparison:
    """Compare all nets. Raises UserError for sizes that cannot be."""
    for name in ("images", "side"):
        at_least(2, name, getattr(options, name))
    if len(options.blocks) != 3 or min(options.blocks) < 3:
        raise UserError(f"blocks are {' '.join(map(str, options.blocks))}, but must be 3 numbers, each at least 3")
    results = []
    pixels = torch.randn(options.images, 1, options.side, options.side, dtype=torch.float64)
    for way, (preset, identity) in WAYS.items():
        torch.manual_seed(options.seed)
        shallow = cast(ResNet, models.create(preset, classes=10, channels=1)).double().eval()
        for scale in options.scales:
            deep = deepen(shallow, options.blocks, scale, identity)
            results.append(Kept(way, scale, *_compare(_features(shallow, pixels), _features(deep, pixels))))
            console.print(f"{way}, {scale:g}: correlation {results[-1].correlation:.3f}", highlight=False)
    return _report(options, results)


def deepen(shallow: ResNet, blocks: tuple[int, ...], scale: float, identity: bool) -> ResNet:
    """A net that begins each stage with the blocks of a shallower one, in evaluation mode.

    The convolutions of the added blocks have random weights times `scale`, plus the identity where that is asked for.
    Residual blocks whose weights are 0 give nothing, so that their input goes on as it is.
    """
    torch.manual_seed(7)
    deep = ResNet(replace(shallow.config, blocks=blocks)).to(shallow.output.weight.dtype).eval()
    deep.load_state_dict(shallow.state_dict(), strict=False)
    for stage, count in zip(deep.stages, shallow.config.blocks, strict=True):
        for layer in cast(nn.Sequential, stage)[count:].modules():
            if isinstance(layer, ConvNorm):
                weight = layer.convolution.weight.detach()
                weight *= scale
                if identity:
                    weight += nn.init.dirac_(torch.empty_like(weight))
                    nn.init.constant_(layer.norm.weight, (1 + layer.norm.eps) ** 0.5)  # batch norm is the identity too
    return deep


@torch.no_grad()
def _features(model: ResNet, pixels: Tensor) -> Tensor:
    return model.grid(pixels).mean((2, 3))


def _compare(shallow: Tensor, deep: Tensor) -> tuple[float, float]:
    centred = [(features - features.mean(0)).flatten() for features in (shallow, deep)]
    norms = [float(features.norm()) for features in centred]
    correlation = float(centred[0] @ centred[1]) / (norms[0] * norms[1]) if min(norms) else 0.0
    return correlation, float((shallow - deep).abs().max() / shallow.abs().max())


def _report(options: Identity, results: list[Kept]) -> Comparison:
    table = Table(["weights of the added layers, times", *WAYS])
    for scale in options.scales:
        kept = [result.correlation for result in results if result.scale == scale]
        table.rows.append([f"{scale:g}", *(f"{value:.3f}" for value in kept)])
    depths = 6 * 3 + 2, 2 * sum(options.blocks) + 2
    return Comparison(
        "Layers that change nothing",
        [table],
        {"": _curves(options, results)},
        [asdict(result) for result in results],
        [
            f"Correlation of the features of a net of {depths[1]} layers with those of a net of {depths[0]} that it "
            f"contains, over {options.images} random images. Nothing is trained: batch norm only multiplies by "
            "numbers near 1. A plain net without the identity scales its features with its weights, all alike."
        ],
    )


def _curves(options: Identity, results: list[Kept]) -> PlainFigure:
    figure, grid = panels(1, 1, width=5.2)
    (axes,) = grid.flat
    for number, way in enumerate(WAYS):
        line(axes, number, options.scales, [result.correlation for result in results if result.way == way], way)
    axes.set(xlabel="weights of the added layers, times", ylabel="correlation with the shallower net")
    legend_below(figure, axes, columns=3)
    return figure


OPTIONS = Identity
