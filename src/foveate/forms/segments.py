"""Segments: a label for each pixel of an image.

B batch    s side of the square that images are laid into    N classes
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, ClassVar

import numpy as np
import PIL.Image
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foveate.contracts import IGNORE
from foveate.data.dataset import Dataset
from foveate.data.images.decoding import DamagedImage
from foveate.data.images.masks import MaskedImage
from foveate.errors import UserError
from foveate.forms.answers import Answer
from foveate.forms.form import Changes, Fit, Learned, MapRow, OutputForm
from foveate.forms.image import Fitted
from foveate.forms.naming import DecoderNames, token_names
from foveate.forms.scored import MostLikely
from foveate.metrics.resampling import Measured
from foveate.metrics.segments import count_pixels, segment_metrics
from foveate.viewer.marks import Mark

COARSE = 32
"""Rows and columns of the places whose most frequent label is kept, to compare with."""

SEEN = 300
"""Images that these are counted in."""


@dataclass
class ShowSegments:
    """Which labels are shown."""

    least: float = 0.001
    """The least share of an image that a label must have to be shown."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        if not 0 <= self.least <= 1:
            raise UserError(f"least is {self.least}, but must be from 0 to 1")


@dataclass(kw_only=True)
class SegmentsAnswer(Answer):
    """The labels of the pixels of an image."""

    labels: tuple[str, ...] = field(default=(), repr=False)
    """Label n has the number n."""
    pixels: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), np.int64), repr=False, compare=False)
    """The number of each pixel's label (h, w)."""
    least: float = field(default=0.0, repr=False)
    """The least share of an image that is shown."""

    @property
    def shares(self) -> dict[str, float]:
        """The share of the image that each label has, the largest first."""
        counts = np.bincount(self.pixels.ravel(), minlength=len(self.labels)) / max(1, self.pixels.size)
        order = np.argsort(-counts, kind="stable").tolist()
        return {self.labels[n]: float(counts[n]) for n in order if counts[n] >= max(self.least, 1e-9)}

    @property
    def cells(self) -> list[str]:
        """Each label with its share."""
        return [f"{label} {share:.1%}" for label, share in self.shares.items()]

    @property
    def title(self) -> str:
        return f"{len(self.shares)} labels"

    def json_values(self) -> dict[str, Any]:
        """The shares, and the pixels row by row as runs: how many pixels in turn have which label."""
        runs = [[self.labels[number], sum(1 for _ in same)] for number, same in groupby(self.pixels.ravel().tolist())]
        return {"size": list(self.pixels.shape[::-1]), "shares": self.shares, "runs": runs}


@dataclass
class Segments(MostLikely, OutputForm):
    """A label for each pixel: targets `labels` (B, s·s) row by row, IGNORE for padding and for pixels that have none.
    Outputs have logits (B, s·s, N)."""

    options: ClassVar[type[Any]] = ShowSegments
    eval_options: ClassVar[type[Any]] = ShowSegments
    rare_kinds: ClassVar[bool] = True
    metric: ClassVar[str] = "mean_IoU"

    labels: Learned[tuple[str, ...]] = ()
    """The classes of the model in their order."""
    usual: Learned[tuple[tuple[int, ...], ...]] = ()
    """The most frequent label of each place of a coarse grid over the image, to compare with."""
    side: Learned[int] = 0
    """Height and width of the square that images are laid into."""

    def check_learned(self) -> None:
        numbers = {number for row in self.usual for number in row}
        if not self.labels or not numbers <= set(range(len(self.labels))) or len({*map(len, self.usual)}) != 1:
            raise UserError("the labels of pixels are missing, or the usual ones are no grid of their numbers")

    def learn(self, train: Dataset[MaskedImage], reads: Any, architecture: Any) -> "Segments":
        labels = train[0].labels
        counts = np.zeros((COARSE, COARSE, len(labels)), np.int64)
        for example in train.some(SEEN):
            with suppress(DamagedImage):
                mask = scaled(example.read_mask(), (COARSE, COARSE))
                counts += mask[..., None] == np.arange(len(labels))
        usual = counts.argmax(-1).tolist()
        return Segments(labels, tuple(map(tuple, usual)), reads.size)

    def extend(self, trained: "Segments", train: Dataset[MaskedImage]) -> "Segments":
        """With new labels behind the known ones."""
        new = (label for label in train[0].labels if label not in trained.labels)
        return replace(trained, labels=(*trained.labels, *new))

    def sizes(self) -> dict[str, int]:
        return {"classes": len(self.labels)}

    def kinds(self, example: MaskedImage) -> tuple[str, ...]:
        """The labels of its pixels."""
        return example.present

    def check_examples(self, train: Dataset[MaskedImage], validation: Dataset[MaskedImage], example: str) -> None:
        if validation[0].labels != (known := train[0].labels):
            names = next((one for one in validation[0].labels if one not in known), validation[0].labels[0])
            raise UserError(f"{validation.name} has other labels than {train.name}, such as '{names}'")

    def prepare(self, example: MaskedImage) -> list[Callable[[], np.ndarray]]:
        """The masks stay where they are, as the images do."""
        return [lambda: self._numbers(example)]

    def _numbers(self, example: MaskedImage) -> np.ndarray:
        """The mask of an example by the numbers of these labels; others come behind them."""
        mask = example.read_mask()
        if example.labels == self.labels:
            return mask
        known = {label: number for number, label in enumerate(self.labels)}
        table = np.array([known.get(label, len(known) + n) for n, label in enumerate(example.labels)])
        return np.where(mask == IGNORE, IGNORE, table[mask.clip(0)])

    def tensors(
        self,
        prepared: Sequence[Callable[[], np.ndarray]],
        changes: Changes,
        generator: np.random.Generator | None,
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
        labels = np.full((len(prepared), self.side, self.side), IGNORE, np.int64)
        for square, read, fit in zip(labels, prepared, changes.fits, strict=True):
            width, height = fit.scaled
            mask = scaled(read(), fit.scaled)
            square[:height, :width] = mask[:, ::-1] if fit.flipped else mask
        rows = torch.from_numpy(labels).flatten(1)
        return {}, {"labels": rows}, (rows != IGNORE).sum(1)

    # -- answers

    def decide(
        self, model: nn.Module, inputs: dict[str, Tensor], prepared: Sequence[Fitted], options: ShowSegments
    ) -> list[SegmentsAnswer]:
        side = inputs["pixels"].shape[-1]
        logits = model(**inputs).logits.float().mT.unflatten(-1, (side, side))
        return [
            SegmentsAnswer(labels=self.labels, pixels=self._pixels(own, image.fit), least=options.least)
            for own, image in zip(logits, prepared, strict=True)
        ]

    def _pixels(self, logits: Tensor, fit: Fit) -> np.ndarray:
        """The most probable label of each pixel of an image, of the logits (N, s, s) in its square."""
        width, height = fit.scaled
        whole = F.interpolate(logits[None, :, :height, :width], fit.given[::-1], mode="bilinear", align_corners=False)
        return whole[0].argmax(0).cpu().numpy()

    def metrics(self, answers: Sequence[SegmentsAnswer], examples: Sequence[MaskedImage]) -> dict[str, float]:
        return self.measurable(answers, examples).all()

    def measurable(self, answers: Sequence[SegmentsAnswer], examples: Sequence[MaskedImage]) -> Measured:
        return self._measured([one.pixels for one in answers], examples)

    def _measured(self, found: Sequence[np.ndarray], examples: Sequence[MaskedImage]) -> Measured:
        """Each mask is read and counted once."""
        pairs = zip(found, examples, strict=True)
        counts = np.array([count_pixels(pixels, self._numbers(one), len(self.labels)) for pixels, one in pairs])
        return Measured(len(found), lambda rows: segment_metrics(counts[[*rows]].sum(0)))

    def baselines(
        self, reads: Any, examples: Sequence[MaskedImage], train: Callable[[], Dataset[Any]]
    ) -> dict[str, dict[str, float]]:
        """The label that is most frequent in training at the place of each pixel."""
        usual = np.array(self.usual)
        found = [scaled(usual, reads.value(example).size) for example in examples]
        return {"the usual label of each place": self._measured(found, examples).all()}

    # -- looking

    def axis(self, answer: SegmentsAnswer) -> DecoderNames:
        """The queries, which have the names of their labels."""
        queries = token_names(self.labels)
        return DecoderNames(queries, queries, "decoder", len(self.labels))

    def rows(self, sight: Any, model: nn.Module, answer: SegmentsAnswer, before: int) -> list[MapRow]:
        """Where the query of each label that was found looked in the last layer."""
        cross = [site for site in sight.sites if site.endswith("cross")]
        if not cross:
            return []
        weights = sight[cross[-1]].weights()[0].float().mean(0).cpu()
        numbers: Mapping[str, int] = {label: number for number, label in enumerate(self.labels)}
        return [
            MapRow(label, weights[numbers[label]], mark=Mark(label, region=answer.pixels == numbers[label]))
            for label in answer.shares
        ]


def scaled(mask: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """A mask (h, w) of another width and height: each pixel has the number of the nearest one."""
    if mask.shape == size[::-1]:
        return mask
    image = PIL.Image.fromarray(mask.astype(np.int32))
    return np.asarray(image.resize(size, PIL.Image.Resampling.NEAREST)).astype(np.int64)
