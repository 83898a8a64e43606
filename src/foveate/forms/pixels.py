"""Images pixel by pixel: a model reads an image as a sequence of colours and predicts each from those before it.

    PixelImage    what is read: an image whose pixels have few colours
    Pixels        what is written: the colour of each pixel

B batch    C channels    h, w height and width    T = h*w pixels of an image, row by row
"""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from math import inf, log
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from foveate.baselines.colour_counts import counted_ways
from foveate.data.dataset import Dataset
from foveate.data.images.decoded import decode_undamaged
from foveate.data.images.labelled import ImageFormat
from foveate.data.images.pixels import choose_format, normalize
from foveate.errors import UserError, at_least
from foveate.forms.answers import Answer
from foveate.forms.form import Changes, Learned, MapRow, Naming, OutputForm
from foveate.forms.grids import GridFinder, grid_names
from foveate.forms.image import SquareImage
from foveate.forms.image_grid import check_image_file, check_samples, save_grid
from foveate.forms.scored import MostLikely
from foveate.training.settings import check_seed

SHOWN = 112
"""Height and width of each image in a file, in pixels, at least."""

DRAWN_MAPS = 4
"""Pixels whose attention a picture shows."""

GREY = 128
"""What pixels that are not given look like."""


@dataclass(frozen=True)
class EvenPalette:
    """The colours of pixels: evenly spaced levels of each channel, the first channel counting most, as in
    `foveate.models.vision.imagegpt.even_palette`."""

    format: ImageFormat
    levels: int

    @property
    def count(self) -> int:
        """The number of colours."""
        return int(self.levels**self.format.channels)

    def colours(self, pixels: np.ndarray) -> np.ndarray:
        """The numbers (N, T) of the colours of images (N, C, h, w) in 8 bits."""
        levels = np.ceil(pixels * ((self.levels - 1) / 255) - 0.5).astype(np.int64)  # as the nearest, of two the lower
        weights = self.levels ** np.arange(self.format.channels)[::-1]
        return np.einsum("nchw,c->nhw", levels, weights).reshape(len(pixels), -1)

    def images(self, colours: np.ndarray) -> np.ndarray:
        """The images (N, h, w, C) in 8 bits of numbers of colours (N, T)."""
        weights = self.levels ** np.arange(self.format.channels)[::-1]
        levels = colours[..., None] // weights % self.levels
        pixels = (levels * 255 / (self.levels - 1)).round().astype(np.uint8)
        return pixels.reshape(len(colours), self.format.size, self.format.size, self.format.channels)


@dataclass
class PixelImage(SquareImage):
    """An image of one size whose pixels are rounded to few colours: inputs `pixels` (B, C, h, w)."""

    worth_optimizing: ClassVar[float] = inf

    size: int | None = None
    """Height and width that images are scaled to. By default those of the preset."""
    levels: int = 8
    """Levels of each channel that pixels are rounded to."""
    flip: bool = False
    """Flip half of the images in training."""

    def check(self) -> None:
        super().check()
        at_least(2, "levels", self.levels)
        if self.pixel_mean is not None:
            raise UserError("pixel_mean is not for models whose pixels are colours of a palette")

    def learn(self, train: Dataset[Any], architecture: Any) -> "PixelImage":
        found = copy(self)
        found.format = choose_format(train, self.size or architecture.image_size)
        return found

    def extend(self, trained: "PixelImage", train: Dataset[Any]) -> "PixelImage":
        """As it was trained, with the colours that the model knows."""
        return replace(trained, flip=self.flip)

    @property
    def palette(self) -> EvenPalette:
        """The colours of pixels."""
        return EvenPalette(self.square, self.levels)

    def places(self, prepared: np.ndarray) -> int:
        return int(prepared.shape[1] * prepared.shape[2])

    def tensors(
        self, prepared: Sequence[np.ndarray], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        pixels = np.stack(list(prepared))
        if generator is not None and self.flip:
            flipped = generator.random(len(pixels)) < 0.5
            pixels[flipped] = pixels[flipped, ..., ::-1]
        return {"pixels": normalize(pixels)}, Changes(pixels=pixels)

    def axis(self, value: Any, prepared: np.ndarray, grid: GridFinder) -> Naming:
        """A picture of what the model reads in each place: the colour of the pixel before, in the first one nothing."""
        shown = self.palette.images(self.palette.colours(prepared[None]))[0]
        before = np.concatenate([np.full_like(shown[:1, :1, :], GREY).reshape(1, -1), _flat(shown)[:-1]])
        return grid_names(before.reshape(shown.shape), grid)


def _flat(image: np.ndarray) -> np.ndarray:
    """The pixels of an image (h, w, C) one after the other."""
    return image.reshape(-1, image.shape[-1])


@dataclass
class CompleteImageOptions:
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
        check_image_file(self.out)


@dataclass(kw_only=True)
class CompletedImage(Answer):
    """Completions of an image, in a file."""

    file: Path
    images: list[np.ndarray] = field(repr=False)
    """The image, the image with what is given of it, and its completions (h, w, C)."""
    known: int = field(repr=False)
    """How many pixels were given."""

    @property
    def cells(self) -> list[str]:
        """The file."""
        return [str(self.file)]

    @property
    def title(self) -> str:
        return "where pixels are predicted from"

    def json_values(self) -> dict[str, Any]:
        """The file."""
        return {"file": str(self.file)}


@dataclass(kw_only=True)
class PixelScore(Answer):
    """How well the pixels of an image are predicted."""

    bits: float
    """Bits of the colour of a pixel, the mean over all."""
    accuracy: float
    """The share of pixels whose likeliest colour is right, in percent."""
    known: int = field(default=0, repr=False)

    @property
    def cells(self) -> list[str]:
        """The bits."""
        return [f"{self.bits:.3f}"]

    @property
    def title(self) -> str:
        return f"{self.bits:.2f} bits a pixel"

    @property
    def look_line(self) -> str:
        return f"Answer: {self.bits:.3f} bits a pixel, {self.accuracy:.1f} % of the pixels predicted"


@dataclass
class Pixels(MostLikely, OutputForm):
    """The colour of each pixel: targets `labels` (B, T), and outputs with logits (B, T, N)."""

    options: ClassVar[type[Any]] = CompleteImageOptions
    metric: ClassVar[str] = "bits"
    higher_is_better: ClassVar[bool] = False

    format: Learned[ImageFormat | None] = None
    """The size and the channels of images."""
    levels: Learned[int] = 2
    """Levels of each channel."""

    def check_learned(self) -> None:
        if self.format is None:
            raise UserError("the size of images is missing")
        at_least(2, "levels", self.levels)

    def learn(self, train: Dataset[Any], reads: PixelImage, architecture: Any) -> "Pixels":
        return Pixels(reads.format, reads.levels)

    @property
    def palette(self) -> EvenPalette:
        """The colours of pixels."""
        assert self.format is not None, "the form has not learned from examples"
        return EvenPalette(self.format, self.levels)

    def sizes(self) -> dict[str, int]:
        return {"classes": 1, "colours": self.palette.count}

    @property
    def summary(self) -> str:
        return f"{self.palette.count:,} colours"

    def prepare(self, example: Any) -> list[None]:
        """Nothing: the colours are those of the image that is read."""
        return [None]

    def tensors(
        self, prepared: Sequence[None], changes: Changes, generator: np.random.Generator | None
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
        assert changes.pixels is not None, "the input is not an image of pixels"
        labels = torch.from_numpy(self.palette.colours(changes.pixels))
        return {}, {"labels": labels}, torch.full((len(labels),), labels.shape[1])

    def look_options(self) -> Any:
        return self.measure_options()

    def decide(
        self, model: nn.Module, inputs: dict[str, Tensor], prepared: Sequence[np.ndarray], options: Any
    ) -> Sequence[Answer]:
        """Completions of each image; or, where nothing is to be drawn, how well its pixels are predicted."""
        colours = self.palette.colours(np.stack(list(prepared)))
        if isinstance(options, CompleteImageOptions):
            return [self._completion(model, own, options) for own in colours]
        right = torch.from_numpy(colours)
        logits = model(**inputs).logits.float().cpu()
        bits = cross_entropy(logits.mT, right, reduction="none").mean(1) / log(2)
        shares = (logits.argmax(-1) == right).double().mean(1)
        return [
            PixelScore(bits=of, accuracy=100 * share) for of, share in zip(bits.tolist(), shares.tolist(), strict=True)
        ]

    def _completion(self, model: nn.Module, colours: np.ndarray, options: CompleteImageOptions) -> CompletedImage:
        size, palette = self.palette.format.size, self.palette
        known = int(options.given * size) * size
        drawn = complete(model, np.repeat(colours[None, :known], options.samples, 0), len(colours), options)
        (image,) = palette.images(colours[None])
        hidden = image.copy()
        _flat(hidden)[known:] = GREY
        return CompletedImage(file=options.out, images=[image, hidden, *palette.images(drawn)], known=known)

    def write(self, answers: Sequence[Any], options: CompleteImageOptions) -> None:
        save_grid([answer.images for answer in answers], options.out, SHOWN)

    def metrics(self, answers: Sequence[PixelScore], examples: Sequence[Any]) -> dict[str, float]:
        """Bits of each pixel's colour, and the share of pixels that are predicted."""
        return {name: float(np.mean([getattr(one, name) for one in answers])) for name in ("bits", "accuracy")}

    def baselines(
        self, reads: Any, examples: Sequence[Any], train: Callable[[], Dataset[Any]]
    ) -> dict[str, dict[str, float]]:
        """How frequent a colour is, in each place, and after the pixels to the left and above."""
        known, asked = (
            self.palette.colours(decode_undamaged(part, self.palette.format)[0])
            for part in (train(), Dataset("examples", examples))
        )
        return counted_ways(known, asked, self.palette.format.size, self.palette.count)

    def rows(self, sight: Any, model: nn.Module, answer: Any, before: int) -> list[MapRow]:
        """The last site, the mean of its heads: where some pixels are predicted from, below those that were given."""
        if not sight.sites:
            return []
        weights = sight[sight.sites[-1]].weights()[0].float().mean(0).cpu()
        size = self.palette.format.size
        first = answer.known // size
        found = []
        for part in (np.arange(DRAWN_MAPS) + 0.5) / DRAWN_MAPS:
            row, column = first + int(part * (size - first)), int(part * size)
            found.append(MapRow(f"row {row + 1}, column {column + 1}", _of_pixels(weights[row * size + column])))
        return found


def _of_pixels(weights: Float[Tensor, "T"]) -> Float[Tensor, "T"]:
    """Weights over pixels, of weights over places that each read the pixel before."""
    return torch.cat([weights[1:], weights.new_zeros(1)])


def complete(model: Any, given: np.ndarray, count: int, options: CompleteImageOptions) -> np.ndarray:
    """Images (N, T) whose first colours are `given` (N, t), drawn one pixel after the other up to `count`."""
    device = next(model.parameters()).device
    generator = torch.Generator(device).manual_seed(options.seed)
    start = torch.full((len(given), 1), model.config.colours)
    colours = torch.cat([start, torch.from_numpy(given)], 1).to(device)
    while colours.shape[1] <= count:
        logits = model.output(model.hidden(colours)[:, -1]).float()
        if options.temperature == 0:
            following = logits.argmax(-1, keepdim=True)
        else:
            following = torch.multinomial((logits / options.temperature).softmax(-1), 1, generator=generator)
        colours = torch.cat([colours, following], 1)
    return colours[:, 1:].cpu().numpy()
