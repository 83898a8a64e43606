"""Captions: a model describes an image in words."""

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from foveate.baselines.nearest_images import nearest_images
from foveate.contracts import Hypothesis
from foveate.data import TRAINERS, Tokens
from foveate.data.dataset import Dataset
from foveate.data.images.caption_processor import CaptionProcessor
from foveate.data.images.captions import CaptionedImage, captioned_images
from foveate.data.images.decoding import read_image
from foveate.data.images.processor import choose_format
from foveate.errors import at_least, one_line
from foveate.forms.image_files import image_files, read_images
from foveate.metrics.captions import caption_metrics
from foveate.tasks.answers.caption_pictures import shown_image, word_rows, word_strip
from foveate.tasks.answers.captioning import BATCH, CaptionWriting, describe
from foveate.tasks.answers.word_maps import named_shares
from foveate.tasks.examples.data_options import check_vocabulary
from foveate.tasks.former.predictor import Measured, Predictor, Predictors
from foveate.tasks.former.recipe import Architecture, Training
from foveate.tasks.former.task import Examples, Task
from foveate.tasks.start.parts import FromImageEncoder, ImageEncoder
from foveate.training import Objective
from foveate.training.objectives.coverage import DoublyStochastic
from foveate.viewer.figures import plot_word_rows
from foveate.viewer.protocol import Input, LookResult

LOOKED_AT = 200
"""Images whose attention is compared with the boxes of what they show, when a model is measured."""

NOTEWORTHY = 0.02
"""Share of unknown tokens in the captions of a test from which it is mentioned."""

NEIGHBOURS = 5_000
"""Training images that the nearest one is searched in, for the baseline."""


@dataclass
class Captions(Examples):
    """Which captioned images to learn from, a table with path<TAB>caption on each line or a JSON file of COCO captions,
    and what becomes of them."""

    batch: int = 64
    """Captions of a batch."""
    validation_examples: int = 200
    """Images that each validation during training describes."""
    size: int | None = None
    """Height and width that images are scaled to. By default their own, if all are square, equal and at most 256, else
    64."""
    tokens: Tokens = "words"
    """What a caption is cut into."""
    vocabulary: int = 10_000
    """How many of them to learn, at most."""
    lowercase: bool = True
    """Write lower case only."""

    def check(self) -> None:
        super().check()
        check_vocabulary(self.vocabulary)
        if self.size is not None:
            at_least(1, "size", self.size)


@dataclass
class Caption:
    """What a model wrote about an image."""

    place: str
    """The file of the image."""
    text: str
    """The caption; empty for a file that could not be read."""
    tokens: list[int] = field(default_factory=list)
    options: CaptionWriting | None = field(default=None, repr=False)
    """How it was written, and what a picture of it shows."""

    @property
    def line(self) -> str:
        """The file and the caption, with a tab between them."""
        return f"{one_line(self.place)}\t{one_line(self.text)}" if self.text else ""

    def json_values(self) -> dict[str, Any]:
        """Place and caption."""
        return {"place": self.place, "text": self.text}


@dataclass
class CaptionTask(Task[Architecture]):
    """Train a model that describes images in words.

    `--config FILE` takes settings from a TOML or JSON file, in the tables of a trained model's config.json (examples,
    training, architecture, ...); a flag counts more than the file.
    """

    task = "caption"
    files = "TABLE"
    takes = "image"
    metric = "bleu"
    processor = CaptionProcessor
    options = CaptionWriting
    start_parts = ImageEncoder()
    default_training = Training(
        usual_epochs=10,
        learning_rate=3e-3,
        schedule="cosine",
        usual_warmup=50,
        optimizer="muon",
        label_smoothing=0.0,
        validate_every=300,
        save_every=300,
    )

    examples: Annotated[Captions, tyro.conf.arg(name="")] = field(default_factory=Captions)
    model: str = "show-attend-tell-tiny"
    """The preset to begin from: see `foveate models`."""
    out: Path = Path("runs/caption")
    """Folder for the trained model; a training that it holds is resumed."""
    start: FromImageEncoder = None
    coverage_weight: float = 1.0
    """Weight of the doubly stochastic term, for models with architecture.coverage."""

    def read(self, paths: Sequence[Path]) -> Dataset[CaptionedImage]:
        return captioned_images(paths)

    def fit(self, train: Dataset[CaptionedImage]) -> CaptionProcessor:
        chosen = self.examples
        texts = [caption for example in train for caption in example.captions]
        alike = [train[0]] if train[0].identity else train  # composed images are alike: one tells of all
        tokenizer = TRAINERS[chosen.tokens](texts, chosen.vocabulary, chosen.lowercase)
        return CaptionProcessor(choose_format(alike, chosen.size), tokenizer)

    def objective(self) -> Objective:
        return DoublyStochastic(super().objective(), self.coverage_weight)

    def answer(self, predictor: Predictor, texts: Sequence[str], options: CaptionWriting) -> list[Caption]:
        """The caption of the image in each file; a file that cannot be read is reported and gets none.

        Raises UserError where no file can be read.
        """
        options.check()
        images = read_images(texts)
        written = dict(zip(images, describe(predictor, [*images.values()], options), strict=True))
        captions = predictor.processor.tokenizer.decode([found.tokens for found in written.values()])
        found = {
            place: Caption(place, text, one.tokens, options)
            for (place, one), text in zip(written.items(), captions, strict=True)
        }
        for place, one in found.items():
            if not one.text:
                print(f"{one_line(place)}: the model sees nothing that it has a word for", file=sys.stderr)
        return [found.get(place) or Caption(place, "") for place in texts]

    def expand(self, places: Sequence[str]) -> list[str]:
        return image_files(places)

    def measure(self, predictor: Predictor, examples: Sequence[CaptionedImage], options: CaptionWriting) -> Measured:
        """BLEU and CIDEr-D; where the data tells what stands where, also by the number of things, and the share of the
        attention of a thing's name that is inside its box, beside that of uniform attention."""
        written: list[Hypothesis] = []
        for begin in range(0, len(examples), BATCH):
            written += describe(predictor, [one.read() for one in examples[begin : begin + BATCH]], options)
        captions = predictor.processor.tokenizer.decode([one.tokens for one in written])
        metrics = caption_metrics(captions, examples)
        shares = named_shares(predictor, [one for one in examples if one.regions][:LOOKED_AT])
        if shares:
            inside, uniform = np.mean(shares, 0).tolist()
            metrics |= {"attention_in_box": 100 * inside, "uniform_in_box": 100 * uniform}
        return Measured([*captions], metrics)

    def baselines(
        self, predictor: Predictor, examples: Sequence[CaptionedImage], options: CaptionWriting
    ) -> dict[str, dict[str, float]]:
        """The most frequent caption of the training images, and that of the training image whose pixels are nearest."""
        train = self.open()[0].some(NEIGHBOURS)
        frequent = Counter(caption for one in train for caption in one.captions).most_common(1)[0][0]
        places = nearest_images(examples, train, predictor.processor.format.channels)
        nearest = [train[place].captions[0] for place in places]
        return {
            "the most frequent caption": caption_metrics([frequent] * len(examples), examples),
            "the nearest image's caption": caption_metrics(nearest, examples),
        }

    def notes(self, predictor: Predictor, examples: Sequence[CaptionedImage]) -> list[str]:
        """How many tokens of the references the model cannot write, where these are more than a few."""
        tokenizer = predictor.processor.tokenizer
        tokens = [
            token for own in tokenizer.encode([text for one in examples for text in one.captions]) for token in own
        ]
        share = tokens.count(tokenizer.special.unknown) / max(1, len(tokens))
        if share < NOTEWORTHY:
            return []
        return [f"the model has no word for {100 * share:.0f} % of the tokens of these captions, which it cannot write"]

    def picture(self, predictor: Predictor, prediction: Caption) -> Any:
        """The image once for each word, sharp and bright where the model looked."""
        image, options = read_image(Path(prediction.place)), prediction.options
        if options is None or not (options.heads or options.beside):
            return word_strip(predictor, image, prediction.tokens)
        rows = word_rows(predictor, image, prediction.tokens, options.heads)
        for folder in options.beside:
            other = Predictors(CaptionTask).load(folder)
            (written,) = describe(other, [image], options)
            rows += word_rows(other, image, written.tokens, options.heads)
        return plot_word_rows(shown_image(predictor, image), rows)

    def look(
        self, predictor: Predictor, given: Input, max_length: int, sites: Sequence[str] | None = None
    ) -> LookResult:
        from foveate.tasks.looking.captions import look_at_caption

        return look_at_caption(predictor, given, max_length, sites, CaptionWriting())
