"""Boxes: the objects in an image, each with a class, found by queries.

B batch    Q queries    K objects of an image, padded    N classes    G groups of noisy boxes
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from foveate.contracts import IGNORE, Output
from foveate.data.dataset import Dataset
from foveate.data.images.boxes import BoxedImage
from foveate.data.images.decoding import DamagedImage
from foveate.data.images.voc import CROWD
from foveate.errors import UserError
from foveate.forms.answers import Answer
from foveate.forms.checks import unseen_labels
from foveate.forms.form import Changes, Fit, Learned, MapRow, OutputForm
from foveate.forms.image import Fitted
from foveate.forms.label import count_labels
from foveate.forms.naming import DecoderNames, token_names
from foveate.forms.scored import ScoredForm, label_numbers
from foveate.metrics.attention_in_boxes import share_in_box
from foveate.metrics.detection import ScoredBoxes, detection_metrics, match_image
from foveate.metrics.resampling import Measured
from foveate.nn import box_corners, overlap
from foveate.viewer.marks import Mark

MOVED = 0.4
"""Noisy boxes are moved by up to this share of half their size, and their size changes by up to this share."""

RELABELLED = 0.2
"""Share of noisy boxes with a random label."""

LOOKED_AT = 16
"""Images in which the attention of queries is measured."""

USUAL_THRESHOLD = 0.5
"""The least score of an object that is shown, where nothing says another one."""

SAME = 0.7
"""Of boxes of one label that overlap by more than this share, a detector of ours finds the surest one. A decoder that
learned from few images finds some objects twice."""

WHOLE = (0.5, 0.5, 1.0, 1.0)
"""The box around a whole image: centre and size."""


@dataclass
class ShowObjects:
    """Which objects are shown."""

    threshold: float | None = None
    """The least score of an object that is shown. By default that with which as many objects were found in the
    validation as there are, or 0.5. Measures count all."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise UserError(f"threshold is {self.threshold}, but must be from 0 to 1")

    def least(self, learned: float | None = None) -> float:
        """The threshold: the one that was asked for, was learned, or is usual."""
        known = learned if self.threshold is None else self.threshold
        return USUAL_THRESHOLD if known is None else known


@dataclass
class FoundObject:
    """An object in an image."""

    label: str
    score: float
    """How sure the model is, 0 to 1."""
    box: tuple[float, ...]
    """Left, top, right and bottom in pixels."""
    query: int
    """The number of the query that found it."""

    @property
    def name(self) -> str:
        """Label and score."""
        return f"{self.label} {self.score:.2f}"


@dataclass(kw_only=True)
class BoxesAnswer(Answer):
    """The objects of an image, the surest one first."""

    size: tuple[int, int] = (0, 0)
    """Width and height of the image."""
    every: list[FoundObject] = field(default_factory=list, repr=False)
    """What was found, the surest one first."""
    threshold: float = field(default=0.0, repr=False)
    """The least score of an object that is shown."""
    scored: ScoredBoxes | None = field(default=None, repr=False, compare=False)
    """The same, as numbers."""
    queries: int = field(default=0, repr=False)
    """How many queries the model has, with those that found what another one is surer of."""

    @property
    def objects(self) -> list[FoundObject]:
        """The objects that are shown."""
        return [one for one in self.every if one.score >= self.threshold]

    @property
    def cells(self) -> list[str]:
        """Label, score and box of each object."""
        found = [f"{one.name} {' '.join(f'{side:.0f}' for side in one.box)}" for one in self.objects]
        return found or ["nothing"]

    @property
    def title(self) -> str:
        count = len(self.objects)
        return f"{count} objects" if count != 1 else "1 object"

    def json_values(self) -> dict[str, Any]:
        return {"place": self.given, "size": list(self.size), "objects": [asdict(one) for one in self.objects]}


@dataclass
class Boxes(ScoredForm, OutputForm):
    """Objects: targets `boxes` (B, K, 4), as shares of the image, and `labels` (B, K), with IGNORE for padding.

    Outputs have logits (B, Q, N), perhaps with one more of no object, and `boxes` (B, Q, 4). With `denoising` groups
    the model also reads `noisy_boxes` (B, G, K, 4) and `noisy_labels` (B, G, K) in training.
    """

    options: ClassVar[type[Any]] = ShowObjects
    eval_options: ClassVar[type[Any]] = ShowObjects
    metric: ClassVar[str] = "AP50"

    labels: Learned[dict[str, int]] = field(default_factory=dict)
    """How often each label occurs in training; the classes of the model in their order."""
    usual_box: Learned[tuple[float, ...]] = WHOLE
    """The mean box of the most frequent label's objects, to compare with: centre and size, as shares of the image."""
    denoising: Learned[int | None] = None
    """Groups of noisy boxes that the model reads."""
    queries: Learned[int | None] = None
    """The most objects that the model finds in an image."""
    same: Learned[float | None] = None
    """Of boxes of one label that overlap by more than this share, the surest one is found; None for all of them."""
    threshold: Learned[float | None] = None
    """The least score with which as many objects were found in the validation as there are."""

    def learn(self, train: Dataset[BoxedImage], reads: Any, architecture: Any) -> "Boxes":
        queries = max(architecture.queries, *(len(example.boxes) for example in train))
        labels = count_labels(label for example in train for label in example.labels)
        return Boxes(labels, mean_box(train, most_frequent(labels)), architecture.denoising, queries, SAME)

    @property
    def class_names(self) -> tuple[str, ...]:
        return tuple(self.labels)

    def in_order(self, names: Sequence[str]) -> "Boxes":
        return replace(self, labels={name: self.labels[name] for name in names})

    def sizes(self) -> dict[str, int]:
        """The queries are as many as the objects of an image at least."""
        queries = {} if self.queries is None else {"queries": self.queries}
        return {"classes": len(self.labels), **queries}

    def kinds(self, example: BoxedImage) -> set[str]:
        return set(example.labels)

    def check_examples(self, train: Dataset[BoxedImage], validation: Dataset[BoxedImage], example: str) -> None:
        known = {label for one in train for label in one.labels}
        if others := {label for one in validation for label in one.labels} - known:
            raise UserError(f"{validation.name} has the class '{min(others)}', which {train.name} does not have")

    def prepare(self, example: BoxedImage) -> list[tuple[np.ndarray, np.ndarray]]:
        """Corners in pixels and classes (K,), with IGNORE in the end for objects of classes that are not known."""
        numbers = {label: number for number, label in enumerate(self.labels)}
        known = [place for place, label in enumerate(example.labels) if label in numbers]
        boxes = np.array(example.boxes, np.float32).reshape(-1, 4)[known]
        labels = np.full(len(example.labels), IGNORE, np.int64)
        labels[: len(known)] = [numbers[example.labels[place]] for place in known]
        return [(boxes, labels)]

    def tensors(
        self,
        prepared: Sequence[tuple[np.ndarray, np.ndarray]],
        changes: Changes,
        generator: np.random.Generator | None,
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
        count = max(1, *(len(own) for _, own in prepared))
        boxes = np.full((len(prepared), count, 4), 0.5, np.float32)
        labels = np.full((len(prepared), count), IGNORE, np.int64)
        for row, ((corners, own), fit) in enumerate(zip(prepared, changes.fits, strict=True)):
            boxes[row, : len(corners)] = shares(corners, fit)
            labels[row, : len(own)] = own
        more = self._noisy(boxes, labels, generator) if generator is not None and self.denoising else {}
        targets = {"boxes": torch.from_numpy(boxes), "labels": torch.from_numpy(labels)}
        return more, targets, torch.from_numpy((labels != IGNORE).sum(1))

    def _noisy(self, boxes: np.ndarray, labels: np.ndarray, generator: np.random.Generator) -> dict[str, Tensor]:
        """Variants of the boxes in groups, as in Li et al. 2022 (https://arxiv.org/abs/2203.01305, section 4.1)."""
        noise = generator.uniform(-MOVED, MOVED, (len(boxes), self.denoising or 0, *boxes.shape[1:]))
        centre, size = boxes[:, None, :, :2], boxes[:, None, :, 2:]
        noisy = np.concatenate([centre + noise[..., :2] * size / 2, size * (1 + noise[..., 2:])], -1)
        others = generator.integers(0, len(self.labels), noise.shape[:-1])
        given = np.broadcast_to(labels[:, None], others.shape)
        drawn = (generator.random(others.shape) < RELABELLED) & (given != IGNORE)
        return {
            "noisy_boxes": torch.from_numpy(noisy.clip(1e-3, 1 - 1e-3).astype(np.float32)),
            "noisy_labels": torch.from_numpy(np.where(drawn, others, given)),
        }

    # -- answers

    def decide(
        self, model: nn.Module, inputs: dict[str, Tensor], prepared: Sequence[Fitted], options: ShowObjects
    ) -> list[BoxesAnswer]:
        output = model(**inputs)
        logits, boxes = output.logits.float(), box_corners(output.boxes.float()).cpu().numpy()
        with_nothing = logits.shape[-1] > len(self.labels)
        shares = (logits.softmax(-1)[..., :-1] if with_nothing else logits.sigmoid()).cpu()
        scores, labels = (part.numpy() for part in shares.max(-1))
        found = []
        for row, image in enumerate(prepared):
            width, height = image.fit.given
            corners = boxes[row].clip(0, 1) * np.array([width, height, width, height])
            scored = ScoredBoxes(corners, labels[row], scores[row])
            found.append(self._answer(scored, image.fit, options.least(self.threshold)))
        return found

    def scored_labels(self, output: Output, answer: BoxesAnswer) -> Tensor:
        """The label of each query that found an object; that of the surest one where none did."""
        labels = torch.full(output.logits.shape[:2], IGNORE)
        for one in answer.objects or answer.every[:1]:
            labels[0, one.query] = label_numbers([*self.labels], [one.label])[0]
        return labels

    def log_probs(self, logits: Tensor) -> Tensor:
        apart = logits.shape[-1] == len(self.labels)
        return nn.functional.logsigmoid(logits) if apart else logits.log_softmax(-1)

    def _answer(self, scored: ScoredBoxes, fit: Fit, threshold: float) -> BoxesAnswer:
        names, scores = [*self.labels], np.asarray(scored.scores)
        kept = np.argsort(-scores) if self.same is None else surest(scored, self.same)
        every = [
            FoundObject(
                names[scored.labels[query]],
                float(scores[query]),
                tuple(round(float(side), 1) for side in scored.boxes[query]),
                int(query),
            )
            for query in kept
        ]
        found = ScoredBoxes(scored.boxes[kept], scored.labels[kept], scores[kept])
        return BoxesAnswer(size=fit.given, every=every, threshold=threshold, scored=found, queries=len(scores))

    def settle(self, answers: Sequence[BoxesAnswer], examples: Sequence[BoxedImage]) -> None:
        objects = sum(len(example.boxes) for example in examples)
        scores = sorted((one.score for answer in answers for one in answer.every), reverse=True)
        if 0 < objects <= len(scores):  # halfway to the next score, so that rounding moves none across
            self.threshold = float(np.mean([*scores, 0.0][objects - 1 : objects + 1]))

    def metrics(self, answers: Sequence[BoxesAnswer], examples: Sequence[BoxedImage]) -> dict[str, float]:
        return self.measurable(answers, examples).all()

    def measurable(self, answers: Sequence[BoxesAnswer], examples: Sequence[BoxedImage]) -> Measured:
        """Detections and objects of each image are matched once."""
        found = [one.scored for one in answers if one.scored is not None]
        images = [*map(match_image, found, self._right(examples))]
        return Measured(len(images), lambda rows: detection_metrics([images[row] for row in rows]))

    def look_metrics(
        self,
        answers: Sequence[BoxesAnswer],
        examples: Sequence[BoxedImage],
        maps: Callable[[Any, Any], Sequence[Tensor]],
    ) -> dict[str, float]:
        """The share of the attention of queries that is inside of the box that each of them found, in the last layer,
        beside the box's share of the image: means over the objects of a few images."""
        inside, uniform = [], []
        found = [(example, answer) for example, answer in zip(examples, answers, strict=True) if answer.objects]
        for example, answer in found[:LOOKED_AT]:
            (width, height), side = answer.size, max(answer.size)
            for weights, one in zip(maps(example, answer), answer.objects, strict=False):
                left, top, right, bottom = one.box
                inside.append(share_in_box(weights, (left / side, top / side, right / side, bottom / side)))
                uniform.append((right - left) * (bottom - top) / (width * height))
        if not inside:
            return {}
        return {"attention_in_box": 100 * float(np.mean(inside)), "uniform_in_box": 100 * float(np.mean(uniform))}

    def _right(self, examples: Sequence[BoxedImage]) -> list[ScoredBoxes]:
        """The objects of each image, behind them those that are ignored; a class that the model does not know is one
        that it never finds."""
        numbers = {label: number for number, label in enumerate(self.labels)}
        found = []
        for example in examples:
            names = [*example.labels, *(thing.label for thing in example.ignored)]
            boxes = np.array([*example.boxes, *(thing.box for thing in example.ignored)], np.float64).reshape(-1, 4)
            labels = np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)
            crowds = np.array([False] * len(example.labels) + [thing.mark == CROWD for thing in example.ignored], bool)
            found.append(ScoredBoxes(boxes, labels, None, np.arange(len(names)) >= len(example.labels), crowds))
        return found

    def baselines(
        self, reads: Any, examples: Sequence[BoxedImage], train: Callable[[], Dataset[Any]]
    ) -> dict[str, dict[str, float]]:
        """One box of the most frequent class in each image: the whole image, or the mean box of that class; nothing
        where the classes of the training are not known, as of public weights."""
        if not any(self.labels.values()):
            return {}
        usual, right = most_frequent(self.labels), self._right(examples)
        label = np.array([[*self.labels].index(usual)])
        sizes = [reads.value(example).size for example in examples]
        ways = {}
        for name, share in (("the whole image", WHOLE), ("a mean box", self.usual_box)):
            corners = box_corners(torch.tensor([share])).numpy()
            boxes = [ScoredBoxes(corners * np.array([*size, *size]), label, np.ones(1)) for size in sizes]
            ways[f"{name}, always {usual}"] = detection_metrics([*map(match_image, boxes, right)])
        return ways

    def notes(self, examples: Sequence[BoxedImage]) -> list[str]:
        return unseen_labels("classes", [label for example in examples for label in example.labels], self.labels)

    # -- looking

    def axis(self, answer: BoxesAnswer) -> DecoderNames:
        """The queries, by what they found."""
        shown = {one.query: one.name for one in answer.objects}
        queries = token_names([shown.get(query, f"query {query}") for query in range(answer.queries)])
        return DecoderNames(queries, queries, "decoder", answer.queries)

    def rows(self, sight: Any, model: nn.Module, answer: BoxesAnswer, before: int) -> list[MapRow]:
        """Where the query of each object looked in the last layer; the surest query where nothing is shown."""
        cross = [site for site in sight.sites if site.endswith("cross")]
        if not cross:
            return []
        site = sight[cross[-1]]
        weights = site.weights()[0].float().mean(0).cpu()
        return [
            MapRow(one.name, weights[one.query], mark=Mark(one.name, one.box))
            for one in answer.objects or answer.every[:1]
        ]


def surest(scored: ScoredBoxes, most: float) -> np.ndarray:
    """The numbers of boxes, the surest first, of which no two of one label overlap by more than this share."""
    order = np.argsort(-np.asarray(scored.scores), kind="stable")
    corners, labels = torch.from_numpy(scored.boxes[order]), scored.labels[order]
    repeats = (overlap(corners[:, None], corners).numpy() > most) & (labels[:, None] == labels)
    kept = np.zeros(len(order), bool)
    for place, row in enumerate(repeats):
        kept[place] = not (row & kept).any()
    return order[kept]


def most_frequent(labels: Mapping[str, int]) -> str:
    """The label that occurs most often in training."""
    return max(labels, key=labels.__getitem__)


def mean_box(train: Dataset[BoxedImage], label: str) -> tuple[float, ...]:
    """The mean of a label's boxes in up to 200 images: centre and size, as shares of the image."""
    found = []
    for example in train.some(200):
        boxes = [box for box, own in zip(example.boxes, example.labels, strict=True) if own == label]
        with suppress(DamagedImage):
            size = example.read().size
            found += [shares(np.array([box]), Fit(size, size))[0] for box in boxes]
    return tuple(map(float, np.mean(found, 0))) if found else WHOLE


def shares(corners: np.ndarray, fit: Fit) -> np.ndarray:
    """Corners in pixels (K, 4) as centre and size in shares of the image, flipped as it was."""
    sides = corners / np.array([*fit.given, *fit.given], np.float32)
    found = np.concatenate([(sides[:, :2] + sides[:, 2:]) / 2, sides[:, 2:] - sides[:, :2]], 1)
    if fit.flipped:
        found[:, 0] = 1 - found[:, 0]
    return found
