"""Which score when: the time, memory and learning of dot, scaled dot, biaffine and additive attention, with and without
projections of keys and values.

What is learned is to recall: of N items, each the sum of the vectors of a name and of a value, the one whose name is
asked for; its value is the answer.
"""

import math
from dataclasses import asdict, dataclass
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from rich.console import Console
from torch import Tensor, nn

from foveate.attention import Additive, Biaffine, Dot, ScaledDot, Score, attend
from foveate.errors import at_least
from foveate.experiments.comparison import Comparison, DeviceOptions, Table, check_growing, on_device
from foveate.experiments.measuring import memory, side_by_side
from foveate.viewer.plain_figure import PlainFigure

SCORES = ("dot", "scaled dot", "biaffine", "additive", "additive, relu")

PROJECTIONS: dict[str, tuple[bool, bool]] = {
    "neither": (False, False),
    "keys": (True, False),
    "values": (False, True),
    "keys and values": (True, True),
}
"""Whether keys and values are projections of the items, by the name of the column."""

LEARNED, LAST = 0.95, 20
"""A layer has learned once this share of the answers of this many steps is right."""


@dataclass
class Scores(DeviceOptions):
    """Compare the scores of attention: time and memory by length, and what a layer learns with each."""

    lengths: tuple[int, ...] = (64, 256, 1024)
    """Numbers of queries and of keys whose time is measured, in 4 heads."""
    head_width: int = 64
    """Width of the queries and keys whose time is measured."""
    items: int = 12
    """Items to recall one of."""
    names: int = 32
    """Number of names, and of values, that there are."""
    width: int = 64
    """Width of the items' vectors."""
    steps: int = 600
    """Training steps of each layer at most, of 64 questions each."""
    learning_rate: float = 3e-3
    """Learning rate of AdamW."""
    repeats: int = 5
    """Measurements of each time, of which the median counts."""


OPTIONS = Scores


@dataclass(frozen=True)
class ScoreResult:
    """The result of one layer with a score."""

    score: str
    projected: str
    steps: int | None
    """Training steps until it had learned; None if it had not in the end."""
    accuracy: float
    """Of the last steps, in percent."""
    entropy: float
    """Of the weights in the last step, in nats."""


def make_score(name: str, width: int) -> Score:
    """The score of this name for queries and keys of a width."""
    if name.startswith("additive"):
        return Additive(width, width, width, torch.relu if name.endswith("relu") else torch.tanh)
    if name == "biaffine":
        return Biaffine(width, width)
    return Dot() if name == "dot" else ScaledDot()


class Recall(nn.Module):
    """One attention layer with a query, and a classifier of what it finds."""

    def __init__(self, options: Scores, score: str, projected: tuple[bool, bool]) -> None:
        super().__init__()
        width = options.width
        self.names, self.values = (nn.Embedding(options.names, width) for _ in range(2))
        self.key = nn.Linear(width, width, bias=False) if projected[0] else nn.Identity()
        self.value = nn.Linear(width, width, bias=False) if projected[1] else nn.Identity()
        self.score = make_score(score, width)
        self.output = nn.Linear(width, options.names)

    def forward(
        self, names: Int[Tensor, "B S"], values: Int[Tensor, "B S"], asked: Int[Tensor, "B"]
    ) -> tuple[Float[Tensor, "B N"], Float[Tensor, "B S"]]:
        """The logits of the value, and the weights of the items."""
        items = self.names(names) + self.values(values)
        query, keys = self.names(asked)[:, None], self.key(items)
        one_hot = torch.eye(items.shape[1]).expand(len(items), -1, -1)
        attended = attend(query, keys, torch.cat([self.value(items), one_hot], -1), self.score).squeeze(1)
        output, weights = attended.split([items.shape[-1], items.shape[1]], -1)
        return self.output(output), weights.detach()


@on_device
def run(options: Scores, console: Console) -> Comparison:
    """Measure and train all. Raises UserError for invalid sizes."""
    check_growing("lengths", options.lengths)
    for name in ("head_width", "items", "names", "width", "steps", "repeats"):
        at_least(1, name, getattr(options, name))
    at_least(options.items, "names", options.names)
    learned = []
    for score in SCORES:
        for projected in PROJECTIONS:
            learned.append(_learn(options, score, projected))
            message = f"{score}, projected {projected}: {_format(learned[-1])}"
            console.print(message, highlight=False)
    seconds = {
        length: side_by_side({s: _prepared_step(s, length, options.head_width) for s in SCORES}, options.repeats)
        for length in options.lengths
    }
    longest = options.lengths[-1]
    grown = {score: memory(_prepared_step, score, longest, options.head_width) for score in SCORES}
    return _report(options, learned, seconds, grown)


def _learn(options: Scores, score: str, projected: str) -> ScoreResult:
    torch.manual_seed(options.seed)
    model = Recall(options, score, PROJECTIONS[projected])
    optimizer = torch.optim.AdamW(model.parameters(), options.learning_rate)
    right, weights = [], torch.ones(1, 1)
    learned = None
    for step in range(1, options.steps + 1):
        names = torch.rand(64, options.names).topk(options.items).indices  # each name once
        values, index = torch.randint(options.names, names.shape), torch.randint(options.items, (64, 1))
        labels = values.gather(1, index).squeeze(1)
        logits, weights = model(names, values, names.gather(1, index).squeeze(1))
        optimizer.zero_grad()
        F.cross_entropy(logits, labels).backward()
        optimizer.step()
        right.append(float((logits.argmax(-1) == labels).float().mean()))
        if step >= LAST and sum(right[-LAST:]) >= LEARNED * LAST:
            learned = step
            break
    entropy = float(-torch.special.xlogy(weights, weights).sum(-1).mean())
    return ScoreResult(score, projected, learned, 100 * sum(right[-LAST:]) / len(right[-LAST:]), entropy)


def _format(result: ScoreResult) -> str:
    return f"{result.steps}" if result.steps else f"{result.accuracy:.0f} % in the end"


def _inputs(name: str, length: int, width: int) -> tuple[Score, Tensor, Tensor, Tensor]:
    queries, keys, values = (torch.randn(1, 4, length, width, requires_grad=True) for _ in range(3))
    return make_score(name, width), queries, keys, values


def _step(score: Score, queries: Tensor, keys: Tensor, values: Tensor) -> None:
    """Forward and backward."""
    attend(queries, keys, values, score).sum().backward()


def _prepared_step(name: str, length: int, width: int) -> partial[None]:
    return partial(_step, *_inputs(name, length, width))


def _report(
    options: Scores, learned: list[ScoreResult], seconds: dict[int, dict[str, float]], grown: dict[str, float | None]
) -> Comparison:
    longest = options.lengths[-1]
    cost = Table(
        ["score", *(f"{length:,} tokens, ms" for length in options.lengths), f"memory at {longest:,}, MiB"],
        title="Time of a forward and backward pass, and the memory that it adds",
    )
    for score in SCORES:
        times = (f"{1000 * seconds[length][score]:.1f}" for length in options.lengths)
        added = grown[score]
        cost.rows.append([score, *times, "" if added is None else f"{added / 2**20:.1f}"])
    by_case = {(result.score, result.projected): result for result in learned}
    right = Table(["score", *PROJECTIONS], title="Steps until 95 % of the items are recalled, by what is projected")
    sharp = Table(["score", *PROJECTIONS], title="Entropy of the weights then, nats")
    for score in SCORES:
        right.rows.append([score, *(_format(by_case[score, name]) for name in PROJECTIONS)])
        sharp.rows.append([score, *(f"{by_case[score, name].entropy:.2f}" for name in PROJECTIONS)])
    return Comparison(
        "Scores of attention",
        [cost, right, sharp],
        {"": _plot(by_case)},
        {"learned": [asdict(result) for result in learned], "seconds": seconds, "bytes": grown},
        [
            f"Time: 4 heads of width {options.head_width}. Recall: one of {options.items} items by its name; "
            f"steps of 64 questions, AdamW at {options.learning_rate:g}, width {options.width}; "
            f"guessing is right in {100 / options.names:.1f} %."
        ],
    )


def _plot(by_case: dict[tuple[str, str], ScoreResult]) -> PlainFigure:
    """Bars of the steps: a group for each score, a bar for each way to project."""
    figure = PlainFigure(figsize=(7, 2.8), dpi=144, layout="constrained")
    axes = figure.subplots()
    for number, name in enumerate(PROJECTIONS):
        places = [index + 0.2 * (number - 1.5) for index in range(len(SCORES))]
        axes.bar(places, [by_case[score, name].steps or math.nan for score in SCORES], 0.18, label=name)
    axes.set_xticks(range(len(SCORES)), SCORES)
    axes.set(ylabel="steps until learned")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(title="projected", fontsize="small", frameon=False, bbox_to_anchor=(1, 1), loc="upper left")
    return figure
