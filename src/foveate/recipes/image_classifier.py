"""A trained image classifier: its model, the format of its images, its labels, and what can be done with them."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import torch
from rich.console import Console
from torch import Tensor, nn

from foveate import bundle
from foveate.config import from_dict
from foveate.contracts import Picture
from foveate.data import open_source
from foveate.data.image_batches import normalize
from foveate.data.images import ImageFormat, LabelledImages, images_below, read_image
from foveate.errors import UserError, printable
from foveate.files import read_json
from foveate.recipes.labelling import check_label_count, choose_label, evaluate_labels
from foveate.recipes.texts import to_measure_on
from foveate.recipes.trained import Evaluation, NoOptions, Reading, opened, said
from foveate.sight import look
from foveate.viewer.figures import plot_image_attention

IMAGES = "images.json"

BATCH = 256
"""Images that are decided about together."""


@dataclass
class ImageDecision:
    """What a classifier says about an image."""

    place: str
    """The file of the image."""
    label: str
    """The most probable label; empty for a file that could not be read."""
    probability: float
    probabilities: dict[str, float] = field(default_factory=dict)
    """That of every label."""

    @property
    def line(self) -> str:
        """The file, the label and its probability, with tabs between them."""
        return f"{printable(self.place)}\t{printable(self.label)}\t{self.probability:.3f}" if self.label else ""


@dataclass
class _Saved:
    """What `images.json` says."""

    format: ImageFormat
    counts: dict[str, int]
    """How often each label occurs in training; the classes of the model in their order."""


@dataclass
class ImageClassifier:
    """A model with the image format and the labels that it was trained with."""

    model: nn.Module
    image_format: ImageFormat
    labels: dict[str, int]
    """The labels in the order of the model's classes, each with how often it occurs in training."""
    description: dict[str, Any]
    """What `config.json` of its folder says, as `Description`."""

    @classmethod
    def load(cls, folder: Path | str, device: str = "cpu") -> "ImageClassifier":
        """The classifier of a run folder, on a device ("auto": a GPU if there is one).

        Raises UserError, one line, for whatever is missing or damaged.
        """
        found = opened(folder, device)
        saved = from_dict(_Saved, read_json(found.files.path(IMAGES)), IMAGES)
        check_label_count(found.files.path(IMAGES), saved.counts, found.description.architecture["classes"])
        return cls(found.model, saved.format, saved.counts, found.files.description)

    @classmethod
    def run_options(cls, recipe: dict[str, Any], where: str) -> NoOptions:
        return NoOptions()

    eval_options = run_options

    def save(self, folder: Path | str) -> None:
        """Write everything that `load` needs."""
        saved = json.dumps(asdict(_Saved(self.image_format, self.labels)), ensure_ascii=False)
        files = {IMAGES: lambda path: path.write_text(saved, encoding="utf-8")}
        bundle.save(folder, self.description, self.model.state_dict(), files)

    def run(self, path: str | Path) -> ImageDecision:
        """Decide about the image in one file."""
        (decision,) = self.classify([read_image(Path(path))], [str(path)])
        return decision

    def expand(self, places: Sequence[str]) -> list[str]:
        """The files that are named, and all images in the folders that are named."""
        return [str(file) for place in places for file in _files(Path(place))]

    def answer(self, texts: Sequence[str], options: NoOptions) -> list[ImageDecision]:
        """The decision about the image in each file; a file that cannot be read is reported and gets no label."""
        images = {place: image for place in dict.fromkeys(texts) if (image := _read_or_report(place)) is not None}
        found = {decision.place: decision for decision in self.classify([*images.values()], [*images])}
        return [found.get(place) or ImageDecision(place, "", 0.0) for place in texts]

    def classify(self, images: Sequence[PIL.Image.Image], places: Sequence[str] = ()) -> list[ImageDecision]:
        """Decide about many images; `places` say what to call them."""
        names = list(places) or [""] * len(images)
        return list(self._decisions(images, names))

    def _decisions(self, images: Sequence[PIL.Image.Image], places: Sequence[str]) -> Iterator[ImageDecision]:
        for begin in range(0, len(images), BATCH):
            with torch.inference_mode():
                logits = self.model(self.pixels(images[begin : begin + BATCH])).logits
            for place, shares in zip(places[begin:], logits.float().softmax(-1).tolist(), strict=False):
                yield ImageDecision(place, *choose_label(self.labels, shares))

    def pixels(self, images: Sequence[PIL.Image.Image]) -> Tensor:
        """Images as the model reads them, (B, C, h, w)."""
        device = next(self.model.parameters()).device
        return normalize(np.stack([self.image_format.pixels(image) for image in images])).to(device)

    def too_long(self, texts: Sequence[str]) -> list[int]:
        """Images have no length."""
        return []

    def reading(self, text: str) -> Reading:
        """What the model is given to read the image in the file `text`, and what to call the places that it attends to.

        Places of a grid are named by row and column; a place before them is that of the class token.
        """
        inputs = {"pixels": self.pixels([read_image(Path(text))])}
        with torch.inference_mode(), look(self.model) as sight:
            self.model(**inputs)
        places = sight[sight.sites[0]].shape[-1] if sight.sites else 0
        rows, columns, first = _grid(places)
        pieces = [*["class"] * first, *(f"{row + 1},{column + 1}" for row in range(rows) for column in range(columns))]
        return Reading(inputs, pieces, len(pieces))

    def picture(self, prediction: ImageDecision) -> Picture | None:
        """The image under the attention of the model's last site; None if it does not attend.

        With a class token it is where this token looks, otherwise the mean over all places.
        """
        image = read_image(Path(prediction.place))
        with torch.inference_mode(), look(self.model) as sight:
            self.model(self.pixels([image]))
        if not sight.sites:
            return None
        heads = sight[sight.sites[-1]].weights()[0].mean(0).cpu()
        rows, columns, first = _grid(heads.shape[-1])
        weights = heads[0] if first else heads.mean(0)
        shown = self.image_format.pixels(image).transpose(1, 2, 0)
        title = f"{prediction.label} {prediction.probability:.2f}"
        return plot_image_attention(shown, weights[first:].reshape(rows, columns).numpy(), title)

    def evaluate(self, data: Sequence[Path], options: NoOptions, console: Console) -> Evaluation:
        """Accuracy and macro F1, beside always giving the most frequent label of the training images."""
        source = said(self.description, "text", "source", kind=str | None)
        images = to_measure_on(
            source, data, lambda: open_source(source, task="classify-image"), LabelledImages.from_paths, "FOLDER"
        )
        console.print(images.report, markup=False, highlight=False)
        examples = list(images)
        right = [example.label for example in examples]
        decisions: list[ImageDecision] = []
        for begin in range(0, len(examples), BATCH):
            group = examples[begin : begin + BATCH]
            decisions += self.classify([one.read() for one in group], [one.place for one in group])
        preset = said(self.description, "model", kind=str)
        return evaluate_labels(preset, self.labels, decisions, right, "images")


def _files(place: Path) -> list[Path]:
    if place.is_dir():
        if not (files := images_below(place)):
            raise UserError(f"{place} has no images")
        return files
    return [place]


def _read_or_report(place: str) -> PIL.Image.Image | None:
    try:
        return read_image(Path(place))
    except UserError as error:
        print(error, file=sys.stderr)
        return None


def _grid(places: int) -> tuple[int, int, int]:
    """Rows and columns of a square grid of so many places, and how many places are before it."""
    for first in (0, 1):
        side = round((places - first) ** 0.5)
        if side * side == places - first:
            return side, side, first
    return 1, places, 0
