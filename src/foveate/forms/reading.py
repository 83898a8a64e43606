"""Reading: the word in an image, character by character.

    WordLine   what is read: an image of a line of text
    LineText   what is written: its characters

B batch    h, w height and width in pixels
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar, NamedTuple
from unicodedata import normalize

import numpy as np
import PIL.Image
import torch
from torch import Tensor, nn

from foveate.baselines.nearest_images import nearest_writing
from foveate.contracts import Hypothesis, Picture
from foveate.data.dataset import Dataset, Prepared
from foveate.data.images.decoding import turn_upright
from foveate.data.images.kept import Unread
from foveate.data.images.labelled import is_damaged, report_damaged
from foveate.data.images.word_distortion import distorted
from foveate.data.images.word_images import check_line_of_text, grey
from foveate.data.text.scripts import in_word
from foveate.decoding import Decoding
from foveate.errors import at_least, at_most
from foveate.forms.form import Changes, MapRow, Naming
from foveate.forms.grids import GridFinder
from foveate.forms.image import ImageForm, count_places
from foveate.forms.written import WrittenAnswer, WrittenCharacters
from foveate.metrics.classification import accuracy
from foveate.metrics.error_rates import error_rate
from foveate.sight import Sight
from foveate.viewer.protocol import Input
from foveate.viewer.sides import Image

NEIGHBOURS = 5_000
"""Training images that the nearest one is searched in, for the baseline."""

NARROWEST = 4
"""Pixels of the narrowest image."""


class LinePixels(NamedTuple):
    """An image of a line of text as a model reads it, of any width."""

    pixels: np.ndarray
    """(h, w)"""
    squeezed: bool = False
    """Whether the line is too wide in its proportions."""


@dataclass
class WordLine(ImageForm):
    """An image of a line of text: inputs `pixels` (B, 1, h, w) and `widths` (B,), the columns that are no padding.

    An image is made grey and scaled to the height, its proportions kept; one that is then wider than the width is
    squeezed. Each image gets a mean of 0 and a deviation of 1; columns of padding are 0.
    """

    height: int = 32
    """Height that images are scaled to, in pixels, their proportions kept."""
    width: int = 100
    """Width in pixels; wider images are squeezed, narrower ones padded."""
    augment: bool = True
    """Invert and stretch images in training, at random."""
    distort: float = 0.0
    """With augment: share of the training images that are also turned, bent, cut out anew, relit, blurred and
    compressed at random. It helps with few photographs; drawn words are distorted already."""

    def check(self) -> None:
        at_least(8, "height", self.height)  # what SAR's convolutions leave a place of
        at_least(NARROWEST, "width", self.width)
        at_least(0, "distort", self.distort)
        at_most(1, "distort", self.distort)

    def sizes(self) -> dict[str, int]:
        return {"channels": 1}

    def open(self, given: str) -> PIL.Image.Image:
        image = turn_upright(super().open(given))
        check_line_of_text(image.size, given)
        return image

    def receive(self, given: Input, name: str) -> PIL.Image.Image:
        image = super().receive(given, name)
        check_line_of_text(image.size, self.title(given))
        return image

    def prepare(self, value: PIL.Image.Image) -> LinePixels:
        return LinePixels(self.scaled(value), self._width(turn_upright(value).size) > self.width)

    def prepare_all(self, dataset: Dataset[Any]) -> Prepared:
        """They stay where they are: each is stretched anew in training."""
        files = {number: one for number, one in enumerate(dataset) if getattr(one, "file", None) is not None}
        damaged = {number: one for number, one in files.items() if is_damaged(one)}
        kept = [number for number in range(len(dataset)) if number not in damaged]
        return Prepared([Unread(dataset[number].read) for number in kept], kept, report_damaged([*damaged.values()]))

    def places(self, prepared: Any) -> int:
        return count_places((self.height, self.width))

    def longer_than_training(self, prepared: Any) -> bool:
        """Whether a line was squeezed into the width."""
        return isinstance(prepared, LinePixels) and prepared.squeezed

    def tensors(
        self, prepared: Sequence[Any], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        chosen = generator if self.augment else None
        canvas = np.zeros((len(prepared), 1, self.height, self.width), np.float32)
        widths = np.empty(len(prepared), np.int64)
        for row, one in enumerate(prepared):
            pixels = one.pixels if isinstance(one, LinePixels) else self.scaled(one.read(), chosen)
            widths[row] = pixels.shape[1]
            canvas[row, 0, :, : widths[row]] = pixels
        return {"pixels": torch.from_numpy(canvas), "widths": torch.from_numpy(widths)}, Changes()

    def scaled(self, image: PIL.Image.Image, generator: np.random.Generator | None = None) -> np.ndarray:
        """The pixels (h, w) of an image, perhaps distorted, inverted and stretched at random."""
        shown = grey(image)
        sign, stretch = 1.0, 1.0
        if generator is not None:
            if self.distort and generator.random() < self.distort:
                shown = distorted(shown, generator)
            sign = 1.0 if generator.random() < 0.5 else -1.0
            stretch = float(np.exp(generator.normal(0, 0.15)))
        width = max(self._width(shown.size, stretch), NARROWEST)
        shown = shown.resize((min(width, self.width), self.height), PIL.Image.Resampling.BILINEAR)
        pixels = np.asarray(shown, np.float32)
        return sign * (pixels - pixels.mean()) / (pixels.std() + 1)

    def _width(self, size: tuple[int, int], stretch: float = 1.0) -> int:
        """Pixels across of an image in its proportions, once it has the height."""
        return round(stretch * size[0] * self.height / size[1])

    def axis(self, value: PIL.Image.Image, prepared: Any, grid: GridFinder) -> Naming:
        """The image with its padding, in the grid of the model."""
        shown = np.full((self.height, self.width), 255, np.uint8)
        inside = self.scaled(value).shape[1]
        shown[:, :inside] = np.asarray(grey(value).resize((inside, self.height)))

        def names(count: int) -> Image | None:
            rows, columns, _ = grid(count)
            return Image.of(shown, rows, columns) if rows > 1 else None

        return names

    def draw(self, value: PIL.Image.Image, rows: Sequence[MapRow], title: str, grid: GridFinder) -> Picture | None:
        """The image, and for each character where the model looked when it wrote it."""
        from foveate.viewer.steps import draw  # imports matplotlib, which takes a while

        down, across, _ = grid(len(rows[0].weights))
        inside = -(-self.scaled(value).shape[1] * across // self.width)
        maps = torch.stack([torch.as_tensor(row.weights).unflatten(0, (down, across)) for row in rows])[..., :inside]
        return draw(np.asarray(grey(value)), maps.numpy(), [row.name for row in rows], "image")


@dataclass(kw_only=True)
class ReadAnswer(WrittenAnswer):
    """What a model read in an image."""

    called: ClassVar[str] = "Text"

    @property
    def probability(self) -> float:
        """Of the whole text."""
        return float(np.exp(self.log_prob))

    @property
    def cells(self) -> list[str]:
        """The text and its probability, and the next best texts; none where there was nothing to read."""
        if not (self.text or self.log_prob):
            return []
        return [self.text, f"{self.probability:.3f}", *self.others]

    def json_values(self) -> dict[str, Any]:
        """Place, text and probability."""
        others = {"others": self.others} if self.others else {}
        return {"place": self.given, "text": self.text, "probability": self.probability, **others}


@dataclass
class LineText(WrittenCharacters):
    """The text in an image."""

    metric: ClassVar[str] = "word_accuracy"
    decoder: ClassVar[str] = ""
    attending: ClassVar[tuple[str, ...]] = ("",)
    start_sign: ClassVar[str] = "[START]"
    end_sign: ClassVar[str] = "[END]"

    lowercase: bool = False
    """Write small letters only, and measure without case: "EXIT" is written as "exit"."""
    decoding: Decoding = field(
        default_factory=lambda: Decoding(length_factor=0.0, length_extra=41, growth=None, threshold=None)
    )

    def texts(self, example: Any) -> Sequence[str]:
        return [example.label.lower() if self.lowercase else example.label]

    def nothing(self) -> ReadAnswer:
        return ReadAnswer()

    def answers(self, hypotheses: Sequence[Sequence[Hypothesis]]) -> list[WrittenAnswer]:
        return [ReadAnswer(**vars(one)) for one in super().answers(hypotheses)]

    def metrics(self, answers: Sequence[WrittenAnswer], examples: Sequence[Any]) -> dict[str, float]:
        return text_metrics([one.text for one in answers], [*chain.from_iterable(map(self.texts, examples))])

    def baselines(
        self, reads: Any, examples: Sequence[Any], train: Callable[[], Dataset[Any]]
    ) -> dict[str, dict[str, float]]:
        """The most frequent word of the training images, and the word of the nearest of 5,000 of them."""
        known = [*reads.usable(Dataset("training images", train().some(NEIGHBOURS), "images"))]
        right, words = ([*chain.from_iterable(map(self.texts, some))] for some in (examples, known))
        frequent = Counter(words).most_common(1)[0][0]
        nearest = [words[place] for place in nearest_writing(examples, known)]
        return {
            "the most frequent word": text_metrics([frequent] * len(right), right),
            "the nearest image": text_metrics(nearest, right),
        }

    def rows(self, sight: Sight, model: nn.Module, answer: WrittenAnswer, before: int) -> list[MapRow]:
        found = super().rows(sight, model, answer, before)
        return [*found[:-1], found[-1]._replace(name="end")] if found else []


def text_metrics(found: Sequence[str], right: Sequence[str]) -> dict[str, float]:
    """In percent: words that are right, words whose letters and digits are right whatever their case, and CER."""
    found, right = ([normalize("NFC", text) for text in texts] for texts in (found, right))
    plain = [["".join(filter(in_word, text)).lower() for text in texts] for texts in (found, right)]
    return {
        "word_accuracy": accuracy(found, right),
        "accuracy_ignoring_case": accuracy(*plain),
        "character_error_rate": error_rate(found, right),
    }
