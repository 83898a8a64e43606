"""Self-attention in a CNN, on pictures that need it: have two marks the same colour, near each other or far apart?

A convolution compares what is within its reach. A linear layer of the mean of the last feature map can do little about
the rest: it sums what each mark gives, and knows at best one colour that is there twice. So marks that no convolution
sees together are compared by attention, or by more stages, whose reach is wider.
"""

from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from rich.console import Console
from torch import Tensor, nn

from foveate import models
from foveate.errors import UserError, at_least
from foveate.experiments import one_cycle
from foveate.experiments.comparison import Comparison, DeviceOptions, Table, check_growing, on_device
from foveate.experiments.drawing import legend_below, line, panels

MARK = 2
"""Rows and columns of a mark."""

ASIDE = 2
"""A mark is at most this far beside the line on which the other one stands."""


@dataclass
class DistantMarks(DeviceOptions):
    """Train CNNs with and without self-attention to compare the colours of two marks, and test them by distance."""

    side: int = 32
    """Rows and columns of the pictures."""
    distances: tuple[int, ...] = (4, 8, 12, 16, 20, 24, 28)
    """Pixels from one mark to the other. All are trained on, in equal parts."""
    colours: int = 4
    """Different colours."""
    width: int = 32
    """Width of the last stages; the first one has half of it."""
    steps: int = 300
    """Training steps of each model."""
    batch: int = 64
    """Pictures of a batch."""
    learning_rate: float = 4e-3
    """The highest learning rate."""
    tested: int = 500
    """Pictures of each distance that are tested on."""


OPTIONS = DistantMarks

MODELS: dict[str, tuple[int, tuple[int, ...]]] = {
    "3 stages": (3, ()),
    "3 stages with attention": (3, (2,)),
    "5 stages": (5, ()),
}
"""The number of stages of each CNN, one convolution each, and those that self-attention follows."""


@dataclass(frozen=True)
class ComparedMarks:
    """The share of pictures that are judged right, in per cent."""

    model: str
    distance: int
    accuracy: float


@on_device
def run(options: DistantMarks, console: Console) -> Comparison:
    """Train and test all models. Raises UserError for sizes that do not fit."""
    check_growing("distances", options.distances)
    for name in ("steps", "batch", "tested", "width"):
        at_least(1, name, getattr(options, name))
    at_least(2, "colours", options.colours)
    at_least(MARK, "distances", options.distances[0])
    if options.distances[-1] > options.side - MARK:
        raise UserError(
            f"distances reach {options.distances[-1]}, but in {options.side} pixels there is no room for it"
        )
    results, parameters = [], {}
    for name in MODELS:
        model = _train(options, name)
        parameters[name] = sum(part.numel() for part in model.parameters())
        results += [
            ComparedMarks(name, distance, _accuracy(options, model, distance)) for distance in options.distances
        ]
        console.print(f"{name}: {', '.join(f'{one.accuracy:.1f}' for one in results[-len(options.distances) :])}")
    return _report(options, results, parameters)


def reach(stages: int) -> int:
    """Pixels in a row that a place of the last feature map sees, by one 3 x 3 convolution a stage and halving between.

    >>> reach(3)
    18
    """
    seen = 1
    for stage in range(stages):
        step = 2**stage
        seen += (step // 2 if stage else 0) + 2 * step
    return seen


def draw(
    options: DistantMarks, distances: Int[Tensor, "B"], generator: torch.Generator | None = None
) -> tuple[Float[Tensor, "B 3 s s"], Int[Tensor, "B"]]:
    """Dark pictures with two marks at these distances, below each other or side by side, and whether their colours are
    the same."""
    count, device = len(distances), distances.device

    def below(limit: Tensor | int) -> Tensor:
        """A whole number from 0 to below the limit, for each picture."""
        return (torch.rand(count, generator=generator, device=device) * limit).long()

    room = options.side - MARK
    first, same = below(options.colours), below(2)
    other = (first + 1 + below(options.colours - 1)) % options.colours
    along, across = below(room - distances + 1), below(room + 1)
    beside = (across + below(2 * ASIDE + 1) - ASIDE).clamp(0, room)
    palette = torch.rand(options.colours, 3, generator=torch.Generator().manual_seed(options.colours)).to(device)
    pictures, every = torch.zeros(count, 3, options.side, options.side), torch.arange(count)
    for down, right, colour in (
        (along, across, first),
        (along + distances, beside, torch.where(same == 1, first, other)),
    ):
        for corner in range(MARK**2):
            pictures[every, :, down + corner // MARK, right + corner % MARK] = palette[colour]
    turned = (below(2) == 1)[:, None, None, None]
    return torch.where(turned, pictures.mT, pictures), same


def _train(options: DistantMarks, name: str) -> nn.Module:
    torch.manual_seed(options.seed)
    stages, attended = MODELS[name]
    sizes: dict[str, Any] = {
        "blocks": (1,) * stages,
        "widths": (options.width // 2, *(options.width,) * (stages - 1)),
        "attend_after": attended,
    }
    model = models.create("cnn-tiny", classes=2, **sizes)
    distances = torch.tensor(options.distances)

    def loss(step: int) -> Tensor:
        pictures, same = draw(options, distances[torch.randint(len(distances), (options.batch,))])
        return F.cross_entropy(model(pictures).logits, same)

    return one_cycle.train(model, options.steps, options.learning_rate, loss)


@torch.inference_mode()
def _accuracy(options: DistantMarks, model: nn.Module, distance: int) -> float:
    torch.manual_seed(options.seed)
    pictures, same = draw(options, torch.full((options.tested,), distance))
    return 100 * float((model(pictures).logits.argmax(-1) == same).float().mean())


def _report(options: DistantMarks, results: list[ComparedMarks], parameters: dict[str, int]) -> Comparison:
    table = Table(["pixels between the marks", *MODELS])
    for distance in options.distances:
        table.rows.append([str(distance), *(f"{one.accuracy:.1f}" for one in results if one.distance == distance)])
    figure, ((axes,),) = panels(1, 1, 5.5, 3.6)
    for number, name in enumerate(MODELS):
        line(axes, number, options.distances, [one.accuracy for one in results if one.model == name], name)
    axes.set(xlabel="pixels between the marks", title="pictures judged right, %", ylim=(40, 104))
    legend_below(figure, axes, 2)
    counts = ", ".join(f"{name} {count:,}" for name, count in parameters.items())
    note = (
        f"Per cent of {options.tested:,} pictures of {options.side} x {options.side} pixels at each distance; chance "
        f"is 50. A place of the last feature map sees {reach(3)} pixels in a row after 3 stages, {reach(5)} after 5. "
        f"Self-attention follows the second stage. {options.steps} steps of {options.batch} pictures. "
        f"Parameters: {counts}."
    )
    return Comparison(
        "Two marks of the same colour, by CNNs with and without self-attention",
        [table],
        {"": figure},
        list(map(asdict, results)),
        [note],
    )
