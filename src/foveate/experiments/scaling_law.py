"""A scaling law: the loss of language models by their parameters N and the tokens D that they learned from.

L(N, D) = E + A / N^a + B / D^b (Hoffmann et al. 2022, https://arxiv.org/abs/2203.15556, approach 3): what no model can
predict, what a model of finite size cannot, and what finite text does not teach.
"""

import math
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from rich.console import Console
from torch import Tensor

from foveate import models
from foveate.contracts import Batch, label_batch
from foveate.data.sources import open_source
from foveate.data.text.documents import Passage, Prose
from foveate.data.tokens.tokenizers import SubwordTokenizer, train_bpe
from foveate.errors import UserError, at_least
from foveate.experiments.comparison import Comparison, DeviceOptions, Table, check_growing
from foveate.experiments.drawing import legend_below, line, panels
from foveate.experiments.measurement_cache import conditions_note, measure_once
from foveate.experiments.scaling_fit import Law, LossPoint, exponent_ranges, fit
from foveate.training import CrossEntropy, Training
from foveate.training.progress import Progress, learning_rate
from foveate.training.update import Updater

ROWS = 8
"""Sequences of a batch."""

PASSAGE = 200
"""Words of the passages that are joined to one text."""

HEAD = 32
"""Width of an attention head."""

PUBLISHED = {
    "Hoffmann et al. 2022 (Chinchilla)": ("1.69", "0.34", "0.28"),
    "Besiroglu et al. 2024, the same data fitted again": ("1.82", "0.35", "0.37"),
    "Kaplan et al. 2020 (another form, without E)": ("", "0.076", "0.095"),
}
"""E, a and b of published laws."""


@dataclass
class ScalingLaw(DeviceOptions):
    """Train small GPTs of several sizes on several amounts of prose, and fit their loss by both."""

    source: str = "sotu"
    """Prose by name: see `foveate data`."""
    widths: tuple[int, ...] = (32, 64, 96)
    """Widths of the models, in increasing order."""
    layers: tuple[int, ...] = (1, 1, 2)
    """Blocks of each model."""
    tokens: tuple[int, ...] = (125_000, 250_000, 500_000, 1_000_000)
    """Tokens that each model learns from, in increasing order. Each amount is a training of its own."""
    length: int = 64
    """Tokens of a sequence."""
    vocabulary: int = 512
    """Subwords, the four special ones included."""
    validation: int = 40_000
    """Tokens of other documents that the loss is measured on."""
    learning_rate: float = 4e-3
    """Peak learning rate of the smallest model; it falls with the square root of the width."""
    optimizer: Literal["adamw", "muon"] = "muon"
    """The optimizer of all models."""
    runs: Path = Path("runs/scaling-law")
    """Folder of the results. A model that was measured already is not trained again."""


def run(options: ScalingLaw, console: Console) -> Comparison:
    """Train those models that were not trained yet. Raises UserError for options that cannot be."""
    _check(options)
    splits = open_source(options.source, task="language")
    tokenizer = train_bpe((passage.text for passage in splits.train.passages(PASSAGE)), options.vocabulary)
    train, held_out = (
        _stream(part, tokenizer, most + options.length)
        for part, most in ((splits.train, options.tokens[-1]), (splits.dev, options.validation))
    )
    if len(train) <= options.tokens[-1]:
        raise UserError(f"{splits.train.name} has {len(train):,} tokens, but --tokens asks for {options.tokens[-1]:,}")
    points, paths = [], {}
    for width, layers in zip(options.widths, options.layers, strict=True):
        for tokens in options.tokens:
            name = f"width {width}, {tokens:,} tokens"
            paths[name] = options.runs / f"{width}-{layers}-{tokens}.json"
            settings = _settings(options) | {"width": width, "layers": layers, "tokens": tokens}
            measure = partial(_measure, options, width, layers, train[: tokens + 1], held_out)
            values = measure_once(paths[name], settings, measure)
            points.append(LossPoint(values["parameters"], tokens, values["loss"]))
            console.print(f"{name}: loss {points[-1].loss:.3f}", highlight=False)
    return _report(options, points, conditions_note(paths))


def _check(options: ScalingLaw) -> None:
    check_growing("widths", options.widths)
    check_growing("tokens", options.tokens)
    at_least(2, "length", options.length)
    if len(options.layers) != len(options.widths):
        raise UserError(f"there are {len(options.widths)} widths, but {len(options.layers)} numbers of layers")
    for width, layers in zip(options.widths, options.layers, strict=True):
        at_least(1, "layers", layers)
        if width % HEAD:
            raise UserError(f"widths has {width}, which is not a multiple of {HEAD}, the width of a head")
    if len(options.widths) * len(options.tokens) < 6:
        raise UserError("a law of five numbers needs at least six models: give more --widths or --tokens")
    at_least(ROWS * options.length, "tokens", options.tokens[0])


def _settings(options: ScalingLaw) -> dict[str, Any]:
    names = ("source", "length", "vocabulary", "validation", "learning_rate", "optimizer", "seed")
    return {name: getattr(options, name) for name in names}


def _stream(prose: Prose, tokenizer: SubwordTokenizer, most: int) -> Tensor:
    """The tokens of passages one after the other, at least `most` where there are enough."""
    tokens: list[int] = []
    part: list[Passage] = []
    for passage in prose.passages(PASSAGE):
        part.append(passage)
        if len(part) == 100:
            tokens += _join(part, tokenizer)
            part = []
        if len(tokens) > most:
            break
    return torch.tensor(tokens + _join(part, tokenizer))


def _join(passages: list[Passage], tokenizer: SubwordTokenizer) -> list[int]:
    return [token for tokens in tokenizer.encode([passage.text for passage in passages]) for token in tokens]


def _measure(options: ScalingLaw, width: int, layers: int, train: Tensor, held_out: Tensor) -> dict[str, float]:
    """Train a model on all of `train`, once. Its parameters without the tables, and its loss in nats a token."""
    torch.manual_seed(options.seed)
    sizes: dict[str, Any] = {
        "width": width,
        "heads": width // HEAD,
        "feedforward": 4 * width,
        "layers": layers,
        "dropout": 0.0,
    }
    vocabulary = options.vocabulary
    model = models.create("gpt-tiny", vocabulary=vocabulary, max_length=options.length, **sizes)
    batches = _batches(train, options)
    settings = Training(
        steps=len(batches),
        learning_rate=options.learning_rate * math.sqrt(options.widths[0] / width),
        schedule="cosine",
        warmup=max(1, len(batches) // 20),
        weight_decay=0.1,
        betas=(0.9, 0.95),
        device=options.device,
        precision="float32",
        optimizer=options.optimizer,
    )
    updater = Updater(model.train(), CrossEntropy(), settings)
    progress = Progress()
    for batch in batches:
        updater([batch], learning_rate(settings, progress), progress.step + 1)
        progress.advance(batch.total_weight, 0.0)
    tables = vocabulary * width + options.length * width
    parameters = sum(parameter.numel() for parameter in model.parameters()) - tables
    return {"parameters": parameters, "loss": _loss(model.eval(), held_out[: options.validation + 1], options)}


def _batches(stream: Tensor, options: ScalingLaw) -> list[Batch]:
    """Sequences of the stream in random order. What fills no batch is left out."""
    count = (len(stream) - 1) // options.length
    starts = torch.randperm(count, generator=torch.Generator().manual_seed(options.seed)) * options.length
    columns = torch.arange(options.length)
    batches: list[Batch] = []
    for chosen in starts.split(ROWS):
        if len(chosen) == ROWS or not batches:
            places = chosen[:, None] + columns
            batches.append(label_batch({"tokens": stream[places]}, stream[places + 1], options.source))
    return batches


@torch.no_grad()
def _loss(model: torch.nn.Module, stream: Tensor, options: ScalingLaw) -> float:
    losses, tokens = 0.0, 0
    for batch in _batches(stream, options):
        batch = batch.to(options.device)
        losses += float(CrossEntropy()(model(**batch.inputs), batch).total)
        tokens += batch.total_weight
    return losses / tokens


def _report(options: ScalingLaw, points: list[LossPoint], notes: list[str]) -> Comparison:
    law, ranges = fit(points), exponent_ranges(points)
    measured = Table(["parameters N", "tokens D", "loss, nats a token", "the law's", "difference, %"])
    for point in points:
        fitted = law(point.parameters, point.tokens)
        numbers = f"{point.tokens:,}", f"{point.loss:.3f}", f"{fitted:.3f}", f"{100 * (fitted / point.loss - 1):+.1f}"
        measured.rows.append([f"{point.parameters:,}", *numbers])
    exponents = Table(["law", "E", "a", "b"])
    a, b = (f"{value:.2f} ({low:.2f} to {high:.2f})" for value, (low, high) in zip((law.a, law.b), ranges, strict=True))
    exponents.rows.append(["here", f"{law.E:.2f}", a, b])
    exponents.rows += [[name, *values] for name, values in PUBLISHED.items()]
    return Comparison(
        "A scaling law of small language models",
        [measured, exponents],
        {"": _figure(points, law)},
        {"points": [asdict(point) for point in points], "law": asdict(law)},
        [
            f"L(N, D) = {law.E:.2f} + {law.A:.3g} / N^{law.a:.2f} + {law.B:.3g} / D^{law.b:.2f}. N does not "
            "count the tables of words and positions. In brackets: the range when one model is left out of the fit.",
            *(
                f"The losses do not determine {name}, which is at the limit of the search: measure larger differences."
                for name in law.undetermined
            ),
            *notes,
        ],
    )


def _figure(points: list[LossPoint], law: Law) -> Any:
    """Loss by tokens, a line for each size; and what was measured beside what the law says."""
    figure, ((axes,),) = panels(1, 1, width=6, height=4)
    sizes = sorted({point.parameters for point in points})
    for number, size in enumerate(sizes):
        own = [point for point in points if point.parameters == size]
        first, last = own[0].tokens, own[-1].tokens
        xs = [first * (last / first) ** (step / 30) for step in range(31)]
        line(axes, number, xs, [law(size, x) for x in xs], None, marker="", linewidth=1)
        line(axes, number, [p.tokens for p in own], [p.loss for p in own], f"{size:,} parameters", linestyle="")
    axes.set_xscale("log")
    axes.set(xlabel="tokens D", ylabel="loss, nats a token", title="measured (points) and L(N, D) (lines)")
    legend_below(figure, axes, columns=2)
    return figure


OPTIONS = ScalingLaw
