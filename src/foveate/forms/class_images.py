"""Images of a class, which a generator makes of a label and of noise.

    ClassName     what is read: a label
    ClassImages   what is written: images of it

B batch    C channels    h, w height and width    N images
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from foveate.contracts import Picture
from foveate.data.dataset import Dataset, Prepared
from foveate.data.images.decoded import decode_undamaged
from foveate.data.images.labelled import ImageFormat, report_damaged
from foveate.data.images.pixels import choose_format, normalize
from foveate.errors import UserError, at_least, unknown
from foveate.files import check_place
from foveate.forms.answers import Answer
from foveate.forms.form import Changes, InputForm, Learned, MapRow, OutputForm
from foveate.forms.grids import GridFinder, grid_names
from foveate.forms.image import image_digest
from foveate.forms.image_files import without_damaged
from foveate.forms.image_grid import check_image_file, check_samples, save_grid
from foveate.forms.inputs import require_text
from foveate.forms.label import check_labels, count_labels
from foveate.forms.naming import DecoderNames
from foveate.forms.ranged_pixels import RangedPixels
from foveate.metrics.gan import deviation_share, frechet
from foveate.training.settings import check_seed
from foveate.viewer.figures import check_extension, plot_image_attention
from foveate.viewer.protocol import Input

SHOWN = 112
"""Height and width of each image in a file, in pixels, at least."""

LOOKED_AT = 8
"""How often a generated image is enlarged for a look."""

BATCH = 128
"""Images that are generated together."""

AVERAGED = 10_000
"""Training images whose mean is taken, for the baseline."""


@dataclass
class ClassName(RangedPixels, InputForm):
    """The label of an image: inputs `classes` (B,)."""

    name: ClassVar[str] = "label"

    labels: Learned[dict[str, int]] = field(default_factory=dict)
    """How often each label occurs in training; the classes of the model in their order."""

    def learn(self, train: Dataset[Any], architecture: Any) -> "ClassName":
        return ClassName(count_labels(example.label for example in train))

    def extend(self, trained: "ClassName", train: Dataset[Any]) -> "ClassName":
        """With new labels behind the known ones."""
        return ClassName(dict.fromkeys(trained.labels, 0) | count_labels(example.label for example in train))

    def sizes(self) -> dict[str, int]:
        return {"classes": len(self.labels)}

    def open(self, given: str) -> str:
        if given not in self.labels:
            raise unknown("label", given, [*self.labels])
        return given

    def receive(self, given: Input, name: str) -> str:
        return self.open(require_text(given, name).strip())

    def value(self, example: Any) -> str:
        return str(example.label)

    def place(self, example: Any) -> str:
        return self.value(example)

    def group(self, example: Any) -> Hashable:
        return image_digest(example)

    def tensors(
        self, prepared: Sequence[str], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        numbers = {label: number for number, label in enumerate(self.labels)}
        return {"classes": torch.tensor([numbers[label] for label in prepared])}, Changes()

    def usable(self, dataset: Dataset[Any]) -> Dataset[Any]:
        return without_damaged(dataset)


@dataclass
class SampleOptions:
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
        check_image_file(self.out)


@dataclass
class JudgeOptions:
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


@dataclass(kw_only=True)
class GeneratedImages(Answer):
    """The images of a label."""

    file: Path
    label: str
    pixels: np.ndarray = field(repr=False)
    """(N, h, w, C) in 8 bits."""
    noise: Tensor = field(repr=False)
    """What they were generated from."""
    place: tuple[int, int] | None = field(default=None, repr=False)
    """The row and column of the feature map whose attention a picture shows."""

    @property
    def cells(self) -> list[str]:
        """The file and the label."""
        return [str(self.file), self.label]

    @property
    def title(self) -> str:
        return self.label

    @property
    def look_line(self) -> str:
        return ""

    def json_values(self) -> dict[str, Any]:
        """The label and the file."""
        return {"label": self.label, "file": str(self.file)}


@dataclass
class ClassImages(OutputForm):
    """Images of a class. In training, inputs `pixels` (B, C, h, w) have the real ones."""

    options: ClassVar[type[Any]] = SampleOptions
    eval_options: ClassVar[type[Any]] = JudgeOptions
    metric: ClassVar[str] = "frechet"
    higher_is_better: ClassVar[bool] = False

    size: int | None = None
    """Height and width that images are scaled to. By default their own, if all are square, equal and at most 256, else
    64."""
    format: Learned[ImageFormat | None] = None
    """The size and the channels of images."""

    def check(self) -> None:
        if self.size is not None:
            at_least(1, "size", self.size)

    def check_learned(self) -> None:
        if self.format is None:
            raise UserError("the size of images is missing")

    def learn(self, train: Dataset[Any], reads: Any, architecture: Any) -> "ClassImages":
        return ClassImages(self.size, choose_format(train, self.size))

    @property
    def square(self) -> ImageFormat:
        """The format, once it is learned."""
        assert self.format is not None, "the form has not learned from examples"
        return self.format

    def sizes(self) -> dict[str, int]:
        return {"channels": self.square.channels, "image_size": self.square.size}

    def kinds(self, example: Any) -> tuple[str, ...]:
        return (example.label,)

    def check_examples(self, train: Dataset[Any], validation: Dataset[Any], example: str) -> None:
        labels, others = ([one.label for one in part] for part in (train, validation))
        check_labels(train.name, labels, validation.name, others, "image")

    def prepare_all(self, dataset: Dataset[Any], numbers: Sequence[int]) -> Prepared:
        """Decoded once, in memory or in a file of the cache; damaged images are left out."""
        pixels, kept, damaged = decode_undamaged(dataset, self.square)
        rows = {number: row for row, number in enumerate(kept)}
        targets = [[pixels[rows[number]]] if number in rows else [] for number in numbers]
        return Prepared(targets, numbers, report_damaged(damaged))

    def tensors(
        self, prepared: Sequence[np.ndarray], changes: Changes, generator: np.random.Generator | None
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
        return {"pixels": normalize(np.stack(list(prepared)))}, {}, torch.ones(len(prepared), dtype=torch.long)

    def look_options(self) -> SampleOptions:
        return SampleOptions(samples=1)

    def decide(
        self, model: nn.Module, inputs: dict[str, Tensor], prepared: Sequence[str], options: SampleOptions
    ) -> list[GeneratedImages]:
        """Images of each label."""
        classes = inputs["classes"]
        noise = draw_noise(model, len(classes) * options.samples, options.seed)
        pixels = generate(model, noise, classes.repeat_interleave(options.samples))
        return [
            GeneratedImages(file=options.out, label=label, pixels=images, noise=noises, place=options.place)
            for label, images, noises in zip(
                prepared,
                pixels.reshape(len(classes), options.samples, *pixels.shape[1:]),
                noise.unflatten(0, (len(classes), -1)),
                strict=True,
            )
        ]

    def write(self, answers: Sequence[GeneratedImages], options: SampleOptions) -> None:
        save_grid([[*answer.pixels] for answer in answers], options.out, SHOWN)

    def compare(self, made: np.ndarray, examples: Sequence[Any]) -> dict[str, float]:
        """How far images (N, h, w, C) are from those of examples, and how different those of a class are."""
        labels = np.array([one.label for one in examples])
        real = self.pixels(examples)
        return {"frechet": frechet(made, real), "spread": deviation_share(made, real, labels)}

    def trivial_images(self, examples: Sequence[Any], train: Callable[[], Dataset[Any]]) -> dict[str, np.ndarray]:
        """The mean image of each example's class, images of labels drawn by chance, and the real images."""
        labels = np.array([one.label for one in examples])
        real = self.pixels(examples)
        known = [*without_damaged(Dataset("training images", train().some(AVERAGED), "images"))]
        pixels, names = self.pixels(known), np.array([one.label for one in known])
        means = {label: pixels[names == label].mean(0).round().astype(np.uint8) for label in np.unique(labels)}
        return {
            "mean image of each class": np.stack([means[label] for label in labels]),
            "real images of other labels": real[np.random.default_rng(1).permutation(len(real))],
            "the real images": real,
        }

    def pixels(self, examples: Sequence[Any]) -> np.ndarray:
        """The images of examples (N, h, w, C) in 8 bits."""
        return np.stack([self.square.pixels(one.read()).transpose(1, 2, 0) for one in examples])

    def teach(self, answer: GeneratedImages) -> dict[str, Tensor]:
        return {"noise": answer.noise[:1]}

    def axis(self, answer: GeneratedImages) -> DecoderNames:
        """The places of feature maps over the first image."""
        names = grid_names(answer.pixels[0].repeat(LOOKED_AT, 0).repeat(LOOKED_AT, 1))
        return DecoderNames(names, names, "*", 0)

    def rows(self, sight: Any, model: nn.Module, answer: GeneratedImages, before: int) -> list[MapRow]:
        """The last site: where the chosen place of the feature map looked.

        Raises UserError for a place outside of the feature map.
        """
        if not sight.sites:
            return []
        weights = sight[sight.sites[-1]].weights()[0, 0].cpu()
        side = round(len(weights) ** 0.5)
        row, column = _place(answer, side)
        if not (0 <= row < side and 0 <= column < side):
            raise UserError(f"place is {row} {column}, but the feature map has {side} x {side} places, from 0")
        return [MapRow(answer.label, weights[row * side + column])]

    def draw(self, answer: GeneratedImages, value: str, rows: Sequence[MapRow], grid: GridFinder) -> Picture:
        """The first image, with the chosen place in red, beside where this place looked."""
        side, *_ = grid(len(rows[0].weights))
        image = answer.pixels[0]
        shown = image.repeat(3, -1) if image.shape[-1] == 1 else image.copy()
        times = len(shown) / side
        down, across = (slice(int(one * times), int((one + 1) * times)) for one in _place(answer, side))
        shown[down, across] = 255, 0, 0
        return plot_image_attention(shown, rows[0].weights.view(side, side).numpy(), answer.title)


def _place(answer: GeneratedImages, side: int) -> tuple[int, int]:
    """The place whose attention is drawn, by default the middle."""
    return answer.place or (side // 2, side // 2)


def draw_noise(model: Any, count: int, seed: int) -> Tensor:
    """What this many images are generated from."""
    return torch.randn(count, model.config.noise, generator=torch.Generator().manual_seed(seed))


def generate(model: Any, noise: Tensor, classes: Tensor) -> np.ndarray:
    """An image (h, w, C) in 8 bits for each row of noise and its class."""
    found = []
    for begin in range(0, len(classes), BATCH):
        own = noise[begin : begin + BATCH].to(classes.device)
        with torch.inference_mode():
            pixels = model.eval().generator(own, classes[begin : begin + BATCH]).float().cpu()
        found.append(((pixels + 2) * 63.75).round().clamp(0, 255).byte().permute(0, 2, 3, 1).numpy())
    return np.concatenate(found)
