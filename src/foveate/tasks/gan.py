"""A generator of images of a class, trained against a discriminator (GAN)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rich.console import Console
from torch import Tensor

from foveate.data.images.labelled import labelled_images
from foveate.forms.class_images import ClassImages, ClassName, JudgeOptions, draw_noise, generate
from foveate.forms.grids import look_at_maps
from foveate.metrics.gan import draw_scales, to_image
from foveate.sight import Sight
from foveate.sight.measured_look import Target
from foveate.tasks.answers.judges import recognised
from foveate.tasks.recipe import FileTable
from foveate.tasks.skill import Skill
from foveate.tasks.start.parts import AllWeights
from foveate.tasks.task import Task
from foveate.training import Training
from foveate.training.objectives.adversarial import Hinge


class ImageGenerator(Skill):
    """A generator in use: it is looked at without its discriminator, and measured by what it makes of all labels."""

    def watch(
        self,
        inputs: Mapping[str, Tensor],
        sites: Sequence[str] | None = None,
        measure: str = "weights",
        target: Target | None = None,
    ) -> Sight:
        model: Any = self.model
        own = self.on_device(inputs)
        run = lambda: model.generator(own["noise"], own["classes"])  # noqa: E731
        return look_at_maps(model.generator, run, sites, measure, target)

    def measure(
        self, examples: Sequence[Any], options: JudgeOptions, console: Console | None = None
    ) -> tuple[list[str], dict[str, float]]:
        """An image of each example's label, compared with the real ones; with a judge, how many it recognises."""
        labels = [one.label for one in examples]
        classes = self.on_device(self.processor.reads.tensors(labels)[0])["classes"]
        made = generate(self.model, draw_noise(self.model, len(labels), options.seed), classes)
        if options.curve is not None:
            draw_scales(self.folder or self.recipe.out, options.curve)
        return labels, self._compare(made, examples, options)

    def baselines(self, examples: Sequence[Any], options: JudgeOptions) -> dict[str, dict[str, float]]:
        ways = self.processor.writes.trivial_images(examples, self.train_examples)
        return {name: self._compare(images, examples, options) for name, images in ways.items()}

    def _compare(self, images: np.ndarray, examples: Sequence[Any], options: JudgeOptions) -> dict[str, float]:
        found: dict[str, float] = self.processor.writes.compare(images, examples)
        if options.judge is not None:
            labels = [one.label for one in examples]
            found["recognised"] = recognised(options.judge, "classify-image", [*map(to_image, images)], labels)
        return found


TASK = Task(
    name="gan",
    about="Train a generator of images of a class against a discriminator, which learns to tell them from real ones. "
    "`foveate run` takes labels.",
    families=("sagan",),
    reads=ClassName(),
    writes=ClassImages(),
    objective=Hinge(),
    read=lambda paths, recipe: labelled_images(paths),
    files="FOLDER",
    layout="Your own images: a folder with one folder for each class, or a table with path<TAB>label on each line.",
    examples=FileTable(batch=32, validation_examples=1000),
    model="sagan-tiny",
    training=Training(
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
    ),
    start=AllWeights(grows="classes"),
    unit="images",
    skill=lambda: ImageGenerator,
)
