"""Drawings of captions: patches of an image, which a model predicts where they are hidden.

    Caption   what is read: the words of a caption
    Drawing   what is written: the tokens of an image

B batch    K codes; the number K itself stands for a hidden place    T places of an image, row by row    S tokens
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import PIL.Image
import torch
from torch import Tensor, nn

from foveate.contracts import IGNORE, Picture
from foveate.data.dataset import Dataset, Prepared
from foveate.data.images.captions import CaptionedImage
from foveate.data.images.decoded import decode_undamaged
from foveate.data.images.labelled import is_damaged, report_damaged
from foveate.data.images.palette import Palette, learn_palette
from foveate.data.images.pixels import choose_format
from foveate.data.tokens.tokenizers import load_tokenizer
from foveate.decoding import Unmasking, unmask
from foveate.errors import UserError, at_least
from foveate.forms.answers import Answer
from foveate.forms.caption_words import START_SIGN, CaptionWords
from foveate.forms.form import Changes, InputForm, Learned, MapRow, OutputForm
from foveate.forms.grids import GridFinder, grid_names
from foveate.forms.image import draw_over, image_digest
from foveate.forms.image_files import without_damaged
from foveate.forms.image_grid import check_image_file, check_samples, save_grid
from foveate.forms.inputs import require_text
from foveate.forms.naming import Naming, token_names
from foveate.forms.ranged_pixels import RangedPixels
from foveate.forms.truncation import CutText
from foveate.training.settings import check_seed
from foveate.viewer.protocol import Input
from foveate.viewer.sides import SidePair

COUNTED = 2_000
"""Training images whose tokens are counted, for the baselines, and that the palette is learned from."""

SHOWN = 256
"""Height and width of each drawing in a file, in pixels, at least."""

MOST = 64
"""Captions that are drawn into one file, and images that are drawn together."""

LOOKED_AT = 8
"""How often a drawing is enlarged for a look."""


class CaptionTokens(NamedTuple):
    """A caption and its tokens."""

    text: str
    tokens: list[int]


@dataclass
class Caption(RangedPixels, CaptionWords, CutText, InputForm):
    """A caption: inputs `tokens` (B, S), beginning with a start token, and `lengths` (B,)."""

    with_end: ClassVar[bool] = False

    caption_dropout: float = 0.1
    """Share of the captions that are left out in training, so that guidance knows what is drawn without one."""

    def check(self) -> None:
        super().check()
        if not 0 <= self.caption_dropout < 1:
            raise UserError(f"caption_dropout is {self.caption_dropout}, but must be at least 0 and below 1")

    def learn(self, train: Dataset[CaptionedImage], architecture: Any) -> "Caption":
        found = copy(self)
        found.learn_words([caption for example in train for caption in example.captions], architecture)
        return found

    def sizes(self) -> dict[str, int]:
        return {"vocabulary": len(self.tokenizer)}

    def open(self, given: str) -> str:
        caption = self.without_commas(given)
        self.known(caption, "nothing to draw")
        return caption

    def receive(self, given: Input, name: str) -> str:
        caption = require_text(given, name).strip()
        self.known(caption, "nothing to draw")
        return caption

    def value(self, example: CaptionedImage) -> str:
        return example.captions[0]

    def place(self, example: CaptionedImage) -> str:
        return example.captions[0]

    def group(self, example: CaptionedImage) -> Hashable:
        return example.identity or image_digest(example)

    def limit(self, model: nn.Module) -> float:
        """The model's other positions are those of the drawing."""
        return self.longest

    def positions(self, prepared: CaptionTokens) -> int:
        return len(prepared.tokens) + 2  # start and end

    def prepare(self, value: str) -> CaptionTokens:
        return CaptionTokens(value, list(self.tokenizer.encode([value])[0]))

    def prepare_all(self, dataset: Dataset[CaptionedImage]) -> Prepared:
        """Each caption of each image that can be read."""
        damaged = {number: example for number, example in enumerate(dataset) if is_damaged(example)}
        kept = [number for number in range(len(dataset)) if number not in damaged]
        captions = [(number, caption) for number in kept for caption in dataset[number].captions]
        tokens = self.tokenizer.encode([caption for _, caption in captions])
        values = [CaptionTokens(caption, own) for (_, caption), own in zip(captions, tokens, strict=True)]
        return Prepared(values, [number for number, _ in captions], report_damaged([*damaged.values()]))

    def tensors(
        self, prepared: Sequence[CaptionTokens], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        captions = [one.tokens for one in prepared]
        if generator is not None:
            left_out = generator.random(len(captions)) < self.caption_dropout
            captions = [[] if out else tokens for out, tokens in zip(left_out, captions, strict=True)]
        return self.read(captions), Changes()

    def usable(self, dataset: Dataset[CaptionedImage]) -> Dataset[CaptionedImage]:
        return without_damaged(dataset)


@dataclass
class DrawOptions(Unmasking):
    """How captions are drawn."""

    out: Path = Path("drawing.png")
    """The file to draw into (.png): a row for each caption."""
    samples: int = 4
    """Drawings of each caption, side by side."""
    seed: int = 1
    """Seed of random draws."""

    def check(self) -> None:
        super().check()
        check_samples(self.samples)
        check_seed(self.seed)
        check_image_file(self.out)


@dataclass
class JudgeDrawings(DrawOptions):
    """With `foveate eval`: how captions are drawn, and what judges the drawings."""

    matcher: Path | None = None
    """A model that `foveate train match-image` made: also measure how often it finds the caption of a drawing among
    100."""


@dataclass(kw_only=True)
class CaptionDrawing(Answer):
    """What was drawn for a caption."""

    caption: str = ""
    file: Path = Path("drawing.png")
    tokens: np.ndarray = field(repr=False, compare=False)
    """The tokens of each sample (N, T)."""
    words: list[str] = field(default_factory=list, repr=False)
    """The start, and the tokens of the caption."""

    @property
    def cells(self) -> list[str]:
        """The file and the caption."""
        return [str(self.file), self.caption]

    @property
    def title(self) -> str:
        return ""

    @property
    def look_line(self) -> str:
        return "The drawing was made first."

    def json_values(self) -> dict[str, Any]:
        """The caption and the file."""
        return {"caption": self.caption, "file": str(self.file)}


@dataclass
class Drawing(OutputForm):
    """An image of patches: inputs `image` (B, T), and labels (B, T) for the hidden places alone.

    In training some places of each image are hidden, cos(u pi / 2) of them for a u that is drawn evenly (Chang et al.
    2022, https://arxiv.org/abs/2202.04200).
    """

    saved_apart: ClassVar[Mapping[str, str]] = CaptionWords.saved_apart
    options: ClassVar[type[Any]] = DrawOptions
    eval_options: ClassVar[type[Any]] = JudgeDrawings
    metric: ClassVar[str] = "nats"
    higher_is_better: ClassVar[bool] = False

    size: int | None = None
    """Height and width that images are scaled to. By default their own, if all are square, equal and at most 256, else
    64."""
    patch: int = 2
    """Height and width of the patches that are drawn; 1 draws pixels."""
    codes: int = 512
    """Colours or patterns of a patch to choose from, at most; learned by k-means."""
    learned: Learned[Palette | None] = None
    """How images become tokens and back."""
    tokenizer: Learned[Any] = None
    """What cut the captions into tokens, for the names of these."""

    @classmethod
    def load_part(cls, name: str, path: Path) -> Any:
        return load_tokenizer(path)

    def check(self) -> None:
        for name in ("patch", "codes", "size"):
            at_least(1, name, getattr(self, name) or 1)

    def check_learned(self) -> None:
        if self.learned is None:
            raise UserError("the palette is missing")
        self.learned.check()

    @property
    def palette(self) -> Palette:
        """How images become tokens and back, once it is learned."""
        assert self.learned is not None, "the form has not learned from examples"
        return self.learned

    def learn(self, train: Dataset[CaptionedImage], reads: Any, architecture: Any) -> "Drawing":
        alike = [train[0]] if train[0].identity else train  # composed images are alike: one tells of all
        image_format = choose_format(alike, self.size)
        if image_format.size % self.patch:
            raise UserError(f"images of {image_format.size} pixels do not divide into patches of {self.patch}")
        pixels, *_ = decode_undamaged(Dataset(train.name, train.some(COUNTED), train.unit), image_format)
        found = copy(self)
        found.learned, found.tokenizer = learn_palette(pixels, self.patch, self.codes), reads.tokenizer
        return found

    def sizes(self) -> dict[str, int]:
        return {"codes": len(self.palette.codes), "side": self.palette.side}

    # -- training

    def prepare(self, example: CaptionedImage) -> list[np.ndarray]:
        """The tokens of its image (T,)."""
        return [self.palette.encode(self.palette.format.pixels(example.read())[None])[0]]

    def tensors(
        self, prepared: Sequence[np.ndarray], changes: Changes, generator: np.random.Generator | None
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
        images = np.stack(list(prepared))
        hidden = hide(images.shape, generator or np.random.default_rng(1))
        image = torch.from_numpy(np.where(hidden, len(self.palette.codes), images))
        labels = torch.from_numpy(np.where(hidden, images, IGNORE))
        return {"image": image}, {"labels": labels}, (labels != IGNORE).sum(1)

    # -- drawing

    def look_options(self) -> DrawOptions:
        return DrawOptions(samples=1)

    def decide_all(
        self,
        model: nn.Module,
        batches: Iterable[tuple[Sequence[Any], dict[str, Tensor]]],
        options: DrawOptions,
        at_once: int = 1,
    ) -> Iterator[list[CaptionDrawing]]:
        """The drawings of each caption, all by one seed."""
        generator = torch.Generator(next(model.parameters()).device).manual_seed(options.seed)
        for captions, condition in batches:
            drawn = self.draw_tokens(model, condition, options, generator)
            drawn = drawn.reshape(len(captions), options.samples, -1)
            yield [
                CaptionDrawing(file=options.out, caption=caption.text, tokens=own, words=self.words(caption.tokens))
                for caption, own in zip(captions, drawn, strict=True)
            ]

    def draw_tokens(
        self, model: nn.Module, condition: Mapping[str, Tensor], options: DrawOptions, generator: torch.Generator
    ) -> np.ndarray:
        """The tokens (N, T) of `samples` drawings of each caption."""
        rows = {name: value.repeat_interleave(options.samples, 0) for name, value in condition.items()}
        found = []
        for begin in range(0, len(rows["tokens"]), MOST):
            own = {name: value[begin : begin + MOST] for name, value in rows.items()}
            nothing = {"tokens": own["tokens"][:, :1], "lengths": torch.ones_like(own["lengths"])}
            count, device = len(own["tokens"]), own["tokens"].device
            hidden = torch.full((count, self.palette.side**2), len(self.palette.codes), device=device)
            found.append(unmask(model, hidden, own, nothing, options, generator).cpu().numpy())
        return np.concatenate(found)

    def words(self, caption: Sequence[int]) -> list[str]:
        """The start, and the tokens of a caption."""
        return [START_SIGN, *self.tokenizer.pieces(caption)]

    def images(self, tokens: np.ndarray) -> list[PIL.Image.Image]:
        """The images of tokens (N, T)."""
        found = self.palette.decode(tokens)
        return [PIL.Image.fromarray(pixels.squeeze(-1) if pixels.shape[-1] == 1 else pixels) for pixels in found]

    def write(self, answers: Sequence[CaptionDrawing], options: DrawOptions) -> None:
        if len(answers) > MOST:
            raise UserError(f"{len(answers)} captions are given, but a file takes at most {MOST}")
        save_grid([[*self.palette.decode(answer.tokens)] for answer in answers], options.out, SHOWN)

    # -- measuring

    def baselines(
        self, reads: Any, examples: Sequence[Any], train: Callable[[], Dataset[Any]]
    ) -> dict[str, dict[str, float]]:
        """How frequent a token is in all training images, and how frequent it is in each place."""
        some = without_damaged(Dataset("training images", train().some(COUNTED)))
        known, asked = (np.stack([self.prepare(one)[0] for one in part]) for part in (some, examples))
        count = len(self.palette.codes)
        everywhere = np.bincount(known.ravel(), minlength=count)[None].repeat(known.shape[1], 0)
        placed = np.stack([np.bincount(column, minlength=count) for column in known.T])
        ways = {"frequency of each token": everywhere, "frequency of each token in each place": placed}
        return {
            name: unigram_metrics(counts + 0.1 * (everywhere / everywhere.sum() + 1e-3), asked)
            for name, counts in ways.items()
        }

    # -- looking

    def teach(self, answer: CaptionDrawing) -> dict[str, Tensor]:
        return {"image": torch.from_numpy(np.ascontiguousarray(answer.tokens[:1]))}

    def side_names(self, sight: Any, along: Naming, answer: CaptionDrawing) -> dict[str, SidePair]:
        """The words of the caption in layers of the text, the places of the drawing in those of the image."""
        words, picture = token_names(answer.words), grid_names(self.shown(answer, LOOKED_AT))
        names: dict[str, SidePair] = {}
        for site in sight.sites:
            own, other = (picture, words) if ".image." in site else (words, picture)
            queries, keys = sight[site].shape[2:]
            names[site] = own(queries), (other if site.endswith("cross") else own)(keys)
        return names

    def rows(self, sight: Any, model: nn.Module, answer: CaptionDrawing, before: int) -> list[MapRow]:
        """Where each word looked in the drawing: the mean of all blocks and heads."""
        sites = [site for site in sight.sites if site.endswith("text.cross")]
        if not sites:
            return []
        weights = torch.stack([sight[site].weights()[0].mean(0) for site in sites]).mean(0).float().cpu()
        return [MapRow(word, own) for word, own in zip(answer.words[1:], weights[1:], strict=False)]

    def draw(self, answer: CaptionDrawing, value: Any, rows: Sequence[MapRow], grid: GridFinder) -> Picture | None:
        """The first drawing once for each word."""
        return draw_over(self.shown(answer, max(1, SHOWN // self.palette.size)), rows, answer.title, grid)

    def shown(self, answer: CaptionDrawing, times: int) -> np.ndarray:
        """The first drawing (h, w, C), enlarged this many times."""
        return np.ascontiguousarray(self.palette.decode(answer.tokens[:1])[0].repeat(times, 0).repeat(times, 1))


def hide(shape: tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
    """Which places of each image are hidden: at least one. The shares are spread evenly over the images."""
    rows, places = shape
    even = (np.arange(rows) + generator.random(rows)) / rows
    counts = np.ceil(places * np.cos(np.pi / 2 * generator.permutation(even))).clip(1)
    ranks = generator.random(shape).argsort(1).argsort(1)
    return ranks < counts[:, None]


def unigram_metrics(counts: np.ndarray, asked: np.ndarray) -> dict[str, float]:
    """The nats of tokens (N, T) for the counts (T, K) of each place, and how often the most frequent one is right."""
    log_probs = np.log(counts / counts.sum(1, keepdims=True))
    places = np.arange(asked.shape[1])
    right = asked == counts.argmax(1)
    return {"nats": float(-log_probs[places, asked].mean()), "accuracy": 100 * float(right.mean())}
