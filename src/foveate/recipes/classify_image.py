"""Training an image classifier: labelled images, a format, a model and accuracy, brought together."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated

import torch
import tyro
from rich.console import Console
from torch import nn

from foveate.data import Splits, open_source
from foveate.data.image_batches import ImageBatches, choose_format
from foveate.data.images import LabelledImages, images_digest, pixels_digest
from foveate.errors import at_least
from foveate.recipes.image_classifier import ImageClassifier
from foveate.recipes.labelling import check_labels
from foveate.recipes.measures import accuracy, macro_f1
from foveate.recipes.recipe import Architecture, Recipe
from foveate.recipes.texts import learn_and_check, spread
from foveate.training import Training, Validation


@dataclass
class Images:
    """Which images to learn from, and what becomes of them."""

    source: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")] = None
    """Images by name, instead of your own: see `foveate data`."""
    data: tuple[Path, ...] = ()
    """Your own images: a folder with one folder for each class, or a table with path<TAB>label on each line."""
    validation: tuple[Path, ...] = ()
    """Images to validate on, likewise. Without it, one image in twenty is held out."""
    size: int | None = None
    """Height and width that images are scaled to. By default their own, if all are square, equal and at most 256, else
    64."""
    augment: bool = True
    """Move and flip images in training."""
    batch: int = 128
    """Images of a batch."""
    validation_images: int = 2000
    """Images that each validation during training decides about."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        for name in ("batch", "validation_images"):
            at_least(1, name, getattr(self, name))
        if self.size is not None:
            at_least(1, "size", self.size)


@dataclass
class ClassifyImage(Recipe[Architecture]):
    """Train an image classifier, which gives an image one of several labels.

    `--config FILE` takes settings from a TOML or JSON file, in the tables of a trained model's config.json (text,
    training, architecture, ...); a flag counts more than the file.
    """

    task = "classify-image"
    families = ("resnet", "vit", "vgg", "googlenet", "alexnet", "zfnet", "efficientnet", "convnext", "cnn", "swin")
    unit = "images"
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

    text: Annotated[Images, tyro.conf.arg(name="")] = field(default_factory=Images)
    model: str = "resnet20"
    """The preset to begin from: see `foveate models`."""
    out: Path = Path("runs/classify-image")
    """Folder for the trained model; a training that it holds is resumed."""

    def check_length(self, model: nn.Module) -> None:
        """Images have no length."""

    def contents(self) -> dict[str, str]:
        """A digest of the names and contents of all images of each folder or table."""
        return images_digest([path for path in self._files if path.exists()])

    def digest(self, examples: LabelledImages) -> str:
        """Of all pixels and labels."""
        return pixels_digest(examples)


RECIPE = ClassifyImage


def run(
    recipe: ClassifyImage, splits: Splits[LabelledImages] | None = None, console: Console | None = None
) -> ImageClassifier:
    """Train what `recipe` says, on its images or on the given `splits`, and save it in `recipe.out`.

    Raises UserError for anything in the recipe or the images that cannot work.
    """
    console = recipe.console(console)
    recipe.check()
    learn, check = (splits.train, splits.dev) if splits else _images(recipe.text)
    for images in (learn, check):
        console.print(images.report, markup=False, highlight=False)
    labels = learn.check().labels
    check_labels(learn, check, "image")
    image_format = choose_format(learn, recipe.text.size)
    settings = recipe.training
    batches = ImageBatches(learn, image_format, [*labels], recipe.text.batch, settings.seed, recipe.text.augment)
    sizes = {"channels": image_format.channels, "image_size": image_format.size}
    known = {part.name for part in fields(recipe.architecture)}  # type: ignore[arg-type]
    found = {name: size for name, size in sizes.items() if name in known}
    model = recipe.build(classes=len(labels), **found).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    side, kind = image_format.size, "grey" if image_format.channels == 1 else "colour"
    shape = f"{kind} images of {side} x {side}, {len(labels)} labels"
    console.print(recipe.summary(model, shape), markup=False, highlight=False)
    classifier = ImageClassifier(model, image_format, labels, recipe.description(model))
    _try_one(classifier)
    validation = Validation(_measure(recipe.text, classifier, check), metric="accuracy")
    recipe.train(model, (learn, check), batches, validation, classifier.save, console)
    return classifier


def _images(options: Images) -> tuple[LabelledImages, LabelledImages]:
    """What to learn from and what to validate on."""
    return learn_and_check(
        options,
        lambda: open_source(str(options.source), task="classify-image"),
        LabelledImages.from_paths,
        files="FOLDER",
        unit="images",
    )


def _try_one(classifier: ImageClassifier) -> None:
    """Raise UserError before training where the model cannot read images of this size."""
    image_format = classifier.image_format
    was = classifier.model.training
    with torch.no_grad():
        classifier.model.eval()(torch.zeros(1, image_format.channels, image_format.size, image_format.size))
    classifier.model.train(was)


def _measure(
    options: Images, classifier: ImageClassifier, check: LabelledImages
) -> Callable[[nn.Module], dict[str, float]]:
    """Accuracy and macro F1 on images from all over those to validate on."""
    examples = spread(check, check.check().kept, options.validation_images)
    images, right = [example.read() for example in examples], [example.label for example in examples]

    def measure(model: nn.Module) -> dict[str, float]:
        found = [decision.label for decision in classifier.classify(images)]
        return {"accuracy": accuracy(found, right), "macro_f1": macro_f1(found, right)}

    return measure
