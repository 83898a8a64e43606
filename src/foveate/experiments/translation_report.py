"""The table, the notes and the picture of `attention_on_translation`."""

from collections.abc import Mapping
from dataclasses import dataclass

from foveate.contracts import Picture
from foveate.data.text.parallel_corpus import ParallelText
from foveate.experiments.alignment_error import AlignmentQuality
from foveate.experiments.comparison import Table
from foveate.experiments.gradient_variance import GradientVariance
from foveate.tasks.translator import Translator
from foveate.viewer import Alignment, plot_alignments

PICTURED = 2
"""The picture shows the first unseen message with this many names."""


@dataclass
class TranslatorResult:
    """The results of one translator."""

    bleu: float
    chrf: float
    signature: str
    alignment: AlignmentQuality | None
    """None for a decoder without attention."""
    messages: int
    """Number of messages for the alignment."""
    diagonal: float
    """The alignment error rate of a diagonal alignment."""
    training: dict[str, float]
    """The last metrics of its training."""


@dataclass
class Speeds:
    """Target tokens a second, by row."""

    training: dict[str, float]
    writing: dict[str, float]


def table(rows: Mapping[str, TranslatorResult], speeds: Speeds) -> Table:
    report = Table(["attention", "BLEU", "chrF", "AER", "on own name", "entropy", "training", "writing"])
    for name, row in rows.items():
        seen, cells = row.alignment, ["", "", ""]
        if seen is not None:
            cells = [f"{100 * seen.error_rate:.1f} %", f"{100 * seen.own_name:.1f} %", f"{seen.entropy:.2f}"]
        speed = [f"{speeds.training[name]:,.0f}", f"{speeds.writing[name]:,.0f}"]
        report.rows.append([name, f"{row.bleu:.1f}", f"{row.chrf:.1f}", *cells, *speed])
    return report


def notes(
    rows: Mapping[str, TranslatorResult], variances: Mapping[str, GradientVariance | None], steps: int, sentences: int
) -> list[str]:
    """Notes about the table."""
    first = next(iter(rows.values()))
    notes = [
        f"Each was trained for {steps:,} steps; greedy search of {sentences:,} unseen messages, {first.signature}.",
        f"AER: of {first.messages:,} messages of several names, read with their references, the share of target tokens "
        "that look most at a token of another name; who looks along the diagonal, at nothing of the text, has "
        f"{100 * first.diagonal:.1f} %. On own name: the weight that they give to tokens of their own name. Entropy: "
        "of their weights, in nats.",
        "Training, writing: target tokens a second, learning a batch and writing it step by step, all taking turns.",
    ]
    chosen = {name: variance for name, variance in variances.items() if variance is not None}
    return [*notes, *(_of_choices(name, rows[name].training, variance) for name, variance in chosen.items())]


def _of_choices(name: str, training: Mapping[str, float], variance: GradientVariance) -> str:
    """The effect of the learned baseline."""
    without, learned = variance.without, variance.learned
    return (
        f"{name}: the learned baseline leaves {100 * learned / without:.0f} % of the variance of REINFORCE's gradient "
        f"({without:,.0f} without it, {learned:,.0f} with it; choices drawn 20 times for one batch, after training). "
        "At the end of training the signal that multiplies the gradients of choices had, over all steps, those that "
        "took the mean too, a mean square of "
        f"{training['reward_square']:.2f} without it and of {training['advantage_square']:.2f} with it."
    )


def maps(translators: Mapping[str, Translator], unseen: ParallelText) -> Picture | None:
    """The attention maps of all translators for one message with its reference."""
    lines = zip(unseen, unseen.notes, strict=True)
    pairs = [pair for pair, emoji in lines if len(emoji.split()) == PICTURED][:1]
    alignments = []
    for source, target in pairs:
        for name, translator in translators.items():
            seen = translator.alignment(source, target)
            if seen is not None:
                alignments.append(Alignment(seen.weights, seen.target, seen.source, name))
    return plot_alignments(alignments, columns=3) if alignments else None
