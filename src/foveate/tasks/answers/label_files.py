"""What tasks share that give each file, such as an image or a sound, one of several labels."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import nlargest
from operator import itemgetter
from typing import Any, ClassVar, Protocol, runtime_checkable

from torch import Tensor

from foveate.data.dataset import Dataset
from foveate.errors import at_least, one_line
from foveate.tasks.answers.labelling import check_labels, choose_label, label_baseline, label_metrics
from foveate.tasks.examples.checks import unseen_labels
from foveate.tasks.predictor import Measured, Predictor
from foveate.tasks.protocols import NoOptions
from foveate.tasks.recipe import Architecture
from foveate.tasks.task import Task


@runtime_checkable
class LabelledFile(Protocol):
    """A file, what is in it and its label."""

    @property
    def place(self) -> str: ...

    @property
    def label(self) -> str: ...

    def read(self) -> Any: ...


@dataclass
class Deciding:
    """How decisions are shown."""

    top: int = 1
    """How many of the most probable labels to show, each with its probability."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        at_least(1, "top", self.top)


@dataclass
class FileDecision:
    """The label of a file."""

    place: str
    """The file."""
    label: str = ""
    """The most probable label; empty for a file that could not be used."""
    probability: float = 0.0
    probabilities: dict[str, float] = field(default_factory=dict)
    shown: Deciding = field(default_factory=Deciding, repr=False)

    @property
    def line(self) -> str:
        """The file, the label and its probability, and those of further labels, with tabs between them; nothing for a
        file that could not be used."""
        if not self.label:
            return ""
        best = self._best()
        return "\t".join([one_line(self.place), *(f"{one_line(name)}\t{share:.3f}" for name, share in best.items())])

    def json_values(self) -> dict[str, Any]:
        """Place, label and probability, and the probabilities of the most probable labels; or a place without label."""
        if not self.label:
            return {"place": self.place, "label": None}
        return {
            "place": self.place,
            "label": self.label,
            "probability": self.probability,
            "probabilities": self._best(),
        }

    def _best(self) -> dict[str, float]:
        return dict(nlargest(self.shown.top, self.probabilities.items(), key=itemgetter(1)))

    @property
    def title(self) -> str:
        """The label and its probability, above a picture."""
        return f"{self.label} {self.probability:.2f}"


@dataclass(kw_only=True)
class LabelFiles(Task[Architecture]):
    """A page says what is read from a file (`read_files`) and how it becomes the inputs of a model (`inputs`)."""

    files = "FOLDER"
    options = Deciding
    example: ClassVar[str]
    """What a file holds: "image"."""
    decided_together: ClassVar[int]
    """Files that are decided about together."""

    @abstractmethod
    def read_files(self, places: Sequence[str]) -> Mapping[str, Any]:
        """What is in each file; one that cannot be used is reported and left out."""

    @abstractmethod
    def inputs(self, predictor: Predictor, contents: Sequence[Any]) -> dict[str, Tensor]:
        """The inputs of the model for what is in some files."""

    @classmethod
    def eval_options(cls, recipe: Mapping[str, Any], where: str) -> NoOptions:
        return NoOptions()

    def hold_out(self, train: Dataset[Any], every: int) -> tuple[Dataset[Any], Dataset[Any]]:
        return train.held_out_of_kinds(every, lambda example: example.label)

    def check_examples(self, train: Dataset[Any], validation: Dataset[Any]) -> None:
        check_labels(
            train.name, [one.label for one in train], validation.name, [one.label for one in validation], self.example
        )

    def answer(self, predictor: Predictor, texts: Sequence[str], options: Deciding) -> list[FileDecision]:
        """The decision about each file; one that cannot be used is reported and gets no label."""
        options.check()
        contents = self.read_files(texts)
        found = {
            one.place: replace(one, shown=options) for one in self.decide(predictor, [*contents.values()], [*contents])
        }
        return [found.get(place) or FileDecision(place, shown=options) for place in texts]

    def measure(self, predictor: Predictor, examples: Sequence[LabelledFile], options: NoOptions) -> Measured:
        decisions: list[FileDecision] = []
        for begin in range(0, len(examples), self.decided_together):
            group = examples[begin : begin + self.decided_together]
            decisions += self.decide(predictor, [one.read() for one in group], [one.place for one in group])
        metrics = label_metrics([one.label for one in decisions], [one.label for one in examples])
        return Measured([one.line for one in decisions], metrics)

    def baselines(
        self, predictor: Predictor, examples: Sequence[LabelledFile], options: NoOptions
    ) -> dict[str, dict[str, float]]:
        return label_baseline(predictor.processor.labels, [one.label for one in examples])

    def notes(self, predictor: Predictor, examples: Sequence[LabelledFile]) -> list[str]:
        return unseen_labels("labels", [one.label for one in examples], predictor.processor.labels)

    def decide(self, predictor: Predictor, contents: Sequence[Any], places: Sequence[str]) -> list[FileDecision]:
        """The decision about what is in each of the files at `places`."""
        found = []
        for begin in range(0, len(contents), self.decided_together):
            output = predictor.forward(self.inputs(predictor, contents[begin : begin + self.decided_together]))
            for place, shares in zip(places[begin:], output.logits.float().softmax(-1).tolist(), strict=False):
                found.append(FileDecision(place, *choose_label(predictor.processor.labels, shares)))
        return found


def label_counts(examples: Iterable[LabelledFile]) -> dict[str, int]:
    """How often each label occurs, in alphabetical order."""
    counts = Counter(example.label for example in examples)
    return {label: counts[label] for label in sorted(counts)}
