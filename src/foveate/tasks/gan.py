"""A generator of images of a class, trained against a discriminator (GAN)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from foveate.data.dataset import Dataset
from foveate.data.images.generated_processor import ClassImageProcessor
from foveate.data.images.labelled import LabelledImage, labelled_images
from foveate.data.images.processor import choose_format
from foveate.errors import TextError, at_least, unknown
from foveate.files import check_place
from foveate.forms.image_grid import check_image_file, check_samples, save_grid
from foveate.forms.label import count_labels
from foveate.metrics.gan import deviation_share, draw_scales, frechet, to_image
from foveate.tasks.answers.generated_images import Generated, draw_noise, generate, plot_place
from foveate.tasks.answers.judges import recognised
from foveate.tasks.answers.labelling import check_labels
from foveate.tasks.former.predictor import Measured, Predictor
from foveate.tasks.former.recipe import Architecture, Training
from foveate.tasks.former.task import Examples, Task
from foveate.tasks.start.parts import WholeRun
from foveate.training import Objective
from foveate.training.objectives.adversarial import Hinge
from foveate.training.settings import check_seed
from foveate.viewer.figures import check_extension
from foveate.viewer.protocol import Input, LookResult

SHOWN = 112
"""Height and width of each image in a file, in pixels, at least."""

AVERAGED = 10_000
"""Training images whose mean is taken, for the baseline."""


@dataclass
class ClassImages(Examples):
    """Which images to learn from: a folder with one folder for each class, or a table with path<TAB>label on each
    line."""

    batch: int = 32
    """Images of a batch, beside which as many are generated."""
    validation_examples: int = 1000
    """Images that each validation during training generates."""
    size: int | None = None
    """Height and width that images are scaled to. By default their own, if all are square, equal and at most 256, else
    64."""

    def check(self) -> None:
        super().check()
        if self.size is not None:
            at_least(1, "size", self.size)


@dataclass
class Sampling:
    """How images are generated."""

    out: Path = Path("samples.png")
    """The file to draw into (.png): a row for each label."""
    samples: int = 8
    """Images of each label, side by side."""
    seed: int = 1
    """Seed of random draws."""
    place: tuple[int, int] | None = None
    """With --picture: the row and column of the place of the feature map, from 0, whose attention is drawn; by default
    the middle."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        check_samples(self.samples)
        check_seed(self.seed)


@dataclass
class Judging:
    """What judges generated images."""

    seed: int = 1
    """Seed of random draws."""
    judge: Path | None = None
    """A classifier that `foveate train classify-image` made: also measure how many images it gives their label."""
    curve: Path | None = None
    """Draw the scales of self-attention over the steps of the training into this file (.png, .svg, .pdf)."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        check_seed(self.seed)
        if self.curve is not None:
            check_extension(self.curve)
            check_place(self.curve)


@dataclass
class TrainGAN(Task[Architecture]):
    """Train a generator of images of a class against a discriminator, which learns to tell them from real ones.

    `foveate run` takes labels. `--config FILE` takes settings from a TOML or JSON file, in the tables of a trained
    model's config.json (examples, training, architecture, ...); a flag counts more than the file.
    """

    task = "gan"
    unit = "images"
    files = "FOLDER"
    takes = "text"
    metric = "frechet"
    higher_is_better = False
    processor = ClassImageProcessor
    options = Sampling
    start_parts = WholeRun(grows="classes")
    default_training = Training(
        epochs=10,
        learning_rate=1e-3,
        rate_factors={"discriminator": 2.0},
        schedule="linear",
        usual_warmup=1,
        weight_decay=0.0,
        betas=(0.0, 0.9),
        clip=None,
        patience=None,
        validate_every=500,
        save_every=250,
    )

    examples: Annotated[ClassImages, tyro.conf.arg(name="")] = field(default_factory=ClassImages)
    model: str = "sagan-tiny"
    """The preset to begin from: see `foveate models`."""
    out: Path = Path("runs/gan")
    """Folder for the trained model; a training that it holds is resumed."""

    def read(self, paths: Sequence[Path]) -> Dataset[LabelledImage]:
        return labelled_images(paths)

    def hold_out(self, train: Dataset[LabelledImage], every: int) -> tuple[Dataset[Any], Dataset[Any]]:
        return train.held_out_of_kinds(every, lambda example: example.label)

    def check_examples(self, train: Dataset[LabelledImage], validation: Dataset[LabelledImage]) -> None:
        check_labels(
            train.name, [one.label for one in train], validation.name, [one.label for one in validation], "image"
        )

    def fit(self, train: Dataset[LabelledImage]) -> ClassImageProcessor:
        return ClassImageProcessor(choose_format(train, self.examples.size), count_labels(one.label for one in train))

    def grow(self, trained: ClassImageProcessor, train: Dataset[LabelledImage]) -> ClassImageProcessor:
        return replace(trained, labels=dict.fromkeys(trained.labels, 0) | count_labels(one.label for one in train))

    def objective(self) -> Objective:
        return Hinge()

    @classmethod
    def eval_options(cls, recipe: Mapping[str, Any], where: str) -> Judging:
        return Judging()

    def answer(self, predictor: Predictor, texts: Sequence[str], options: Sampling) -> list[Generated]:
        """Images of each label. Raises TextError for a label that the model never saw."""
        options.check()
        check_image_file(options.out)
        labels = [*predictor.processor.labels]
        for place, text in enumerate(texts):
            if text not in labels:
                raise TextError(place, str(unknown("label", text, labels)))
        noise = draw_noise(predictor, len(texts) * options.samples, options.seed)
        pixels = generate(predictor, noise, [text for text in texts for _ in range(options.samples)])
        rows = pixels.reshape(len(texts), options.samples, *pixels.shape[1:])
        save_grid([[*row] for row in rows], options.out, SHOWN)
        parts = noise.unflatten(0, (len(texts), -1))
        return [
            Generated(text, options.out, own, noises, options.place)
            for text, own, noises in zip(texts, rows, parts, strict=True)
        ]

    def measure(self, predictor: Predictor, examples: Sequence[LabelledImage], options: Judging) -> Measured:
        """An image of each example's label, compared with the real ones; with a judge, how many it recognises."""
        options.check()
        labels = [one.label for one in examples]
        made = generate(predictor, draw_noise(predictor, len(labels), options.seed), labels)
        real = _pixels(predictor, examples)
        metrics = {"frechet": frechet(made, real), "spread": deviation_share(made, real, np.array(labels))}
        if options.judge is not None:
            metrics["recognised"] = self._recognised(options.judge, made, labels)
        if options.curve is not None:
            draw_scales(self.out, options.curve)
        return Measured(labels, metrics)

    def baselines(
        self, predictor: Predictor, examples: Sequence[LabelledImage], options: Judging
    ) -> dict[str, dict[str, float]]:
        """The mean image of each class, images of labels drawn by chance, and the real images."""
        labels = np.array([one.label for one in examples])
        real = _pixels(predictor, examples)
        train = self.open()[0].some(AVERAGED)
        known, names = _pixels(predictor, train), np.array([one.label for one in train])
        means = {label: known[names == label].mean(0).round().astype(np.uint8) for label in np.unique(labels)}
        shuffled = real[np.random.default_rng(1).permutation(len(real))]
        ways = {"mean image of each class": np.stack([means[label] for label in labels]),
                "real images of other labels": shuffled, "the real images": real}  # fmt: skip
        found = {
            name: {"frechet": frechet(images, real), "spread": deviation_share(images, real, labels)}
            for name, images in ways.items()
        }
        if options.judge is not None:
            for name, images in ways.items():
                found[name]["recognised"] = self._recognised(options.judge, images, labels.tolist())
        return found

    def _recognised(self, judge: Path, images: np.ndarray, labels: Sequence[str]) -> float:
        return recognised(judge, "classify-image", [to_image(one) for one in images], labels)

    def picture(self, predictor: Predictor, prediction: Generated) -> Any:
        """The first image, with the chosen place in red, beside where this place looks."""
        return plot_place(predictor, prediction)

    def look(
        self, predictor: Predictor, given: Input, max_length: int, sites: Sequence[str] | None = None
    ) -> LookResult:
        from foveate.tasks.looking.generators import look_at_generator

        return look_at_generator(predictor, given, max_length, sites)


def _pixels(predictor: Predictor, examples: Sequence[LabelledImage]) -> np.ndarray:
    return np.stack([predictor.processor.format.pixels(one.read()).transpose(1, 2, 0) for one in examples])
