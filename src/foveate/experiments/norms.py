"""Post-norm against pre-norm: the layer norm after each residual connection, or before each layer.

Pre-norm trains at depths and learning rates at which post-norm does not, least of all without a warm-up (Xiong et al.
2020, https://arxiv.org/abs/2002.04745). The task is to reverse sequences, which needs attention.
"""

import math
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from rich.console import Console
from torch import Tensor, nn

from foveate.errors import UserError, at_least
from foveate.experiments.comparison import Comparison, DeviceOptions, Table, on_device
from foveate.nn import StackConfig, TransformerStack
from foveate.viewer.heatmaps import COLOURS
from foveate.viewer.plain_figure import PlainFigure

NORMS: tuple[Literal["post", "pre"], ...] = ("post", "pre")

LAST = 20
"""Number of last steps whose mean loss is reported."""


@dataclass
class Norms(DeviceOptions):
    """Compare the loss of post-norm and pre-norm Transformers, by depth and learning rate."""

    depths: tuple[int, ...] = (2, 6, 12)
    """Blocks of the encoder."""
    learning_rates: tuple[float, ...] = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
    """Peak learning rates of AdamW."""
    steps: int = 300
    """Training steps of each model."""
    warmup: int = 0
    """Warm-up steps of the learning rate, which is constant afterwards."""
    width: int = 32
    """Width of the encoder, with 4 heads."""
    length: int = 10
    """Tokens of a sequence."""
    vocabulary: int = 16
    """Number of tokens in the vocabulary."""
    batch: int = 32
    """Sequences in a batch."""


@dataclass(frozen=True)
class NormResult:
    """The result of one training."""

    norm: str
    depth: int
    learning_rate: float
    loss: float | None
    """The mean cross-entropy of the last steps, in nats; None if training diverged."""


class Reverser(nn.Module):
    """An encoder that predicts the reversed sequence."""

    def __init__(self, options: Norms, norm: Literal["post", "pre"], depth: int) -> None:
        super().__init__()
        config = StackConfig(
            width=options.width, heads=4, feedforward=2 * options.width, layers=depth, norm=norm, dropout=0.0
        )
        self.embedding = nn.Embedding(options.vocabulary, options.width)
        self.encoder = TransformerStack(config)
        self.output = nn.Linear(options.width, options.vocabulary)

    def forward(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T N"]:
        return self.output(self.encoder(self.embedding(tokens)))


@on_device
def run(options: Norms, console: Console) -> Comparison:
    """Train all models. Raises UserError for invalid sizes."""
    for name in ("steps", "width", "length", "vocabulary", "batch"):
        at_least(1, name, getattr(options, name))
    if not options.depths or not options.learning_rates:
        raise UserError("nothing to compare: give --depths and --learning-rates at least one number each")
    at_least(1, "depths", min(options.depths))
    if len(set(options.depths)) < len(options.depths):
        raise UserError(f"depths are {' '.join(map(str, options.depths))}, but must differ")
    at_least(0, "warmup", options.warmup)
    for rate in options.learning_rates:
        at_least(0, "learning_rates", rate)
    results = []
    for depth in options.depths:
        for norm in NORMS:
            losses = [_train(options, norm, depth, rate) for rate in options.learning_rates]
            cases = zip(options.learning_rates, losses, strict=True)
            results += [NormResult(norm, depth, rate, loss) for rate, loss in cases]
            console.print(f"{norm}-norm, {depth} blocks: {' '.join(map(_format, losses))}", highlight=False)
    return _report(options, results)


def _train(options: Norms, norm: Literal["post", "pre"], depth: int, rate: float) -> float | None:
    """The final loss. Sequences and initial weights are the same for every learning rate."""
    torch.manual_seed(options.seed)
    model = Reverser(options, norm, depth)
    optimizer = torch.optim.AdamW(model.parameters(), rate, betas=(0.9, 0.98))
    losses = []
    for step in range(options.steps):
        optimizer.param_groups[0]["lr"] = rate * min(1.0, (step + 1) / max(1, options.warmup))
        tokens = torch.randint(options.vocabulary, (options.batch, options.length))
        loss = F.cross_entropy(model(tokens).flatten(0, 1), tokens.flip(1).flatten())
        if not loss.isfinite():
            return None
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(float(loss.detach()))
    return sum(losses[-LAST:]) / len(losses[-LAST:])


def _format(loss: float | None) -> str:
    return "diverged" if loss is None else f"{loss:.2f}"


def _report(options: Norms, results: list[NormResult]) -> Comparison:
    table = Table(["norm, blocks", *(f"{rate:g}" for rate in options.learning_rates)], title="Loss by learning rate")
    for norm in NORMS:
        for depth in options.depths:
            losses = [result.loss for result in results if (result.norm, result.depth) == (norm, depth)]
            table.rows.append([f"{norm}-norm, {depth}", *map(_format, losses)])
    return Comparison(
        "Post-norm against pre-norm",
        [table],
        {"": _heatmaps(options, results)},
        [asdict(result) for result in results],
        [
            f"An encoder of width {options.width} learns to reverse sequences of {options.length} tokens: "
            f"{options.steps} steps of AdamW, {options.batch} sequences each, {_warmup(options)}, the "
            "gradient's norm clipped at 1. Cross-entropy in nats, the mean of the last "
            f"{min(LAST, options.steps)} steps; guessing costs log {options.vocabulary} = "
            f"{math.log(options.vocabulary):.2f}."
        ],
    )


def _warmup(options: Norms) -> str:
    return f"a warm-up over {options.warmup} steps" if options.warmup else "no warm-up"


def _heatmaps(options: Norms, results: list[NormResult]) -> PlainFigure:
    """Loss by depth and learning rate; darker is worse."""
    rows, columns = len(options.depths), len(options.learning_rates)
    figure = PlainFigure(figsize=(2 * (0.7 * columns + 1), 0.6 * rows + 1.3), dpi=144, layout="constrained")
    guessing = math.log(options.vocabulary)
    for axes, norm in zip(figure.subplots(1, 2, sharey=True), NORMS, strict=True):
        losses = [result.loss for result in results if result.norm == norm]
        numbers = [guessing if loss is None else loss for loss in losses]
        grid = np.array(numbers).reshape(rows, columns)
        axes.pcolormesh(grid, cmap=COLOURS, vmin=0, vmax=guessing, edgecolors="white", linewidth=1)
        for index, (loss, number) in enumerate(zip(losses, numbers, strict=True)):
            colour = "white" if number > 0.55 * guessing else "black"
            where = (index % columns + 0.5, index // columns + 0.5)
            axes.text(*where, _format(loss), ha="center", va="center", fontsize=8, color=colour)
        axes.set_xticks([index + 0.5 for index in range(columns)], [f"{rate:g}" for rate in options.learning_rates])
        axes.set_yticks([index + 0.5 for index in range(rows)], [f"{depth} blocks" for depth in options.depths])
        axes.set(title=f"{norm}-norm: loss", xlabel="learning rate")
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
    return figure


OPTIONS = Norms
