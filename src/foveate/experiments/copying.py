"""The bottleneck on copies: random sequences of up to 1,000 tokens are read and written again, through one vector or by
attention, soft or hard.

Random tokens have nothing in common, so that a vector has to hold each of them. The model without attention is a fair
one: the vector is in its first state and an input of every step, and it is trained on as many sequences.
"""

import math
import random
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Int
from rich.console import Console
from torch import Tensor, nn

from foveate import models
from foveate.contracts import Output, label_batch
from foveate.errors import at_least
from foveate.experiments import one_cycle
from foveate.experiments.comparison import Comparison, DeviceOptions, Table, check_growing, on_device
from foveate.experiments.drawing import legend_below, line, panels, powers_of_two
from foveate.special_tokens import LEARNED
from foveate.training import CrossEntropy

FIRST = LEARNED.first_word
"""The first token that is not a special one."""

MODELS: dict[str, dict[str, Any]] = {
    "one vector, in the first state": {"score": "none", "fixed_vector": "first"},
    "one vector, at every step": {"score": "none", "fixed_vector": "every"},
    "attention": {"score": "biaffine"},
    "hard attention": {"score": "biaffine", "select": "hard", "mean_share": 0.0, "samples": 4},
}
"""What is changed of the preset `rnn`: a GRU that reads both ways, and one that writes. Hard attention learns by
REINFORCE alone, from four places a step."""


@dataclass
class Copying(DeviceOptions):
    """Train recurrent models to copy sequences of random tokens, and measure them by length."""

    order: Literal["forward", "reversed"] = "forward"
    """Write the sequence from its beginning or from its end."""
    lengths: tuple[int, ...] = (4, 8, 16, 32, 64, 125, 250, 500, 1000)
    """Tokens of the test sequences. Training has all lengths up to the last one, short ones first and more often."""
    vocabulary: int = 64
    """Different tokens."""
    steps: int = 400
    """Training steps of each model."""
    batch_tokens: int = 2048
    """Tokens of a batch, whose sequences have one length."""
    width: int = 128
    """Width of embeddings and states, and of the one vector."""
    learning_rate: float = 4e-3
    """The highest learning rate."""


OPTIONS = Copying


@dataclass(frozen=True)
class CopyAccuracy:
    """The share of tokens that are predicted right, in per cent, where those before are known."""

    model: str
    length: int
    accuracy: float


@on_device
def run(options: Copying, console: Console) -> Comparison:
    """Train and test all models. Raises UserError for invalid sizes."""
    check_growing("lengths", options.lengths)
    for name in ("steps", "batch_tokens", "width"):
        at_least(1, name, getattr(options, name))
    at_least(2, "vocabulary", options.vocabulary)
    results, parameters = [], {}
    for name, fields in MODELS.items():
        model = _train(options, fields)
        parameters[name] = sum(parameter.numel() for parameter in model.parameters())
        results += [CopyAccuracy(name, length, _accuracy(options, model, length)) for length in options.lengths]
        console.print(f"{name}: {results[-1].accuracy:.1f} % of {results[-1].length:,} tokens", highlight=False)
    return _report(options, results, parameters)


def training_length(longest: int, progress: float, generator: random.Random) -> int:
    """A length from 2 on, by chance evenly on a logarithmic scale; the longest one grows in the first half of training
    from 8."""
    most = longest if longest <= 8 else 8 * (longest / 8) ** min(1.0, 2 * progress)
    return round(math.exp(generator.uniform(math.log(min(2, most)), math.log(most))))


def _train(options: Copying, fields: dict[str, Any]) -> nn.Module:
    torch.manual_seed(options.seed)
    words, generator = options.vocabulary + FIRST, random.Random(options.seed)
    sizes: dict[str, Any] = {"src_vocab": words, "tgt_vocab": words, "embedding": options.width, "width": options.width}
    model: Any = models.create("rnn", **sizes, **fields, dropout=0.0)
    objective = CrossEntropy(choice_weight=1.0, entropy_bonus=0.0)

    def loss(step: int) -> Tensor:
        length = training_length(options.lengths[-1], step / options.steps, generator)
        output, labels = _predict(options, model, max(1, options.batch_tokens // length), length)
        return objective(output, label_batch({}, labels, f"step {step}")).total / labels.numel()

    return one_cycle.train(model, options.steps, options.learning_rate, loss)


def _predict(
    options: Copying, model: Callable[..., Output], rows: int, length: int, generator: torch.Generator | None = None
) -> tuple[Output, Int[Tensor, "B T"]]:
    """Returns a model's output for some sequences, and the tokens that it should write."""
    source = torch.randint(FIRST, FIRST + options.vocabulary, (rows, length), generator=generator, device="cpu")
    source = source.to(torch.get_default_device())
    target = source if options.order == "forward" else source.flip(1)
    known = F.pad(target[:, :-1], (1, 0), value=LEARNED.start)
    return model(source, torch.full((rows,), length), known), target


@torch.inference_mode()
def _accuracy(options: Copying, model: nn.Module, length: int) -> float:
    generator = torch.Generator().manual_seed(options.seed)
    output, labels = _predict(options, model, max(4, options.batch_tokens // length), length, generator)
    return 100 * float((output.logits.argmax(-1) == labels).float().mean())


def _report(options: Copying, results: list[CopyAccuracy], parameters: dict[str, int]) -> Comparison:
    table = Table(["tokens", *MODELS])
    figure, ((axes,),) = panels(1, 1, 5.5, 3.6)
    for length in options.lengths:
        table.rows.append([f"{length:,}", *(f"{result.accuracy:.1f}" for result in results if result.length == length)])
    for number, name in enumerate(MODELS):
        line(axes, number, options.lengths, [result.accuracy for result in results if result.model == name], name)
    powers_of_two(axes, options.lengths)
    axes.set(xlabel="tokens of the sequence", title="tokens copied right, %", ylim=(0, 104))
    legend_below(figure, axes, 2)
    order = "its tokens" if options.order == "forward" else "its tokens from the last one on"
    counts = ", ".join(f"{name} {count:,}" for name, count in parameters.items())
    note = (
        f"Per cent of tokens that are predicted right where those before are known; chance is "
        f"{100 / options.vocabulary:.1f}. A model reads a sequence of {options.vocabulary} random tokens and writes "
        f"{order}. {options.steps} steps of {options.batch_tokens:,} tokens each, lengths up to "
        f"{options.lengths[-1]:,}. Parameters: {counts}."
    )
    return Comparison(
        "Copies through one vector, and by attention", [table], {"": figure}, list(map(asdict, results)), [note]
    )
