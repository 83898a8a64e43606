"""Keypoints: the named points of an object, such as the joints of a person, each found by a query.

B batch    K points
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from foveate.contracts import IGNORE, Output
from foveate.data.dataset import Dataset
from foveate.data.images.keypoints import PosedImage
from foveate.errors import UserError
from foveate.forms.answers import Answer
from foveate.forms.boxes import ShowObjects
from foveate.forms.form import Changes, Fit, Learned, MapRow, OutputForm
from foveate.forms.image import Fitted
from foveate.forms.naming import DecoderNames, token_names
from foveate.forms.scored import ScoredForm, label_numbers
from foveate.metrics.keypoints import point_metrics
from foveate.viewer.marks import Mark

SIDES = ("left", "right")
"""Words in the names of points that change places when an image is flipped."""


@dataclass
class FoundPoint:
    """A point of an image."""

    name: str
    x: float
    """Pixels from the left."""
    y: float
    """Pixels from the top."""
    score: float
    """How sure the model is that the point is in the image, 0 to 1."""
    spread: float
    """How far around the point the model looked, in pixels: the standard deviation."""


@dataclass(kw_only=True)
class PointsAnswer(Answer):
    """The points of an image."""

    size: tuple[int, int] = (0, 0)
    """Width and height of the image."""
    every: list[FoundPoint] = field(default_factory=list, repr=False)
    """All points, in the order of their names."""
    threshold: float = field(default=0.0, repr=False)
    """The least score of a point that is shown."""

    @property
    def points(self) -> list[FoundPoint]:
        """The points that are shown."""
        return [one for one in self.every if one.score >= self.threshold]

    @property
    def cells(self) -> list[str]:
        """Name and place of each point."""
        return [f"{one.name} {one.x:.0f} {one.y:.0f}" for one in self.points] or ["nothing"]

    @property
    def title(self) -> str:
        count = len(self.points)
        return f"{count} points" if count != 1 else "1 point"

    def json_values(self) -> dict[str, Any]:
        return {"size": list(self.size), "points": [asdict(one) for one in self.points]}


@dataclass
class Keypoints(ScoredForm, OutputForm):
    """Named points: targets `points` (B, K, 2), as shares of the image, and `labels` (B, K), 0 for a point that is in
    the image, IGNORE for one that is not. Outputs have logits (B, K), `points` and their `spread` (B, K)."""

    options: ClassVar[type[Any]] = ShowObjects
    eval_options: ClassVar[type[Any]] = ShowObjects
    rare_kinds: ClassVar[bool] = True
    metric: ClassVar[str] = "PCK"

    names: Learned[tuple[str, ...]] = ()
    """The points, in the order of the model's queries."""
    mean: Learned[tuple[tuple[float, float], ...]] = ()
    """Where each is in the mean, as shares of the image, to compare with."""

    def check_learned(self) -> None:
        if len(self.mean) != len(self.names) or not self.names:
            raise UserError(f"there are {len(self.names)} names of points, but {len(self.mean)} points")

    def learn(self, train: Dataset[PosedImage], reads: Any, architecture: Any) -> "Keypoints":
        names = train[0].names
        poses = [shares(example, reads.value(example).size) for example in reads.usable(some(train))]
        known = np.array(poses)
        counts = (~np.isnan(known)).sum(0).clip(1)
        mean = np.where(np.isnan(known).all(0), 0.5, np.nansum(known, 0) / counts)
        return Keypoints(names, tuple((float(across), float(down)) for across, down in mean))

    def extend(self, trained: "Keypoints", train: Dataset[PosedImage]) -> "Keypoints":
        """With new points behind the known ones; those are at the middle of an image in the mean pose."""
        new = [name for name in train[0].names if name not in trained.names]
        return Keypoints((*trained.names, *new), (*trained.mean, *((0.5, 0.5),) * len(new)))

    def sizes(self) -> dict[str, int]:
        return {"points": len(self.names)}

    def kinds(self, example: PosedImage) -> set[str]:
        """The points that are in the image."""
        return {name for name, point in zip(example.names, example.points, strict=True) if point is not None}

    def check_examples(self, train: Dataset[PosedImage], validation: Dataset[PosedImage], example: str) -> None:
        if others := set(validation[0].names) ^ set(train[0].names):
            raise UserError(f"{validation.name} and {train.name} have other points: '{min(others)}' is not in both")

    def prepare(self, example: PosedImage) -> list[np.ndarray]:
        """The points in pixels (K, 2), NaN for one that is not in the image."""
        points = dict(zip(example.names, example.points, strict=True))
        return [np.array([points.get(name) or (np.nan, np.nan) for name in self.names], np.float32)]

    def tensors(
        self, prepared: Sequence[np.ndarray], changes: Changes, generator: np.random.Generator | None
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
        points = np.stack([self.moved(one, fit) for one, fit in zip(prepared, changes.fits, strict=True)])
        inside = ~np.isnan(points).any(-1)
        targets = {
            "points": torch.from_numpy(np.nan_to_num(points, nan=0.5)),
            "labels": torch.from_numpy(np.where(inside, 0, IGNORE)),
        }
        return {}, targets, torch.from_numpy(inside.sum(1))

    def moved(self, points: np.ndarray, fit: Fit) -> np.ndarray:
        """Points in pixels as shares of the image; those of a flipped one, whose left and right change places."""
        found = points / np.array(fit.given, np.float32)
        if fit.flipped:
            found = found[[self.names.index(name) for name in map(self._opposite, self.names)]]
            found[:, 0] = 1 - found[:, 0]
        return found

    def _opposite(self, name: str) -> str:
        """The name of a point of the other side; the name itself where there is none."""
        for one, other in (SIDES, SIDES[::-1]):
            if one in name and (changed := name.replace(one, other)) in self.names:
                return changed
        return name

    # -- answers

    def decide(
        self, model: nn.Module, inputs: dict[str, Tensor], prepared: Sequence[Fitted], options: ShowObjects
    ) -> list[PointsAnswer]:
        output = model(**inputs)
        scores, points, spread = (
            part.float().cpu().numpy() for part in (output.logits.sigmoid(), output.points, output.spread)
        )
        found = []
        for row, image in enumerate(prepared):
            places = points[row].clip(0, 1) * np.array(image.fit.given)
            radius = spread[row] * max(image.fit.given)
            numbers = np.stack([*places.T, scores[row], radius], 1).astype(np.float64).round(3).tolist()
            every = [FoundPoint(name, *values) for name, values in zip(self.names, numbers, strict=True)]
            found.append(PointsAnswer(size=image.fit.given, every=every, threshold=options.least()))
        return found

    def scored_labels(self, output: Output, answer: PointsAnswer) -> Tensor:
        """That each point is there that is shown; all of them where none is."""
        labels = torch.full(output.logits.shape[:2], IGNORE)
        labels[0, label_numbers(self.names, [one.name for one in answer.points or answer.every])] = 0
        return labels

    def log_probs(self, logits: Tensor) -> Tensor:
        return nn.functional.logsigmoid(logits)[..., None]

    def metrics(self, answers: Sequence[PointsAnswer], examples: Sequence[PosedImage]) -> dict[str, float]:
        found = [np.array([(one.x, one.y) for one in answer.every]) for answer in answers]
        return point_metrics(found, self._right(examples), [answer.size for answer in answers])

    def _right(self, examples: Sequence[PosedImage]) -> list[np.ndarray]:
        return [self.prepare(example)[0] for example in examples]

    def baselines(
        self, reads: Any, examples: Sequence[PosedImage], train: Callable[[], Dataset[Any]]
    ) -> dict[str, dict[str, float]]:
        """The mean pose in each image."""
        sizes = [reads.value(example).size for example in examples]
        mean = [np.array(self.mean) * np.array(size) for size in sizes]
        return {"the mean pose": point_metrics(mean, self._right(examples), sizes)}

    # -- looking

    def axis(self, answer: PointsAnswer) -> DecoderNames:
        """The queries, which have the names of their points."""
        queries = token_names(self.names)
        return DecoderNames(queries, queries, "decoder", len(self.names))

    def rows(self, sight: Any, model: nn.Module, answer: PointsAnswer, before: int) -> list[MapRow]:
        """Where the query of each point looked to locate it."""
        cross = [site for site in sight.sites if site.endswith("cross")]
        if not cross:
            return []
        weights = sight[cross[-1]].weights()[0].float().mean(0).cpu()
        return [
            MapRow(one.name, weights[self.names.index(one.name)], mark=Mark(one.name, point=(one.x, one.y)))
            for one in answer.points or answer.every
        ]


def some(train: Dataset[Any]) -> Dataset[Any]:
    """A few hundred examples, to learn a mean from."""
    return Dataset(train.name, train.some(300), train.unit)


def shares(example: PosedImage, size: tuple[int, int]) -> np.ndarray:
    """The points of an example as shares of its image (K, 2); NaN for one that is not in it."""
    return np.array([point or (np.nan, np.nan) for point in example.points]) / np.array(size)
