"""A label: one of several for a whole example."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from heapq import nlargest
from itertools import chain
from operator import itemgetter
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor, nn

from foveate.contracts import Output
from foveate.data.dataset import Dataset
from foveate.data.table.several import join, separate
from foveate.errors import UserError, at_least
from foveate.forms.answers import Answer
from foveate.forms.balance import Balanced, class_metric, label_weights, one_answer, several_weights
from foveate.forms.checks import unseen_labels
from foveate.forms.form import Changes, Learned, MapRow, OutputForm
from foveate.forms.label_details import HOLDS, Decided, DecidedSeveral, MeasureLabels
from foveate.forms.scored import ScoredForm, label_numbers
from foveate.interop.layout import Scores
from foveate.metrics.classification import accuracy, macro_f1
from foveate.metrics.several_labels import several_label_metrics


@dataclass
class ShowLabels:
    """How labels are shown."""

    top: int = 1
    """How many of the most probable labels to show, each with its probability."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        at_least(1, "top", self.top)


@dataclass(kw_only=True)
class LabelAnswer(Answer):
    """The label of an input."""

    label: str = ""
    """The most probable label; empty for an empty input."""
    probability: float = 0.0
    probabilities: dict[str, float] = field(default_factory=dict)
    """Those of all labels."""
    top: int = field(default=1, repr=False)
    """How many labels are shown."""

    @property
    def decided(self) -> Sequence[str]:
        """What is answered: one label."""
        return (self.label,)

    @property
    def cells(self) -> list[str]:
        """The label and its probability, and those of further labels."""
        return [cell for label, share in self._best().items() for cell in (label, f"{share:.3f}")] if self.label else []

    def json_values(self) -> dict[str, Any]:
        """Label and probability, and the probabilities of the most probable labels."""
        if not self.label:
            return {"label": None}
        return {"label": self.label, "probability": self.probability, "probabilities": self._best()}

    @property
    def title(self) -> str:
        return f"{self.label} {self.probability:.2f}"

    def _best(self) -> dict[str, float]:
        return dict(nlargest(self.top, self.probabilities.items(), key=itemgetter(1)))


@dataclass(kw_only=True)
class LabelsAnswer(LabelAnswer):
    """The labels of an input to which several may apply: their probabilities do not add up to 1."""

    @property
    def labels(self) -> list[str]:
        """Those that hold; none where all are improbable."""
        return [label for label, share in self.probabilities.items() if share >= HOLDS]

    @property
    def decided(self) -> Sequence[str]:
        """What is answered: the labels that hold."""
        return self.labels

    def json_values(self) -> dict[str, Any]:
        """The labels that hold as well."""
        return {**super().json_values(), "labels": self.labels}

    def _best(self) -> dict[str, float]:
        return dict(nlargest(max(self.top, len(self.labels)), self.probabilities.items(), key=itemgetter(1)))


@dataclass(kw_only=True)
class NumbersAnswer(Answer):
    """Numbers that a model gives an input, such as how good it is."""

    numbers: dict[str, float] = field(default_factory=dict)
    """Each by its name; empty for an empty input."""

    @property
    def cells(self) -> list[str]:
        """The number, or each of several behind its name."""
        shown = [(name, f"{number:.4f}") for name, number in self.numbers.items()]
        return [cell for pair in shown for cell in pair[len(shown) == 1 :]]


@dataclass
class Label(Balanced, ScoredForm, OutputForm):
    """One of several labels: targets `labels` (B, 1), and outputs with logits (B, N) or (B, 1, N)."""

    options: ClassVar[type[Any]] = ShowLabels
    eval_options: ClassVar[type[Any]] = MeasureLabels

    labels: Learned[dict[str, int]] = field(default_factory=dict)
    """How often each label occurs in training; the classes of the model in their order."""
    several: bool = field(default=False, kw_only=True)
    """An example may have several labels, or none, and each has a probability of its own: the labels of a cell a|b, of
    a list in JSON, or of a column for each (--columns label=toxic,rude)."""
    scores: Learned[Scores] = field(default="softmax", kw_only=True)
    """What the logits are; what foveate trains decides between labels."""

    def learn(self, train: Dataset[Any], reads: Any, architecture: Any) -> "Label":
        return replace(self, labels=self._count(train), scores="sigmoid" if self.several else "softmax")

    def extend(self, trained: "Label", train: Dataset[Any]) -> "Label":
        """With new labels behind the known ones."""
        found = self.learn(train, None, None)
        return replace(found, labels=dict.fromkeys(trained.labels, 0) | found.labels)

    @property
    def class_names(self) -> tuple[str, ...]:
        return tuple(self.labels)

    def in_order(self, names: Sequence[str]) -> "Label":
        return replace(self, labels={name: self.labels[name] for name in names})

    def _count(self, train: Dataset[Any]) -> dict[str, int]:
        return count_labels(chain.from_iterable(map(self.labels_of, train)))

    @property
    def has_several(self) -> bool:
        """Whether an example may have several labels: as the setting says, or a public model."""
        return self.several or self.scores == "sigmoid"

    def labels_of(self, example: Any) -> tuple[str, ...]:
        """The labels of an example."""
        return self.named_in(example.label)

    def named_in(self, cell: str) -> tuple[str, ...]:
        """The labels that the cell of a table names: one, unless an example may have several."""
        return tuple(separate(cell)) if self.has_several else (cell,)

    def sizes(self) -> dict[str, int]:
        return {"classes": len(self.labels)}

    def kinds(self, example: Any) -> tuple[str, ...]:
        return self.labels_of(example)

    def check_examples(self, train: Dataset[Any], validation: Dataset[Any], example: str) -> None:
        labels, others = ([*chain.from_iterable(map(self.labels_of, part))] for part in (train, validation))
        check_labels(train.name, labels, validation.name, others, example, 1 if self.several else 2)

    def prepare(self, example: Any) -> list[tuple[int, ...]]:
        """The numbers of its labels."""
        return [tuple(self._numbers[label] for label in self.labels_of(example))]

    @property
    def _numbers(self) -> dict[str, int]:
        if len(found := self.__dict__.get("_by_label", {})) != len(self.labels):
            found = self.__dict__["_by_label"] = {label: number for number, label in enumerate(self.labels)}
        return found

    def tensors(
        self, prepared: Sequence[tuple[int, ...]], changes: Changes, generator: np.random.Generator | None
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
        targets = self.several_targets(prepared) if self.several else self.targets(torch.tensor(prepared))
        if changes.partners is not None:
            targets |= {f"mixed_{name}": values[changes.partners] for name, values in targets.items()}
            targets["mixed_share"] = torch.full((len(prepared),), changes.share)
        return {}, targets, torch.full((len(prepared),), len(self.labels) if self.several else 1)

    def targets(self, labels: Int[Tensor, "B 1"]) -> dict[str, Tensor]:
        """The label of each example, and what its loss is multiplied by, where classes are balanced."""
        return {"labels": labels, **({"label_weights": label_weights(self.labels, labels)} if self.balance else {})}

    def several_targets(self, prepared: Sequence[tuple[int, ...]]) -> dict[str, Tensor]:
        """Which labels hold (B, N), and what the loss of each is multiplied by, where classes are balanced."""
        holds = torch.zeros(len(prepared), len(self.labels))
        for row, numbers in enumerate(prepared):
            holds[row, list(numbers)] = 1.0
        weights = {"label_weights": several_weights(self.labels, holds)} if self.balance else {}
        return {"labels": holds.long(), "holds": holds, **weights}

    def decide(
        self, model: nn.Module, inputs: dict[str, Tensor], prepared: Sequence[Any], options: Any
    ) -> Sequence[Any]:
        logits = model(**inputs).logits
        logits = (logits if logits.ndim == 2 else logits[:, 0]).float()
        if self.scores == "number":
            return [NumbersAnswer(numbers=dict(zip(self.labels, row, strict=True))) for row in logits.tolist()]
        apart = self.scores == "sigmoid"
        kind, top, found = LabelsAnswer if apart else LabelAnswer, getattr(options, "top", 1), []
        for row in (logits.sigmoid() if apart else logits.softmax(-1)).tolist():
            label, probability, by_label = choose_label(self.labels, row)
            found.append(kind(label=label, probability=probability, probabilities=by_label, top=top))
        return found

    def check_measured(self) -> None:
        if self.scores == "number":
            raise UserError("this model gives numbers, and foveate eval measures labels")

    @property
    def metric(self) -> str:  # type: ignore[override]
        return "macro_f1" if self.has_several else class_metric(self.labels)

    def remarks(self, answers: Sequence[LabelAnswer], examples: Sequence[Any]) -> list[str]:
        found, right = ([join(one) for one in side] for side in self._sides(answers, examples))
        return one_answer(found, right)

    def _sides(
        self, answers: Sequence[LabelAnswer], examples: Sequence[Any]
    ) -> tuple[list[Sequence[str]], list[Sequence[str]]]:
        """The labels of answers, and those that are right."""
        return [one.decided for one in answers], [self.labels_of(one) for one in examples]

    def decided(self, answers: Sequence[LabelAnswer], examples: Sequence[Any]) -> Decided:
        found, right = self._sides(answers, examples)
        given = [one.given for one in answers]
        if self.has_several:
            return DecidedSeveral(found, right, given, probabilities=[one.probabilities for one in answers])
        one, other = ([label for (label,) in side] for side in (found, right))
        return Decided(one, other, given, [answer.probability for answer in answers])

    def metrics(self, answers: Sequence[LabelAnswer], examples: Sequence[Any]) -> dict[str, float]:
        return self.metrics_of([one.decided for one in answers], examples)

    def metrics_of(self, found: Sequence[Sequence[str]], examples: Sequence[Any]) -> dict[str, float]:
        """The metrics of answering these labels."""
        right = [self.labels_of(one) for one in examples]
        if self.has_several:
            return several_label_metrics(found, right)
        return label_metrics([own for (own,) in found], [own for (own,) in right])

    def baselines(
        self, reads: Any, examples: Sequence[Any], train: Callable[[], Dataset[Any]]
    ) -> dict[str, dict[str, float]]:
        """Always the label that is most frequent in training; nothing where that is not known, as of public weights."""
        if not any(self.labels.values()):
            return {}
        majority = max(self.labels, key=self.labels.__getitem__)
        return {f"always {majority}": self.metrics_of([(majority,)] * len(examples), examples)}

    def notes(self, examples: Sequence[Any]) -> list[str]:
        right = [*chain.from_iterable(map(self.labels_of, examples))]
        return [f"{len(self.labels)} labels", *unseen_labels("labels", right, self.labels)]

    @property
    def score_name(self) -> str:  # type: ignore[override]
        return "number" if self.scores == "number" else "log-probability"

    def scored_labels(self, output: Output, answer: Any) -> Tensor:
        """That of the answer; the first of several numbers."""
        return torch.tensor([label_numbers([*self.labels], [getattr(answer, "label", next(iter(self.labels)))])])

    def named(self, text: str, answer: Any) -> Any:
        (number,) = label_numbers([*self.labels], [text])
        return LabelAnswer(label=[*self.labels][number])

    def scored_answer(self, labels: Tensor, answer: Any) -> str:
        return [*self.labels][int(labels)]

    def log_probs(self, logits: Tensor) -> Tensor:
        if self.scores == "softmax":
            return super().log_probs(logits)
        logits = logits if logits.ndim == 3 else logits[:, None]
        return logits if self.scores == "number" else nn.functional.logsigmoid(logits)

    def rows(self, sight: Any, model: nn.Module, answer: Any, before: int) -> list[MapRow]:
        return pooled_row(answer.title, sight, model, before)


def pooled_row(name: str, sight: Any, model: nn.Module, before: int) -> list[MapRow]:
    """The last site: where the token that decides looked, or the mean of all places where there is none."""
    if not sight.sites:
        return []
    site = sight.sites[-1]
    heads = sight[site].weights()[0].float().cpu()
    weights = heads.mean(0)
    pooling = getattr(model.config, "pooling", None)
    first = (before > 0 and pooling != "patches") or pooling == "first"
    title = site if len(heads) == 1 else f"{site}, mean of {len(heads)} heads"
    return [MapRow(name, weights[0] if first else weights[before:].mean(0), site=title)]


def count_labels(labels: Iterable[str]) -> dict[str, int]:
    """How often each label occurs, in alphabetical order."""
    counts = Counter(labels)
    return {label: counts[label] for label in sorted(counts)}


def check_labels(
    train_name: str, train: Sequence[str], validation_name: str, validation: Sequence[str], example: str, least: int = 2
) -> None:
    """Raise UserError if there is nothing to decide, or a label that cannot be learned.

    `train` and `validation` are the labels of the data that these names stand for; an `example` is a "text".
    """
    labels = set(train)
    if not labels:
        raise UserError(f"{train_name}: no {example} has a label")
    if len(labels) < least:
        raise UserError(f"{train_name}: every {example} has the label '{train[0]}'; deciding takes two labels")
    if others := set(validation) - labels:
        raise UserError(f"{validation_name} has the label '{min(others)}', which {train_name} does not have")


def choose_label(labels: Iterable[str], probabilities: Sequence[float]) -> tuple[str, float, dict[str, float]]:
    """The most probable label, its probability, and that of every label."""
    by_label = dict(zip(labels, probabilities, strict=True))
    best = max(by_label, key=by_label.__getitem__)
    return best, by_label[best], by_label


def label_metrics(found: Sequence[str], right: Sequence[str]) -> dict[str, float]:
    """Accuracy and macro F1 of labels, from 0 to 100."""
    return {"accuracy": accuracy(found, right), "macro_f1": macro_f1(found, right)}
