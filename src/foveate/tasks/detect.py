"""Detection: boxes around the objects of an image, with a class each."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import PIL.Image
import torch
import tyro

from foveate.data.dataset import Dataset
from foveate.data.images.box_processor import BoxProcessor, shares
from foveate.data.images.boxes import BoxedImage, boxed_images
from foveate.data.images.decoding import flat, read_image, turn_upright
from foveate.errors import UserError, at_least
from foveate.forms.checks import unseen_labels
from foveate.forms.image_files import image_files, read_images, without_damaged
from foveate.metrics.detection import Boxes, detection_metrics
from foveate.nn import box_corners
from foveate.sight import look
from foveate.tasks.answers.found_objects import Detecting, FoundObject, FoundObjects
from foveate.tasks.former.predictor import Measured, Predictor
from foveate.tasks.former.recipe import Architecture, Training
from foveate.tasks.former.task import Examples, Task
from foveate.tasks.start.parts import FromImageEncoder, ImageEncoder
from foveate.training import Objective
from foveate.training.objectives.set_matching import FocalClasses, SetMatching, SoftmaxClasses
from foveate.viewer.detections import plot_detections

TOGETHER = 32
"""Images that are looked at together."""


@dataclass
class BoxedImages(Examples):
    """Which images to learn from: a COCO JSON file, or a folder with Pascal VOC annotations; and their size."""

    size: int = 128
    """Length of the longer side that images are scaled to."""
    augment: bool = True
    """Flip images and make them smaller in training."""
    batch: int = 16
    """Images of a batch."""
    validation_examples: int = 300
    """Images that each validation during training decides about."""

    def check(self) -> None:
        super().check()
        at_least(1, "size", self.size)


@dataclass
class Detect(Task[Architecture]):
    """Train a detector, which finds the objects in an image: a box and a class for each.

    `--config FILE` takes settings from a TOML or JSON file, in the tables of a trained model's config.json (examples,
    training, architecture, ...); a flag counts more than the file.
    """

    task = "detect"
    unit = "boxes"
    files = "FILE.json or FOLDER"
    takes = "image"
    metric = "AP50"
    processor = BoxProcessor
    options = Detecting
    start_parts = ImageEncoder()
    default_training = Training(
        usual_epochs=10,
        learning_rate=4e-4,
        schedule="cosine",
        usual_warmup=200,
        weight_decay=1e-4,
        clip=0.1,
        validate_every=500,
    )

    examples: Annotated[BoxedImages, tyro.conf.arg(name="")] = field(default_factory=BoxedImages)
    model: str = "detr-refined-tiny"
    """The preset to begin from: see `foveate models`."""
    out: Path = Path("runs/detect")
    """Folder for the trained model; a training that it holds is resumed."""
    start: FromImageEncoder = None

    def read(self, paths: Sequence[Path]) -> Dataset[BoxedImage]:
        return boxed_images(paths)

    def open(self) -> tuple[Dataset[BoxedImage], Dataset[BoxedImage]]:
        """As every task, without damaged files, so that none is met in the middle of a training."""
        train, validation = super().open()
        return (without_damaged(train), without_damaged(validation)) if self.examples.data else (train, validation)

    def check_examples(self, train: Dataset[BoxedImage], validation: Dataset[BoxedImage]) -> None:
        known: set[str] = set()
        most = self.architecture.queries  # type: ignore[attr-defined]
        for example in train:
            known.update(example.labels)
            if len(example.boxes) > most:
                raise UserError(
                    f"{example.place} has {len(example.boxes)} objects, but the model finds {most} at most: "
                    f"raise architecture.queries"
                )
        if others := {label for example in validation for label in example.labels} - known:
            raise UserError(f"{validation.name} has the class '{min(others)}', which {train.name} does not have")

    def fit(self, train: Dataset[BoxedImage]) -> BoxProcessor:
        counts = Counter(label for example in train for label in example.labels)
        usual = max(sorted(counts), key=counts.__getitem__)
        boxes = [
            shares(np.array([box]), example.read().size)[0]
            for example in train.some(200)
            for box, label in zip(example.boxes, example.labels, strict=True)
            if label == usual
        ]
        mean = np.mean(boxes, 0) if boxes else np.array([0.5, 0.5, 1, 1])
        labels = {label: counts[label] for label in sorted(counts)}
        denoising = self.architecture.denoising  # type: ignore[attr-defined]
        chosen = self.examples
        return BoxProcessor(chosen.size, labels, tuple(map(float, mean)), chosen.augment, denoising)

    def objective(self) -> Objective:
        softmax = self.architecture.no_object  # type: ignore[attr-defined]
        return SetMatching(SoftmaxClasses() if softmax else FocalClasses())

    def answer(self, predictor: Predictor, texts: Sequence[str], options: Detecting) -> list[FoundObjects]:
        """The objects in the image of each file; a file that cannot be read is reported and has none."""
        images = {place: turn_upright(image) for place, image in read_images(texts).items()}
        found = dict(zip(images, _detect(predictor, [*images.values()]), strict=True))
        labels = [*predictor.processor.labels]
        return [
            _found_objects(place, images[place].size, found[place], labels, options.threshold)
            if place in found
            else FoundObjects(place, (0, 0))
            for place in texts
        ]

    def expand(self, places: Sequence[str]) -> list[str]:
        return image_files(places)

    def measure(self, predictor: Predictor, examples: Sequence[BoxedImage], options: Detecting) -> Measured:
        labels, found, lines = [*predictor.processor.labels], [], []
        for begin in range(0, len(examples), TOGETHER):
            group = examples[begin : begin + TOGETHER]
            images = [example.read() for example in group]
            detections = _detect(predictor, images)
            found += [boxes for boxes, _ in detections]
            for example, image, each in zip(group, images, detections, strict=True):
                lines.append(_found_objects(example.place, image.size, each, labels, options.threshold).line)
        return Measured(lines, detection_metrics(found, _right(predictor, examples)))

    def baselines(
        self, predictor: Predictor, examples: Sequence[BoxedImage], options: Detecting
    ) -> dict[str, dict[str, float]]:
        """One box of the most frequent class in each image: the whole image, or the mean box of that class."""
        processor, right = predictor.processor, _right(predictor, examples)
        usual = max(processor.labels, key=processor.labels.__getitem__)
        label = np.array([[*processor.labels].index(usual)])
        sizes = [example.read().size for example in examples]
        ways = {}
        for name, share in (("the whole image", (0.5, 0.5, 1.0, 1.0)), ("a mean box", processor.usual_box)):
            corners = box_corners(torch.tensor([share])).numpy()
            boxes = [Boxes(corners * np.array([*size, *size]), label, np.ones(1)) for size in sizes]
            ways[f"{name}, always {usual}"] = detection_metrics(boxes, right)
        return ways

    def notes(self, predictor: Predictor, examples: Sequence[BoxedImage]) -> list[str]:
        labels = [label for example in examples for label in example.labels]
        return unseen_labels("classes", labels, predictor.processor.labels)

    def picture(self, predictor: Predictor, prediction: FoundObjects) -> Any:
        """The boxes over the image, and for each of the surest objects where its query looked in the last layer."""
        image = flat(turn_upright(read_image(Path(prediction.place)))).convert("RGB")
        inputs = predictor.processor.inputs([image])
        model: Any = predictor.model
        with torch.inference_mode(), look(model) as sight:
            predictor.forward(inputs)
        weights = sight[[site for site in sight.sites if site.endswith("cross")][-1]].weights()[0].mean(0).cpu()
        rows = columns = round(weights.shape[-1] ** 0.5)
        reach = rows * model.backbone.stride * max(image.size) / predictor.processor.size
        covered = (0.0, reach, reach, 0.0)
        maps = [weights[one.query].reshape(rows, columns).numpy() for one in prediction.objects]
        boxes = [(f"{one.label} {one.score:.2f}", one.box) for one in prediction.objects]
        return plot_detections(np.asarray(image), boxes, maps, covered)


def _detect(predictor: Predictor, images: Sequence[PIL.Image.Image]) -> list[tuple[Boxes, np.ndarray]]:
    """The detections in each image, in pixels, of all scores; and the query of each."""
    found = []
    for begin in range(0, len(images), TOGETHER):
        group = images[begin : begin + TOGETHER]
        output: Any = predictor.forward(predictor.processor.inputs(group))
        logits, boxes = output.logits.float(), box_corners(output.boxes.float()).cpu().numpy()
        softmax = logits.shape[-1] > len(predictor.processor.labels)
        shares = (logits.softmax(-1)[..., :-1] if softmax else logits.sigmoid()).cpu()
        scores, labels = (part.numpy() for part in shares.max(-1))
        for image, *each in zip(group, boxes, labels, scores, strict=True):
            width, height = image.size
            corners = each[0].clip(0, 1) * np.array([width, height, width, height])
            found.append((Boxes(corners, each[1], each[2]), np.arange(len(corners))))
    return found


def _found_objects(
    place: str, size: tuple[int, int], found: tuple[Boxes, np.ndarray], labels: Sequence[str], threshold: float
) -> FoundObjects:
    boxes, queries = found
    scores: Any = boxes.scores
    chosen = [number for number in np.argsort(-scores) if scores[number] >= threshold]
    objects = [
        FoundObject(
            labels[boxes.labels[number]],
            float(scores[number]),
            tuple(round(float(side), 1) for side in boxes.boxes[number]),
            int(queries[number]),
        )
        for number in chosen
    ]
    return FoundObjects(place, size, objects)


def _right(predictor: Predictor, examples: Sequence[BoxedImage]) -> list[Boxes]:
    """The objects of each image; a class that the model does not know is one that it never finds."""
    numbers: Mapping[str, int] = {label: number for number, label in enumerate(predictor.processor.labels)}
    others: dict[str, int] = {}
    found = []
    for example in examples:
        labels = [
            numbers[label] if label in numbers else others.setdefault(label, len(numbers) + len(others))
            for label in example.labels
        ]
        found.append(Boxes(np.array(example.boxes, np.float64).reshape(-1, 4), np.array(labels, np.int64)))
    return found
