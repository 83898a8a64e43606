"""Text to image: a model draws what a caption says."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from foveate.data import TRAINERS, Tokens
from foveate.data.dataset import Dataset
from foveate.data.images.captions import CaptionedImage, captioned_images
from foveate.data.images.decoded import decode
from foveate.data.images.drawing_processor import DrawingProcessor, learn_palette
from foveate.data.images.processor import choose_format
from foveate.errors import UserError, at_least, one_line
from foveate.forms.image_grid import check_image_file, save_grid
from foveate.tasks.answers.drawing_metrics import drawing_recall, hidden_token_losses, unigram_metrics
from foveate.tasks.answers.drawings import Sketching, draw
from foveate.tasks.answers.drawn_words import check_captions, drawn_word_maps, named_shares, without_commas
from foveate.tasks.examples.data_options import check_vocabulary
from foveate.tasks.former.predictor import Measured, Predictor
from foveate.tasks.former.recipe import Architecture, Training
from foveate.tasks.former.task import Examples, Task
from foveate.training import Objective
from foveate.training.objectives.objective import CrossEntropy
from foveate.viewer.figures import plot_word_strip
from foveate.viewer.protocol import Input, LookResult

COUNTED = 2_000
"""Training images whose tokens are counted, for the baselines."""

SHOWN = 256
"""Height and width of each drawing in a file, in pixels, at least."""

MOST = 64
"""Captions that are drawn into one file."""


@dataclass
class Drawings(Examples):
    """Which captioned images to learn from, a table with path<TAB>caption on each line or a JSON file of COCO captions,
    and what becomes of them."""

    batch: int = 32
    """Captions of a batch."""
    validation_examples: int = 400
    """Images that each validation during training measures."""
    size: int | None = None
    """Height and width that images are scaled to. By default their own, if all are square, equal and at most 256, else
    64."""
    patch: int = 2
    """Height and width of the patches that are drawn; 1 draws pixels."""
    codes: int = 512
    """Colours or patterns of a patch to choose from, at most; learned by k-means."""
    tokens: Tokens = "words"
    """What a caption is cut into."""
    vocabulary: int = 10_000
    """How many of them to learn, at most."""
    lowercase: bool = True
    """Read captions in lower case."""
    caption_dropout: float = 0.1
    """Share of the captions that are left out in training, so that guidance knows what is drawn without one."""

    def check(self) -> None:
        super().check()
        check_vocabulary(self.vocabulary)
        for name in ("patch", "codes", "size"):
            at_least(1, name, getattr(self, name) or 1)
        if not 0 <= self.caption_dropout < 1:
            raise UserError(f"caption_dropout is {self.caption_dropout}, but must be at least 0 and below 1")


@dataclass
class Judging(Sketching):
    """With `foveate eval`: how captions are drawn, and what judges the drawings."""

    matcher: Path | None = None
    """A model that `foveate train match-image` made: also measure how often it finds the caption of a drawing among
    100."""


@dataclass
class Drawing:
    """What was drawn for a caption."""

    caption: str
    file: Path
    tokens: np.ndarray = field(repr=False)
    """The tokens of each sample, (samples, T)."""

    @property
    def line(self) -> str:
        """The file and the caption, with a tab between them."""
        return f"{one_line(self.file)}\t{one_line(self.caption)}"


@dataclass
class Draw(Task[Architecture]):
    """Train a model that draws what a caption says.

    `--config FILE` takes settings from a TOML or JSON file, in the tables of a trained model's config.json (examples,
    training, architecture, ...); a flag counts more than the file.
    """

    task = "draw"
    unit = "tokens"
    files = "TABLE"
    takes = "text"
    metric = "nats"
    higher_is_better = False
    processor = DrawingProcessor
    options = Sketching
    default_training = Training(
        usual_epochs=20,
        learning_rate=2e-3,
        schedule="cosine",
        usual_warmup=100,
        label_smoothing=0.0,
        weight_decay=0.05,
        validate_every=300,
        save_every=300,
    )

    examples: Annotated[Drawings, tyro.conf.arg(name="")] = field(default_factory=Drawings)
    model: str = "text-to-image-tiny"
    """The preset to begin from: see `foveate models`."""
    out: Path = Path("runs/draw")
    """Folder for the trained model; a training that it holds is resumed."""

    def read(self, paths: Sequence[Path]) -> Dataset[CaptionedImage]:
        return captioned_images(paths)

    def fit(self, train: Dataset[CaptionedImage]) -> DrawingProcessor:
        chosen = self.examples
        texts = [caption for example in train for caption in example.captions]
        tokenizer = TRAINERS[chosen.tokens](texts, chosen.vocabulary, chosen.lowercase)
        alike = [train[0]] if train[0].identity else train  # composed images are alike: one tells of all
        image_format = choose_format(alike, chosen.size)
        if image_format.size % chosen.patch:
            raise UserError(f"images of {image_format.size} pixels do not divide into patches of {chosen.patch}")
        some = Dataset(train.name, train.some(COUNTED), train.unit)
        palette = learn_palette(decode(some, image_format), chosen.patch, chosen.codes)
        return DrawingProcessor(palette, tokenizer, chosen.caption_dropout)

    def objective(self) -> Objective:
        return CrossEntropy(self.training.label_smoothing)

    @classmethod
    def eval_options(cls, recipe: Any, where: str) -> Judging:
        return Judging()

    def answer(self, predictor: Predictor, texts: Sequence[str], options: Sketching) -> list[Drawing]:
        """Draw each caption. Raises TextError for one that is empty or has words that the model never saw."""
        options.check()
        check_image_file(options.out)
        if len(texts) > MOST:
            raise UserError(f"{len(texts)} captions are given, but a file takes at most {MOST}")
        captions = without_commas(predictor, texts)
        check_captions(predictor, captions)
        wanted = [caption for caption in captions for _ in range(options.samples)]
        tokens = draw(predictor, wanted, options).reshape(len(texts), options.samples, -1)
        palette = predictor.processor.palette
        save_grid([[*palette.decode(row)] for row in tokens], options.out, SHOWN)
        return [Drawing(caption, options.out, own) for caption, own in zip(captions, tokens, strict=True)]

    def measure(self, predictor: Predictor, examples: Sequence[CaptionedImage], options: Judging) -> Measured:
        """Nats of each hidden token and the share that is predicted; where the data tells what stands where, the share
        of the attention of a thing's name that is inside its box; with a matcher, how often it finds the caption."""
        nats, right, count = hidden_token_losses(predictor, examples)
        metrics = {"nats": nats.sum() / count.sum(), "accuracy": 100 * right.sum() / count.sum()}
        if isinstance(options, Judging) and options.matcher is not None:
            metrics |= drawing_recall(predictor, examples, options)
        if inside := named_shares(predictor, examples):
            metrics |= {"attention_in_box": 100 * inside[0], "uniform_in_box": 100 * inside[1]}
        lines = [f"{one.captions[0]}\t{loss / places:.3f}" for one, loss, places in zip(examples, nats, count)]  # noqa: B905
        return Measured(lines, {name: float(value) for name, value in metrics.items()})

    def baselines(
        self, predictor: Predictor, examples: Sequence[CaptionedImage], options: Any
    ) -> dict[str, dict[str, float]]:
        """How frequent a token is in all training images, and how frequent it is in each place."""
        processor = predictor.processor
        train = Dataset("training images", self.open()[0].some(COUNTED))
        known, asked = (_tokens(processor, part) for part in (train, examples))
        count = len(processor.palette.codes)
        everywhere = np.bincount(known.ravel(), minlength=count)[None].repeat(known.shape[1], 0)
        placed = np.stack([np.bincount(column, minlength=count) for column in known.T])
        ways = {"frequency of each token": everywhere, "frequency of each token in each place": placed}
        return {
            name: unigram_metrics(counts + 0.1 * (everywhere / everywhere.sum() + 1e-3), asked)
            for name, counts in ways.items()
        }

    def picture(self, predictor: Predictor, prediction: Drawing) -> Any:
        """The first drawing once for each word, bright where the words' attention was."""
        tokens = prediction.tokens[:1]
        words = predictor.processor.tokenizer.encode([prediction.caption])
        (maps,) = drawn_word_maps(predictor, tokens, words)
        shown = _enlarged(predictor.processor.palette.decode(tokens)[0])
        return plot_word_strip(shown, predictor.processor.tokenizer.pieces(words[0]), maps)

    def look(
        self, predictor: Predictor, given: Input, max_length: int, sites: Sequence[str] | None = None
    ) -> LookResult:
        from foveate.tasks.looking.drawings import look_at_drawing

        return look_at_drawing(predictor, given, max_length, sites, Sketching())


def _tokens(processor: DrawingProcessor, examples: Any) -> np.ndarray:
    return processor.palette.encode(decode(Dataset("examples", list(examples)), processor.palette.format))


def _enlarged(pixels: np.ndarray) -> np.ndarray:
    times = max(1, SHOWN // len(pixels))
    return pixels.repeat(times, 0).repeat(times, 1)
