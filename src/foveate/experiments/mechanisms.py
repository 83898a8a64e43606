"""What stands in the place of the softmax, compared at equal budgets: small causal models that differ in nothing else.

Copying, recalling what stood beside a key, and sorting ask for exact places, pictures for a comparison over a distance;
prose asks for habits of a language. What a model of each kind costs is measured beside it, and a map of each is drawn.
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Int
from rich.console import Console
from torch import Tensor, nn

from foveate import models
from foveate.contracts import Output
from foveate.data.sources import open_source
from foveate.data.text.documents import Prose
from foveate.data.text.parallel_corpus import ParallelText
from foveate.errors import UserError, at_least, one_of
from foveate.experiments import one_cycle
from foveate.experiments.comparison import Comparison, DeviceOptions, Table, on_device
from foveate.experiments.drawing import panels
from foveate.experiments.measuring import Run, memory, side_by_side
from foveate.nn import GatedConvolution
from foveate.sight import look

MECHANISMS: dict[str, dict[str, Any]] = {
    "softmax": {},
    "softmax plus one": {"weights": "softmax-plus-one"},
    "sigmoid": {"weights": "sigmoid"},
    "sparsemax": {"weights": "sparsemax"},
    "entmax": {"weights": "entmax"},
    "top-k": {"weights": "top-k"},
    "contextual positions": {"positions": "contextual"},
    "talking heads": {"mixing": "talking"},
    "multi-token": {"mixing": "multi-token"},
    "differential": {"mixing": "differential"},
    "latent heads": {"mixing": "latent"},
    "linear attention": {"mixing": "linear"},
    "retention": {"mixing": "retention"},
    "gated delta rule": {"mixing": "gated-delta"},
    "Mamba-2": {"mixing": "mamba-2"},
}
"""What is changed of the preset `gpt-tiny`."""

ENCODERS: dict[str, Callable[[int, int], nn.Module]] = {
    "LSTM": lambda words, width: models.create(
        "rnn-language", vocabulary=words, embedding=width, width=width, layers=2, dropout=0.0
    ),
    "convolution": lambda words, width: ConvolutionalLanguage(words, width),
}
"""Models without attention, from the number of tokens and their width."""

TASKS = ("copying", "recall", "sorting", "pictures", "prose", "translation")

IN_BITS = ("prose", "translation")
"""Tasks whose score is the bits a byte; of the others it is the share of right tokens."""

IGNORED = -100
"""The label of places where nothing is predicted."""

BYTES = 256
"""The vocabulary of prose."""

COLOURS = 8
"""Colours of the marks in pictures."""

HELD_OUT = 20
"""One paragraph of this many is to test on, where text is given."""


@dataclass
class Mechanisms(DeviceOptions):
    """Train small causal models with attention of every kind, and with what replaces it, on the same tasks."""

    mechanisms: tuple[str, ...] = (*MECHANISMS, *ENCODERS)
    """Which of them to compare."""
    tasks: tuple[str, ...] = TASKS
    """What they are trained for; translation needs sentences of yours."""
    steps: int = 600
    """Training steps of each model on each task."""
    batch: int = 32
    """Sequences of a batch."""
    length: int = 24
    """Tokens to copy or to sort."""
    pairs: int = 8
    """Keys with values that are read, and then asked for in another order."""
    vocabulary: int = 32
    """Different tokens."""
    side: int = 8
    """Pictures have this many rows and columns."""
    source: str = "movie-sentences"
    """Prose by name; see `foveate data`."""
    data: tuple[Path, ...] = ()
    """Your own text instead: plain text files, or folders of .txt files."""
    translation: tuple[Path, Path] | None = None
    """Sentences and their translations, line by line, such as those of Multi30k: a task more."""
    context: int = 128
    """Bytes of prose that a model reads at once."""
    width: int = 64
    """Width of the models, which have two layers of four heads."""
    learning_rate: float = 3e-3
    """The highest learning rate."""
    long: int = 2048
    """Tokens of the sequence whose time and memory are measured."""
    repeats: int = 3
    """Measurements of each time, of which the median counts."""


OPTIONS = Mechanisms

Batch = tuple[Int[Tensor, "B T"], Int[Tensor, "B T"]]
"""Tokens, and the label of each place."""

Pairs = list[tuple[bytes, bytes]]
"""Sentences and their translations."""

Draw = Callable[[int], Batch]
"""Makes a batch of some rows."""


class ConvolutionalLanguage(nn.Module):
    """Predicts the next token from the last ones, by gated convolutions (Dauphin et al. 2017)."""

    def __init__(self, words: int, width: int, layers: int = 2, kernel: int = 8) -> None:
        super().__init__()
        self.kernel = kernel
        self.embedding = nn.Embedding(words, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers + 1))
        self.convolutions = nn.ModuleList(GatedConvolution(width, kernel) for _ in range(layers))
        self.output = nn.Linear(width, words)

    def forward(self, tokens: Int[Tensor, "B T"]) -> Output:
        x = self.embedding(tokens)
        for norm, layer in zip(self.norms, self.convolutions, strict=False):
            x = x + layer(F.pad(norm(x), (0, 0, self.kernel - 1, 0)))
        return Output(self.output(self.norms[-1](x)))


@dataclass(frozen=True)
class MechanismResult:
    """One mechanism: its scores by task, and its costs."""

    mechanism: str
    scores: dict[str, float]
    parameters: int
    milliseconds: float
    mebibytes: float | None


@on_device
def run(options: Mechanisms, console: Console) -> Comparison:
    """Train and test all models. Raises UserError for invalid sizes and for text that is not there."""
    for name in ("steps", "batch", "repeats"):
        at_least(1, name, getattr(options, name))
    for name in ("length", "pairs", "vocabulary", "context", "long"):
        at_least(2, name, getattr(options, name))
    at_least(4, "side", options.side)  # so that each half has room for a mark
    for name in options.mechanisms:
        one_of("mechanisms", name, (*MECHANISMS, *ENCODERS))
    for name in options.tasks:
        one_of("tasks", name, TASKS)
    at_least(options.pairs, "vocabulary", options.vocabulary)  # so that keys can differ
    tasks = _tasks(options)
    times = side_by_side({name: prepare(options, name) for name in options.mechanisms}, options.repeats)
    results, maps = [], {}
    for name in options.mechanisms:
        scores = {}
        for task, (draw, test, words) in tasks.items():
            model = _train(options, name, draw, words)
            scores[task] = _score(task, model, test)
            if task == "recall" and name in MECHANISMS:
                maps[name] = _map(model, test)
            console.print(f"{name}, {task}: {scores[task]:.2f}", highlight=False)
        parameters = sum(part.numel() for part in model.parameters())
        used = memory(prepare, options, name)
        results.append(
            MechanismResult(name, scores, parameters, 1000 * times[name], None if used is None else used / 2**20)
        )
    return _report(options, results, maps)


def _tasks(options: Mechanisms) -> dict[str, tuple[Draw, Draw, int]]:
    """By name: what trains, what tests, and how many tokens there are."""
    count, words = options.length, options.vocabulary
    separator = words

    def copying(rows: int) -> Batch:
        read = torch.randint(words, (rows, count))
        return _written(read, read, separator)

    def sorting(rows: int) -> Batch:
        read = torch.randint(words, (rows, count))
        return _written(read, read.sort(-1).values, separator)

    def recall(rows: int, pairs: int) -> Batch:
        keys = torch.rand(rows, words).argsort(-1)[:, :pairs]
        values = words + 1 + torch.randint(words, keys.shape)  # other tokens than keys
        order = torch.rand(keys.shape).argsort(-1)
        asked, known = (
            torch.stack([keys, values], -1),
            torch.stack([keys.gather(1, order), values.gather(1, order)], -1),
        )
        tokens = torch.cat([asked.flatten(1), torch.full((rows, 1), separator), known.flatten(1)], 1)
        labels = torch.full_like(tokens, IGNORED)
        labels[:, 2 * pairs + 1 :: 2] = known[..., 1]  # the place of each key that is asked for
        return tokens, labels

    def reading(text: Tensor) -> Draw:
        def draw(rows: int) -> Batch:
            starts = torch.randint(len(text) - options.context, (rows, 1))
            read = text[starts + torch.arange(options.context + 1)]
            return read[:, :-1], read[:, 1:]

        return draw

    def growing(rows: int) -> Batch:
        """From one pair to all: whoever looks up one among few learns to among many."""
        return recall(rows, int(torch.randint(1, options.pairs + 1, ())))

    def prose() -> tuple[Draw, Draw, int]:
        train, test = _prose(options)
        return reading(train), reading(test), BYTES

    found: dict[str, Callable[[], tuple[Draw, Draw, int]]] = {
        "copying": lambda: (copying, copying, words + 1),
        "recall": lambda: (growing, lambda rows: recall(rows, options.pairs), 2 * words + 1),
        "sorting": lambda: (sorting, sorting, words + 1),
        "pictures": lambda: (
            partial(_pictures, options.side),
            lambda rows: _pictures(options.side, 5 * rows),  # each has a single answer
            COLOURS + 2,
        ),
        "prose": prose,
    }
    if options.translation is not None:
        learned, tested = _pairs(options, *options.translation)
        found["translation"] = lambda: (_translating(learned), _translating(tested), BYTES + 1)
    if missing := [name for name in options.tasks if name not in found and options.tasks != TASKS]:
        raise UserError(f"{missing[0]} needs two files of sentences: --translation SOURCE TARGET")
    return {name: found[name]() for name in options.tasks if name in found}


def _pairs(options: Mechanisms, source: Path, target: Path) -> tuple[Pairs, Pairs]:
    """Bytes of pairs to learn from, and of those to test on: of the pairs that have room in twice the context."""
    parts: list[Pairs] = []
    for part in ParallelText.from_files(source, target).held_out(HELD_OUT):
        pairs = [(read.encode(), written.encode()) for read, written in part]
        parts.append([pair for pair in pairs if sum(map(len, pair)) < 2 * options.context])
        at_least(1, f"the number of pairs of fewer than {2 * options.context} bytes", len(parts[-1]))
    return parts[0], parts[1]


def _translating(pairs: Pairs) -> Draw:
    """A sentence, a separator, its translation and an end."""

    def draw(rows: int) -> Batch:
        chosen = [pairs[number] for number in torch.randint(len(pairs), (rows,)).tolist()]
        longest = max(sum(map(len, pair)) for pair in chosen) + 1
        tokens, labels = torch.full((rows, longest), BYTES), torch.full((rows, longest), IGNORED)
        for row, (read, asked) in enumerate(chosen):
            known = torch.tensor([*read, BYTES, *asked, BYTES])
            tokens[row, : len(known) - 1] = known[:-1]
            labels[row, len(read) : len(known) - 1] = known[len(read) + 1 :]
        return tokens, labels

    return draw


def _pictures(side: int, rows: int) -> Batch:
    """Pictures row by row, blank but for two coloured marks of 2 x 2 pixels, one in the upper and one in the lower
    half; behind each it is asked whether the two colours are the same."""
    same = torch.randint(2, (rows,))
    first = torch.randint(COLOURS, (rows,))
    other = (first + torch.randint(1, COLOURS, (rows,))) % COLOURS
    picture, every, half = torch.zeros(rows, side, side, dtype=torch.long), torch.arange(rows), side // 2
    for top, colour in ((0, first), (half, torch.where(same == 1, first, other))):
        down, across = top + torch.randint(half - 1, (rows,)), torch.randint(side - 1, (rows,))
        for corner in range(4):
            picture[every, down + corner // 2, across + corner % 2] = colour + 1
    tokens = F.pad(picture.flatten(1), (0, 1), value=COLOURS + 1)
    labels = torch.full_like(tokens, IGNORED)
    labels[:, -1] = same
    return tokens, labels


def _written(read: Tensor, asked: Tensor, separator: int) -> Batch:
    """What is read, and then written token by token."""
    tokens = torch.cat([read, torch.full((len(read), 1), separator), asked[:, :-1]], 1)
    labels = torch.full_like(tokens, IGNORED)
    labels[:, read.shape[1] :] = asked
    return tokens, labels


def _prose(options: Mechanisms) -> tuple[Int[Tensor, "N"], Int[Tensor, "M"]]:
    """The bytes to learn from and those to test on."""
    if options.data:
        train, test = Prose.from_paths(options.data).held_out(HELD_OUT)
    else:
        splits = open_source(options.source, task="language")
        train, test = splits.train, splits.test
    known, asked = (torch.tensor([*"\n".join(one.text for one in part).encode()]) for part in (train, test))
    at_least(options.context + 2, "the number of bytes of the text to test on", len(asked))
    return known, asked


def _model(options: Mechanisms, name: str, words: int, length: int) -> nn.Module:
    torch.manual_seed(options.seed)
    if name in ENCODERS:
        return ENCODERS[name](words, options.width)
    sizes: dict[str, Any] = {"width": options.width, "heads": 4, "layers": 2, "feedforward": 2 * options.width}
    return models.create("gpt-tiny", vocabulary=words, max_length=length, dropout=0.0, **sizes, **MECHANISMS[name])


def _train(options: Mechanisms, name: str, draw: Draw, words: int) -> nn.Module:
    longest = max(2 * options.length, 4 * options.pairs + 1, options.side**2 + 1, options.context)
    if options.translation is not None:
        longest = max(longest, 2 * options.context)
    model = _model(options, name, words, longest)
    torch.manual_seed(options.seed)

    def loss(step: int) -> Tensor:
        tokens, labels = draw(options.batch)
        return F.cross_entropy(model(tokens).logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED)

    return one_cycle.train(model, options.steps, options.learning_rate, loss)


@torch.inference_mode()
def _score(task: str, model: nn.Module, test: Draw, rows: int = 200) -> float:
    """The share of tokens that are right, in per cent; of prose the bits per byte."""
    torch.manual_seed(0)
    tokens, labels = test(rows)
    logits = model(tokens).logits
    if task in IN_BITS:
        return float(F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED)) / math.log(2)
    asked = labels != IGNORED
    return 100 * float((logits.argmax(-1) == labels)[asked].float().mean())


@torch.inference_mode()
def _map(model: nn.Module, test: Draw) -> list[list[float]]:
    """The sizes of the weights of the last layer, the mean over its heads, for one sequence; the largest is 1."""
    torch.manual_seed(0)
    with look(model) as sight:
        model(test(1)[0])
    weights = [*sight][-1].weights()[0].abs().mean(0)
    found: list[list[float]] = (weights / weights.max()).tolist()
    return found


def prepare(options: Mechanisms, name: str) -> Run:
    """A training step of one model on a long sequence, without the optimizer."""
    model, tokens = _model(options, name, BYTES, options.long), torch.randint(BYTES, (1, options.long))

    def train() -> None:
        model(tokens).logits.square().mean().backward()

    return train


def _report(options: Mechanisms, results: list[MechanismResult], maps: dict[str, Any]) -> Comparison:
    tasks = [f"{task}, {'bits a byte' if task in IN_BITS else '%'}" for task in results[0].scores]
    table = Table(["", *tasks, "parameters", "ms", "MiB"])
    for one in results:
        scores = (f"{one.scores[task]:.{2 if task in IN_BITS else 1}f}" for task in one.scores)
        used = "" if one.mebibytes is None else f"{one.mebibytes:,.0f}"
        table.rows.append([one.mechanism, *scores, f"{one.parameters:,}", f"{one.milliseconds:,.0f}", used])
    columns = 4
    figure, grid = panels(max(1, -(-len(maps) // columns)), columns, 2.4, 2.5)
    for axes, (name, weights) in zip(grid.flat, maps.items(), strict=False):
        axes.imshow(weights, cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
        axes.set(title=name, xticks=[], yticks=[])
        axes.grid(visible=False)
    note = (
        f"Models of two layers of width {options.width}, {options.steps} steps of {options.batch} sequences on each "
        f"task, a fixed rate for all. {options.length} tokens of {options.vocabulary} are copied or sorted; of "
        f"{options.pairs} pairs the second is recalled by the first; chance is {100 / options.vocabulary:.1f}. "
        f"In pictures of {options.side} x {options.side} pixels two marks have the same colour or not; chance is 50. "
        f"Prose is read {options.context} bytes at a time, translations are of pairs below twice that. "
        f"ms and MiB are those of forward and backward pass over {options.long:,} tokens. "
        "The picture shows the sizes of the weights of the last layer in recall, the mean over heads."
    )
    return Comparison(
        "What makes weights of scores, and what replaces them",
        [table],
        {"": figure},
        list(map(asdict, results)),
        [note],
    )
