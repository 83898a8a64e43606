"""Kinds of positions: pictures of the waves, and models that are trained on short sequences and tested on long ones.

The task is to write the token that stood a few places before, which takes nothing but positions.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from rich.console import Console
from torch import Tensor, nn

from foveate import models
from foveate.attention import sinusoidal
from foveate.contracts import Picture
from foveate.errors import UserError, at_least
from foveate.experiments.comparison import Comparison, DeviceOptions, Table, check_growing, on_device
from foveate.experiments.drawing import legend_below, line, panels
from foveate.viewer.plain_figure import PlainFigure

KINDS: dict[str, dict[str, Any]] = {
    "none": {"positions": "none"},
    "waves, added": {"positions": "sinusoidal"},
    "waves, [P, Z]": {"positions": "sinusoidal", "position_join": "concatenate"},
    "table, added": {"positions": "learned"},
    "table, [P, Z]": {"positions": "learned", "position_join": "concatenate"},
    "relative": {"positions": "relative"},
    "relative, projected": {"positions": "relative-projected"},
    "rotary": {"positions": "rotary"},
}
"""The fields of a model's config for each kind of positions."""


@dataclass
class Positions(DeviceOptions):
    """Train a small model with each kind of positions on short sequences, and test it on longer ones."""

    length: int = 24
    """Tokens of a training sequence."""
    lengths: tuple[int, ...] = (24, 32, 48, 96)
    """Tokens of a test sequence; later ones than those trained on are unseen positions."""
    back: int = 3
    """How many places before the token stood that is to be written."""
    vocabulary: int = 32
    """Different tokens."""
    steps: int = 400
    """Steps of each training, on 32 sequences."""
    width: int = 64
    """Width of the model, which has two blocks of four heads."""


@dataclass(frozen=True)
class PositionAccuracy:
    """The accuracy of a kind of positions at a length, over all places and over those beyond the training length."""

    kind: str
    length: int
    accuracy: float
    beyond: float | None


@on_device
def run(options: Positions, console: Console) -> Comparison:
    """Train and test all kinds. Raises UserError for invalid sizes."""
    check_growing("lengths", options.lengths)
    for name in ("back", "steps", "vocabulary"):
        at_least(1, name, getattr(options, name))
    if options.length <= options.back:
        raise UserError(f"length is {options.length}, but must be greater than back, {options.back}")
    results = []
    for kind, fields in KINDS.items():
        model = _train(options, fields)
        results += [_measure(options, kind, model, length) for length in options.lengths]
        console.print(f"{kind}: {results[-1].accuracy:.1f} % at length {results[-1].length}", highlight=False)
    return _report(options, results)


def _train(options: Positions, fields: dict[str, Any]) -> nn.Module:
    torch.manual_seed(options.seed)
    longest = max(*options.lengths, options.length)
    sizes = {"width": options.width, "heads": 4, "feedforward": 2 * options.width, "layers": 2, "dropout": 0.0}
    values = {**sizes, **fields, "vocabulary": options.vocabulary, "max_length": longest, "tie": False}
    model: Any = models.create("gpt-tiny", **values)
    nn.init.normal_(model.embedding.weight)  # as large as the waves that are added
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=options.steps)
    for _ in range(options.steps):
        tokens = torch.randint(options.vocabulary, (32, options.length))
        logits, labels = _predict(model, tokens, options.back)
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model.eval()


def _predict(model: nn.Module, tokens: Tensor, back: int) -> tuple[Tensor, Tensor]:
    """The logits at every place that has a token so far back, and that token."""
    return model(tokens).logits[:, back:], tokens[:, :-back]


@torch.no_grad()
def _measure(options: Positions, kind: str, model: nn.Module, length: int) -> PositionAccuracy:
    generator = torch.Generator().manual_seed(options.seed)
    tokens = torch.randint(options.vocabulary, (64, length), generator=generator, device="cpu")
    tokens = tokens.to(torch.get_default_device())
    logits, labels = _predict(model, tokens, options.back)
    right = (logits.argmax(-1) == labels).float()
    beyond = right[:, options.length - options.back :]
    unseen = 100 * float(beyond.mean()) if beyond.numel() else None
    return PositionAccuracy(kind, length, 100 * float(right.mean()), unseen)


def _report(options: Positions, results: list[PositionAccuracy]) -> Comparison:
    table = Table(["positions", *(f"{length} tokens" for length in options.lengths), "unseen places"])
    figure, ((axes,),) = panels(1, 1, 5.5, 3.6)
    for number, kind in enumerate(KINDS):
        own = [result for result in results if result.kind == kind]
        beyond = "" if own[-1].beyond is None else f"{own[-1].beyond:.1f}"
        table.rows.append([kind, *(f"{result.accuracy:.1f}" for result in own), beyond])
        line(axes, number, options.lengths, [result.accuracy for result in own], kind)
    axes.axvline(options.length, color="#757575", linewidth=0.8, linestyle=":")
    axes.set(xlabel="tokens of a test sequence", title="accuracy, %", ylim=(0, 104))
    legend_below(figure, axes, 3)
    note = (
        f"Accuracy in per cent of models of 2 blocks, trained in {options.steps} steps on sequences of "
        f"{options.length} of {options.vocabulary} tokens to write the token {options.back} places before; chance is "
        f"{100 / options.vocabulary:.1f}. Unseen places are those beyond the training length, at {options.lengths[-1]} "
        "tokens: a table has no trained row for them."
    )
    figures: dict[str, Picture] = {"": figure, "waves": draw_waves()}
    return Comparison("Kinds of positions", [table], figures, [asdict(result) for result in results], [note])


def draw_waves(tokens: int = 10, width: int = 64) -> PlainFigure:
    """The waves of some positions beside a binary counter: both change fast on one side and slowly on the other."""
    figure = PlainFigure(figsize=(9, 3.4), dpi=144, layout="constrained")
    waves, counter = figure.subplots(1, 2, width_ratios=[3, 1])
    drawn = waves.imshow(sinusoidal(tokens, width).cpu().numpy(), cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
    waves.set(title=f"waves of {tokens} positions, width {width}", xlabel="dimension", ylabel="position")
    figure.colorbar(drawn, ax=waves, shrink=0.8)
    bits = np.arange(16)[:, None] >> np.arange(3, -1, -1) & 1
    counter.imshow(bits, cmap="Greys", vmin=0, vmax=1.6, aspect="auto")
    for (row, column), bit in np.ndenumerate(bits):
        counter.text(column, row, str(bit), ha="center", va="center", fontsize="x-small")
    counter.set(title="binary counter", xlabel="bit", ylabel="number", xticks=range(4), xticklabels=[3, 2, 1, 0])
    return figure


OPTIONS = Positions
