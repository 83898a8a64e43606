"""Image classification: an image gets one of several labels."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import PIL.Image
import tyro
from rich.console import Console
from torch import Tensor

from foveate.data.dataset import Dataset
from foveate.data.images.augmentation import Augmentation
from foveate.data.images.decoding import read_image
from foveate.data.images.labelled import LabelledImage, labelled_images
from foveate.data.images.processor import ImageProcessor, choose_format
from foveate.errors import at_least
from foveate.inference.cpu import optimize_for_cpu
from foveate.tasks.answers.label_files import FileDecision, LabelFiles, label_counts
from foveate.tasks.examples.image_files import image_files, read_images, without_damaged
from foveate.tasks.predictor import Predictor
from foveate.tasks.recipe import Architecture
from foveate.tasks.start.parts import Body, FromBody
from foveate.tasks.task import Examples
from foveate.training import Objective, Training
from foveate.training.mixup import MixedLabels
from foveate.viewer.figures import plot_image_attention
from foveate.viewer.protocol import Input, LookResult


@dataclass
class Images(Augmentation, Examples):
    """Which images to learn from, a folder with one folder for each class or a table with path<TAB>label on each line,
    and what becomes of them."""

    size: int | None = None
    """Height and width that images are scaled to. By default their own, if all are square, equal and at most 256, else
    64."""

    def check(self) -> None:
        Examples.check(self)
        Augmentation.check(self)
        if self.size is not None:
            at_least(1, "size", self.size)


@dataclass
class ClassifyImage(LabelFiles[Architecture]):
    """Train an image classifier, which gives an image one of several labels.

    `--config FILE` takes settings from a TOML or JSON file, in the tables of a trained model's config.json (examples,
    training, architecture, ...); a flag counts more than the file.
    """

    task = "classify-image"
    unit = "images"
    takes = "image"
    example = "image"
    decided_together = 256
    worth_packing: ClassVar[int] = 16
    """Images from which on it is worth to lay the model out for the CPU."""
    processor = ImageProcessor
    start_parts = Body()
    default_training = Training(
        usual_epochs=10,
        learning_rate=4e-3,
        schedule="cosine",
        usual_warmup=100,
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
    start: FromBody = None

    def read(self, paths: Sequence[Path]) -> Dataset[LabelledImage]:
        return labelled_images(paths)

    def fit(self, train: Dataset[LabelledImage]) -> ImageProcessor:
        chosen = self.examples
        changes = {part.name: getattr(chosen, part.name) for part in fields(Augmentation)}
        return ImageProcessor(choose_format(train, chosen.size), label_counts(train), **changes)

    def examples_to_validate(
        self, predictor: Predictor, validation: Dataset[LabelledImage], console: Console
    ) -> Sequence[LabelledImage]:
        chosen = Dataset(validation.name, super().examples_to_validate(predictor, validation, console), validation.unit)
        readable = without_damaged(chosen)
        if len(readable) < len(chosen):
            console.print(readable.report, markup=False, highlight=False)
        return [*readable]

    def objective(self) -> Objective:
        return MixedLabels(super().objective())

    def expand(self, places: Sequence[str]) -> list[str]:
        return image_files(places)

    def read_files(self, places: Sequence[str]) -> dict[str, PIL.Image.Image]:
        return read_images(places)

    def decide(self, predictor: Predictor, contents: Sequence[Any], places: Sequence[str]) -> list[FileDecision]:
        if predictor.device.type == "cpu" and len(contents) >= self.worth_packing and not predictor.model.training:
            predictor = replace(predictor, model=optimize_for_cpu(predictor.model))
        return super().decide(predictor, contents, places)

    def inputs(self, predictor: Predictor, contents: Sequence[PIL.Image.Image]) -> dict[str, Tensor]:
        return {"pixels": predictor.processor.pixels(contents)}

    def picture(self, predictor: Predictor, prediction: FileDecision) -> Any:
        """The image under the attention of the model's last site.

        With a class token it is where this token looks, otherwise the mean over all places.
        """
        from foveate.tasks.looking.grids import grid_of, look_at_maps

        image = read_image(Path(prediction.place))
        inputs = self.inputs(predictor, [image])
        sight = look_at_maps(predictor.model, lambda: predictor.forward(inputs))
        if not sight.sites:
            return None
        heads = sight[sight.sites[-1]].weights()[0].mean(0).cpu()
        rows, columns, first = grid_of(heads.shape[-1])
        weights = heads[0] if first else heads.mean(0)
        pixels = predictor.processor.format.pixels(image).transpose(1, 2, 0)
        return plot_image_attention(pixels, weights[first:].reshape(rows, columns).numpy(), prediction.title)

    def look(
        self, predictor: Predictor, given: Input, max_length: int, sites: Sequence[str] | None = None
    ) -> LookResult:
        from foveate.tasks.looking.grids import look_at_image

        def label(image: PIL.Image.Image) -> str:
            return self.decide(predictor, [image], [""])[0].line.lstrip("\t")

        return look_at_image(predictor, given, max_length, sites, label)
