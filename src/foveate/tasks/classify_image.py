"""Image classification: an image gets one of several labels."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import PIL.Image
import tyro

from foveate.data.dataset import Dataset
from foveate.data.image_processor import ImageProcessor, choose_format
from foveate.data.images import LabelledImage, labelled_images, read_image
from foveate.errors import at_least, printable
from foveate.tasks.image_files import image_files, read_or_report
from foveate.tasks.labelling import check_labels, choose_label, label_baseline, label_metrics
from foveate.tasks.predictor import Measured, Predictor
from foveate.tasks.recipe import Architecture
from foveate.tasks.start import FromWeights
from foveate.tasks.task import Examples, Task
from foveate.tasks.trained import NoOptions, unlearned
from foveate.training import Training
from foveate.viewer.figures import plot_image_attention
from foveate.viewer.protocol import Input, LookResult

BATCH = 256
"""Images that are decided about together."""


@dataclass
class Images(Examples):
    """Which images to learn from, a folder with one folder for each class or a table with path<TAB>label on each line,
    and what becomes of them."""

    size: int | None = None
    """Height and width that images are scaled to. By default their own, if all are square, equal and at most 256, else
    64."""
    augment: bool = True
    """Move and flip images in training."""

    def check(self) -> None:
        super().check()
        if self.size is not None:
            at_least(1, "size", self.size)


@dataclass
class ImageDecision:
    """The label of an image."""

    place: str
    """The file of the image."""
    label: str
    """The most probable label; empty for a file that could not be read."""
    probability: float
    probabilities: dict[str, float] = field(default_factory=dict)

    @property
    def line(self) -> str:
        """The file, the label and its probability, with tabs between them."""
        return f"{printable(self.place)}\t{printable(self.label)}\t{self.probability:.3f}" if self.label else ""


@dataclass
class ClassifyImage(FromWeights, Task[Architecture]):
    """Train an image classifier, which gives an image one of several labels.

    `--config FILE` takes settings from a TOML or JSON file, in the tables of a trained model's config.json (examples,
    training, architecture, ...); a flag counts more than the file.
    """

    task = "classify-image"
    families = (
        "resnet",
        "vit",
        "vgg",
        "googlenet",
        "alexnet",
        "zfnet",
        "efficientnet",
        "convnext",
        "cnn",
        "swin",
        "mvit",
        "imagegpt",
    )
    unit = "images"
    files = "FOLDER"
    takes = "image"
    processor = ImageProcessor
    usual = Training(
        epochs=10,
        learning_rate=4e-3,
        schedule="cosine",
        warmup=100,
        weight_decay=0.05,
        label_smoothing=0.1,
        validate_every=200,
        save_every=200,
    )

    examples: Annotated[Images, tyro.conf.arg(name="")] = field(default_factory=Images)
    model: str = "resnet20"
    """The preset to begin from: see `foveate models`."""
    out: Path = Path("runs/classify-image")
    """Folder for the trained model; a training that it holds is resumed."""

    def read(self, paths: Sequence[Path]) -> Dataset[LabelledImage]:
        return labelled_images(paths)

    def hold_out(self, learn: Dataset[LabelledImage], every: int) -> tuple[Dataset[Any], Dataset[Any]]:
        return learn.held_out(every, lambda example: example.label)

    def check_examples(self, learn: Dataset[LabelledImage], check: Dataset[LabelledImage]) -> None:
        check_labels(learn.name, [one.label for one in learn], check.name, [one.label for one in check], "image")

    def fit(self, learn: Dataset[LabelledImage]) -> ImageProcessor:
        counts = Counter(example.label for example in learn)
        labels = {label: counts[label] for label in sorted(counts)}
        return ImageProcessor(choose_format(learn, self.examples.size), labels, self.examples.augment)

    def answer(self, predictor: Predictor, texts: Sequence[str], options: NoOptions) -> list[ImageDecision]:
        """The decision about the image in each file; a file that cannot be read is reported and gets no label."""
        images = {place: image for place in dict.fromkeys(texts) if (image := read_or_report(place)) is not None}
        found = {one.place: one for one in _decide(predictor, [*images.values()], [*images])}
        return [found.get(place) or ImageDecision(place, "", 0.0) for place in texts]

    def expand(self, places: Sequence[str]) -> list[str]:
        return image_files(places)

    def measure(self, predictor: Predictor, examples: Sequence[LabelledImage], options: NoOptions) -> Measured:
        decisions: list[ImageDecision] = []
        for begin in range(0, len(examples), BATCH):
            group = examples[begin : begin + BATCH]
            decisions += _decide(predictor, [one.read() for one in group], [one.place for one in group])
        metrics = label_metrics([one.label for one in decisions], [one.label for one in examples])
        return Measured([one.line for one in decisions], metrics)

    def baselines(
        self, predictor: Predictor, examples: Sequence[LabelledImage], options: NoOptions
    ) -> dict[str, dict[str, float]]:
        return label_baseline(predictor.processor.labels, [one.label for one in examples])

    def notes(self, predictor: Predictor, examples: Sequence[LabelledImage]) -> list[str]:
        return unlearned("labels", [one.label for one in examples], predictor.processor.labels)

    def picture(self, predictor: Predictor, prediction: ImageDecision) -> Any:
        """The image under the attention of the model's last site.

        With a class token it is where this token looks, otherwise the mean over all places.
        """
        from foveate.tasks.looking.grids import grid_of, look_at_maps

        image = read_image(Path(prediction.place))
        inputs = {"pixels": predictor.processor.pixels([image])}
        sight = look_at_maps(predictor.model, lambda: predictor.forward(inputs))
        if not sight.sites:
            return None
        heads = sight[sight.sites[-1]].weights()[0].mean(0).cpu()
        rows, columns, first = grid_of(heads.shape[-1])
        weights = heads[0] if first else heads.mean(0)
        shown = predictor.processor.format.pixels(image).transpose(1, 2, 0)
        title = f"{prediction.label} {prediction.probability:.2f}"
        return plot_image_attention(shown, weights[first:].reshape(rows, columns).numpy(), title)

    def look(
        self, predictor: Predictor, given: Input, max_length: int, sites: Sequence[str] | None = None
    ) -> LookResult:
        from foveate.tasks.looking.grids import look_at_image

        decide = lambda image: _decide(predictor, [image], [""])[0]  # noqa: E731
        return look_at_image(predictor, given, max_length, sites, lambda image: decide(image).line.lstrip("\t"))


def _decide(predictor: Predictor, images: Sequence[PIL.Image.Image], places: Sequence[str]) -> list[ImageDecision]:
    found = []
    for begin in range(0, len(images), BATCH):
        output = predictor.forward({"pixels": predictor.processor.pixels(images[begin : begin + BATCH])})
        for place, shares in zip(places[begin:], output.logits.float().softmax(-1).tolist(), strict=False):
            found.append(ImageDecision(place, *choose_label(predictor.processor.labels, shares)))
    return found
