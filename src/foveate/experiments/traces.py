"""What runs in parallel: the matrix products that a model starts one after the other, in training and at test time.

What has no recurrence starts the same number of products however long a known target is: each covers all positions. A
loop over positions starts some for each. They are counted as they go by, in torch's dispatcher.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from rich.console import Console
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from foveate import models
from foveate.contracts import Generator
from foveate.errors import UserError, at_least
from foveate.experiments.comparison import Comparison, Options, Table, check_growing
from foveate.special_tokens import LEARNED
from foveate.viewer.plain_figure import PlainFigure

PRODUCTS = {"mm": 1, "convolution": 1, "mkldnn_rnn_layer": 1, "attention": 2}
"""Parts of the names of torch's operations that multiply matrices, and how many products each one is: fused attention
multiplies queries by keys and weights by values, as unfused attention does."""

MODES = ("training", "test")


@dataclass
class Traces(Options):
    """Count the products that translators start one after the other, by the length of source and target."""

    seeds: int = 1
    models: tuple[str, ...] = ("rnn", "rnn-attentive", "rnn-bahdanau", "convolutional-tiny", "transformer-tiny")
    """Presets of translators."""
    lengths: tuple[int, ...] = (8, 32, 128)
    """Tokens of the source and of the target."""


OPTIONS = Traces


@dataclass(frozen=True)
class TracedPass:
    """The operations of one pass of a model."""

    model: str
    mode: str
    length: int
    products: int


class _Counter(TorchDispatchMode):
    """Counts matrix products as they go by."""

    def __init__(self) -> None:
        super().__init__()
        self.products = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.__name__.split(".")[0]
        self.products += max((count for part, count in PRODUCTS.items() if part in name), default=0)
        return func(*args, **(kwargs or {}))


def count_products(run: Callable[[], object]) -> int:
    """The matrix products that a run starts, forward alone."""
    with torch.no_grad(), _Counter() as counter:
        run()
    return counter.products


def run(options: Traces, console: Console) -> Comparison:
    """Trace all models. Raises UserError for invalid lengths and for models that do not translate."""
    check_growing("lengths", options.lengths)
    at_least(1, "the number of models", len(options.models))
    results = []
    for name in options.models:
        model = _translator(name)
        for length in options.lengths:
            passes = _passes(model, length)
            results += [TracedPass(name, mode, length, count_products(passes[mode])) for mode in MODES]
    return _report(options, results)


def _translator(name: str) -> nn.Module:
    if "tgt_vocab" not in models.sizes_of_data(models.preset(name).family):
        raise UserError(f"{name} does not translate; `foveate train translate --help` lists models that do")
    model = models.create(name, src_vocab=100, tgt_vocab=100).eval()
    assert isinstance(model, Generator)
    return model


def _passes(model: Any, length: int) -> dict[str, Callable[[], object]]:
    """A known target at once, and the same target token by token; reading the source is part of both."""
    source, lengths = torch.randint(LEARNED.first_word, 100, (1, length)), torch.tensor([length])
    target = torch.randint(LEARNED.first_word, 100, (1, length))
    target[:, 0] = LEARNED.start

    def stepped() -> Tensor:
        first, state = model.prefill(target[:, :1], source=source, source_lengths=lengths)
        return torch.stack([first, *(model.step(tokens, state) for tokens in target[:, 1:].unbind(1))])

    return {"training": lambda: model(source, lengths, target), "test": stepped}


def _report(options: Traces, results: list[TracedPass]) -> Comparison:
    columns = [(mode, length) for mode in MODES for length in options.lengths]
    table = Table(["model", *(f"{mode}, {length} tokens" for mode, length in columns), "in training"])
    by_case = {(result.model, result.mode, result.length): result.products for result in results}
    for name in options.models:
        counts = [by_case[name, *column] for column in columns]
        grows = counts[len(options.lengths) - 1] > counts[0]
        table.rows.append([name, *(f"{count:,}" for count in counts), "step by step" if grows else "in parallel"])
    return Comparison(
        "Matrix products one after the other",
        [table],
        {"": _plot(options, by_case)},
        [asdict(result) for result in results],
        ["A forward pass of one sentence, reading its source included; an LSTM layer of oneDNN counts as one product."],
    )


def _plot(options: Traces, products: dict[tuple[str, str, int], int]) -> PlainFigure:
    """The products against the length, in training and at test time."""
    figure = PlainFigure(figsize=(8, 3), dpi=144, layout="constrained")
    for axes, mode in zip(figure.subplots(1, 2, sharey=True), MODES, strict=True):
        for name in options.models:
            axes.plot(options.lengths, [products[name, mode, length] for length in options.lengths], "o-", label=name)
        axes.set(title=f"products, {mode}", xlabel="tokens", xscale="log", yscale="log")
        axes.set_xticks(options.lengths, [str(length) for length in options.lengths], minor=False)
        axes.minorticks_off()
        axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize="small", frameon=False, bbox_to_anchor=(1, 1), loc="upper left")
    return figure
