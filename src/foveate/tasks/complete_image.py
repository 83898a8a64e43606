"""Image completion: a model predicts each pixel of an image from those before it (Chen et al. 2020)."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from math import log
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import tyro
from torch.nn.functional import cross_entropy

from foveate.baselines.colour_counts import counted_ways
from foveate.data.dataset import Dataset
from foveate.data.images.decoded import decode
from foveate.data.images.labelled import LabelledImage, image_of_file, images_below
from foveate.data.images.pixel_processor import PixelProcessor
from foveate.data.images.processor import choose_format
from foveate.errors import UserError, at_least, one_line
from foveate.forms.image_files import image_files, read_images, without_damaged
from foveate.tasks.answers.image_grid import check_image_file, check_samples, save_grid
from foveate.tasks.former.predictor import Measured, Predictor
from foveate.tasks.former.recipe import Architecture, Training
from foveate.tasks.former.task import Examples, Task
from foveate.tasks.protocols import NoOptions
from foveate.training import CrossEntropy, Objective
from foveate.training.settings import check_seed
from foveate.viewer.protocol import Input, LookResult

BATCH = 64
"""Images that are measured together."""

SHOWN = 112
"""Height and width of each image in a file, in pixels, at least."""


@dataclass
class Unlabelled(Examples):
    """Which images to learn from, folders of images, and what becomes of them."""

    batch: int = 64
    """Images of a batch."""
    validation_examples: int = 500
    """Images that each validation during training measures."""
    size: int | None = None
    """Height and width that images are scaled to. By default those of the preset."""
    levels: int = 8
    """Levels of each channel that pixels are rounded to."""
    flip: bool = False
    """Flip half of the images in training."""

    def check(self) -> None:
        super().check()
        at_least(2, "levels", self.levels)
        at_least(1, "size", self.size or 1)


@dataclass
class Completing:
    """How images are completed."""

    out: Path = Path("completed.png")
    """The file to draw into (.png): a row for each image with the image, the rows that are given, and completions."""
    samples: int = 4
    """Completions of each image, side by side."""
    given: float = 0.5
    """Share of the rows of an image that are given."""
    temperature: float = 1.0
    """Below 1 likely colours are drawn more often; 0 takes the likeliest."""
    seed: int = 1
    """Seed of random draws."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        check_samples(self.samples)
        at_least(0, "temperature", self.temperature)
        check_seed(self.seed)
        if not 0 <= self.given < 1:
            raise UserError(f"given is {self.given}, but must be at least 0 and below 1")


@dataclass
class Completion:
    """An image and the file with its completions."""

    place: str
    file: Path | None = None
    """None for an image that could not be read."""

    @property
    def line(self) -> str:
        """The file of the image and that of its completions, with a tab between them."""
        return f"{one_line(self.place)}\t{one_line(self.file)}" if self.file else ""


@dataclass
class CompleteImage(Task[Architecture]):
    """Train a model that draws an image pixel by pixel. Its weights are a start for `foveate train classify-image`.

    `--config FILE` takes settings from a TOML or JSON file, in the tables of a trained model's config.json (examples,
    training, architecture, ...); a flag counts more than the file.
    """

    task = "complete-image"
    unit = "pixels"
    files = "FOLDER"
    takes = "image"
    metric = "bits"
    higher_is_better = False
    processor = PixelProcessor
    options = Completing
    default_training = Training(
        epochs=10,
        learning_rate=2e-3,
        schedule="cosine",
        warmup=100,
        label_smoothing=0.0,
        weight_decay=0.05,
        validate_every=200,
        save_every=200,
    )

    examples: Annotated[Unlabelled, tyro.conf.arg(name="")] = field(default_factory=Unlabelled)
    model: str = "imagegpt-tiny"
    """The preset to begin from: see `foveate models`."""
    out: Path = Path("runs/complete-image")
    """Folder for the trained model; a training that it holds is resumed."""

    def __post_init__(self) -> None:
        given: Any = self.architecture
        known = asdict(given) if is_dataclass(given) and not isinstance(given, type) else given or {}
        self.architecture = {**known, "predict": "pixels"}  # type: ignore[assignment]
        super().__post_init__()

    def read(self, paths: Sequence[Path]) -> Dataset[LabelledImage]:
        files: list[Path] = []
        for path in paths:
            if not path.is_dir():
                raise UserError(f"{path} is no folder of images")
            files += images_below(path)
        if not files:
            raise UserError(f"{' and '.join(map(str, paths))}: there is no image in it")
        examples = [image_of_file(file) for file in files]
        return Dataset(paths[0].name or str(paths[0]), examples, "images")

    def open(self) -> tuple[Dataset[LabelledImage], Dataset[LabelledImage]]:
        train, validation = super().open()
        return (without_damaged(train), without_damaged(validation)) if self.examples.data else (train, validation)

    def fit(self, train: Dataset[LabelledImage]) -> PixelProcessor:
        preset: Any = self.architecture
        image_format = choose_format(train, self.examples.size or preset.image_size)
        return PixelProcessor(image_format, self.examples.levels, self.examples.flip)

    def objective(self) -> Objective:
        return CrossEntropy(self.training.label_smoothing)

    @classmethod
    def eval_options(cls, recipe: Any, where: str) -> NoOptions:
        return NoOptions()

    def expand(self, places: Sequence[str]) -> list[str]:
        return image_files(places)

    def answer(self, predictor: Predictor, texts: Sequence[str], options: Completing) -> list[Completion]:
        """Draw the rest of each image into one file; an image that cannot be read is reported and left out."""
        options.check()
        check_image_file(options.out)
        found = read_images(texts)
        processor: PixelProcessor = predictor.processor
        rows = []
        for image in found.values():
            colours = processor.colours(processor.format.pixels(image)[None])
            known = int(options.given * processor.format.size) * processor.format.size
            drawn = complete(predictor, colours[:, :known].repeat(options.samples, 0), options)
            hidden = processor.images(colours)[0].copy()
            hidden.reshape(-1, hidden.shape[-1])[known:] = 128
            rows.append([processor.images(colours)[0], hidden, *processor.images(drawn)])
        save_grid(rows, options.out, SHOWN)
        return [Completion(place, options.out if place in found else None) for place in texts]

    def measure(self, predictor: Predictor, examples: Sequence[LabelledImage], options: NoOptions) -> Measured:
        """Bits of each pixel's colour, and the share of pixels that are predicted."""
        processor: PixelProcessor = predictor.processor
        prepared = processor.prepare(Dataset("examples", examples))
        bits, right = [], []
        for begin in range(0, len(prepared), BATCH):
            batch = processor.batch(prepared[begin : begin + BATCH], None)
            logits = predictor.forward(batch.inputs).logits.float().cpu()
            bits.append(cross_entropy(logits.mT, batch.labels, reduction="none").mean(1) / log(2))
            right.append((logits.argmax(-1) == batch.labels).double().mean(1))
        each, shares = torch.cat(bits), torch.cat(right)
        lines = [f"{one.place}\t{value:.3f}" for one, value in zip(examples, each.tolist(), strict=True)]
        return Measured(lines, {"bits": float(each.mean()), "accuracy": 100 * float(shares.mean())})

    def baselines(
        self, predictor: Predictor, examples: Sequence[LabelledImage], options: NoOptions
    ) -> dict[str, dict[str, float]]:
        """How frequent a colour is, in each place, and after the pixels to the left and above."""
        processor: PixelProcessor = predictor.processor
        train = Dataset("training images", list(self.open()[0]))
        known, asked = (
            processor.colours(decode(part, processor.format)) for part in (train, Dataset("examples", examples))
        )
        count = processor.sizes()["colours"]
        return counted_ways(known, asked, processor.format.size, count)

    def look(
        self, predictor: Predictor, given: Input, max_length: int, sites: Sequence[str] | None = None
    ) -> LookResult:
        from foveate.tasks.looking.one_image import look_at_image

        return look_at_image(predictor, given, max_length, sites, lambda image: "the next pixel of each")


def complete(predictor: Predictor, given: np.ndarray, options: Completing) -> np.ndarray:
    """Images (N, h*w) whose first colours are `given` (N, T), drawn one pixel after the other."""
    model: Any = predictor.model
    side = predictor.processor.format.size
    generator = torch.Generator(predictor.device).manual_seed(options.seed)
    start = torch.full((len(given), 1), model.config.colours)
    colours = torch.cat([start, torch.from_numpy(given)], 1).to(predictor.device)
    with torch.inference_mode():
        while colours.shape[1] <= side * side:
            logits = model.output(model.hidden(colours)[:, -1]).float()
            if options.temperature == 0:
                following = logits.argmax(-1, keepdim=True)
            else:
                following = torch.multinomial((logits / options.temperature).softmax(-1), 1, generator=generator)
            colours = torch.cat([colours, following], 1)
    return colours[:, 1:].cpu().numpy()
