"""Programming by prompt: accuracy of a language model's choices by the number of examples in its prompt.

(Brown et al. 2020, https://arxiv.org/abs/2005.14165.) Plain and calibrated (Zhao et al. 2021,
https://arxiv.org/abs/2102.09690).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from rich.console import Console

from foveate import tasks
from foveate.data.sources import open_source
from foveate.data.text.labelled import LabelledText
from foveate.errors import UserError, at_least
from foveate.experiments.comparison import Comparison, Options, Table, check_growing
from foveate.experiments.drawing import COLOURS, GREY, legend_below, line, panels
from foveate.forms.prompts import Prompt, Prompting
from foveate.models.text.causal_language_model import CausalLanguageModel
from foveate.tasks.completion.choices import ChoiceScorer, mean_shares
from foveate.tasks.completion.completer import Completer

Pairs = list[tuple[str, str]]
"""Texts with their labels."""


@dataclass
class PromptingExamples(Options):
    """Compare prompts by their number of examples."""

    model: Path = Path("smollm2")
    """Folder of a public language model, or a name of trained weights."""
    source: str = "movie-sentiment"
    """Labelled text by name: examples are from its training part, and measured is on its test part."""
    examples: tuple[int, ...] = (0, 1, 2, 4, 8)
    """Numbers of examples in the prompt."""
    draws: int = 3
    """How often the examples are drawn anew."""
    texts: int = 200
    """Texts of the test part to measure on, from all over it."""
    form: str = "Review: {input}\\nSentiment: {output}"
    """How an example is written."""


@dataclass(frozen=True)
class PromptAccuracy:
    """The accuracy with one draw of examples."""

    examples: int
    draw: int
    plain: float
    neutral: float
    """Calibrated by inputs that say nothing."""
    batch: float
    """Calibrated by all the texts."""


WAYS = {"plain": "plain", "neutral": "calibrated by neutral inputs", "batch": "calibrated by the batch"}


def run(options: PromptingExamples, console: Console) -> Comparison:
    """Measure all numbers of examples. Raises UserError for a model that is not a language model of a public folder."""
    check_growing("examples", [count + 1 for count in options.examples])
    at_least(1, "draws", options.draws)
    at_least(1, "texts", options.texts)
    task = tasks.load(options.model)
    if not isinstance(task, Completer):
        raise UserError(f"{options.model} is not a public language model, such as smollm2")
    model = cast(CausalLanguageModel, task.model)
    splits = open_source(options.source, task="classify", announce=console.print)
    train, test = _pairs(splits.train), _pairs(splits.test)
    test = [test[index] for index in np.linspace(0, len(test) - 1, min(options.texts, len(test))).round().astype(int)]
    labels = tuple(sorted({label for _, label in train}))
    prompting = Prompting(choices=labels, form=options.form)
    prompting.check()
    results = []
    for count in options.examples:
        for draw in range(options.draws if count else 1):
            scorer = ChoiceScorer(model, task.tokenizer, prompting)
            pairs = draw_examples(train, labels, count, options.seed + draw)
            scorer.set_prompt(Prompt("", prompting.lines(options.form), pairs))
            results.append(PromptAccuracy(count, draw, *_accuracies(scorer, test)))
            shares = ", ".join(f"{way} {getattr(results[-1], way):.1%}" for way in WAYS)
            console.print(f"{count} examples, draw {draw + 1}: {shares}")
    frequent = Counter(label for _, label in test).most_common(1)[0][1] / len(test)
    return _report(options, results, frequent, len(test))


def draw_examples(pairs: Pairs, labels: Sequence[str], count: int, seed: int) -> Pairs:
    """This many pairs, of all labels in turn, the first of them by chance."""
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(labels))
    by_label = {label: [pair for pair in pairs if pair[1] == label] for label in labels}
    chosen = [by_label[labels[order[index % len(labels)]]] for index in range(count)]
    return [group[int(generator.integers(len(group)))] for group in chosen]


def _pairs(text: LabelledText) -> Pairs:
    return [(example.text, example.label) for example in text]


def _accuracies(scorer: ChoiceScorer, test: Pairs) -> list[float]:
    """The share of right choices, in each of the WAYS."""
    plain = scorer.plain_scores([text for text, _ in test])
    shares = []
    for scores in (plain, plain - scorer.neutral_shares(), plain - mean_shares(plain)):
        answers = [scorer.prompting.choices[index] for index in scores.argmax(1).tolist()]
        shares.append(float(np.mean([answer == label for answer, (_, label) in zip(answers, test, strict=True)])))
    return shares


def _report(options: PromptingExamples, results: list[PromptAccuracy], frequent: float, texts: int) -> Comparison:
    table = Table(["examples", *(f"{name}, %" for name in WAYS.values())])
    means: dict[str, list[float]] = {way: [] for way in WAYS}
    figure, ((axes,),) = panels(1, 1, 6.4, 3.8)
    for count in options.examples:
        row = [str(count)]
        for way in means:
            shares = [100 * getattr(result, way) for result in results if result.examples == count]
            means[way].append(float(np.mean(shares)))
            several = f" ({min(shares):.1f} to {max(shares):.1f})" if len(shares) > 1 else ""
            row.append(f"{means[way][-1]:.1f}{several}")
        table.rows.append(row)
    for number, (way, shares) in enumerate(means.items()):
        line(axes, number, list(range(len(options.examples))), shares, WAYS[way])
        for index, count in enumerate(options.examples):
            values = [100 * getattr(result, way) for result in results if result.examples == count]
            axes.vlines(index + (number - 1) / 20, min(values), max(values), color=COLOURS[number], linewidth=0.8)
    style: dict[str, Any] = {"color": GREY, "linewidth": 0.8, "linestyle": ":"}
    axes.axhline(100 * frequent, label="always the most frequent label", **style)
    axes.set_xticks(range(len(options.examples)), [str(count) for count in options.examples])
    axes.set(xlabel="examples in the prompt", ylabel="right choices, %")
    legend_below(figure, axes, 2)
    note = (
        f"{options.model} on {texts} texts of {options.source}; the most frequent label is right for {frequent:.1%}. "
        f"Examples are drawn {options.draws} times, all labels in turn."
    )
    raw = [asdict(result) for result in results]
    return Comparison("Accuracy by the number of examples in the prompt", [table], {"": figure}, raw, [note])


OPTIONS = PromptingExamples
