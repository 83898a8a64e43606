"""Reading: a model writes the word that it sees in an image, one character after the other."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import PIL.Image
import torch
import tyro

from foveate.baselines.nearest_images import nearest_writing
from foveate.data.dataset import Dataset
from foveate.data.images.decoding import read_image
from foveate.data.images.word_images import WordImage, WordImageProcessor, check_line_of_text, word_images
from foveate.data.tokens.character_tokens import find_characters
from foveate.errors import UserError, at_least, one_line
from foveate.forms.checks import unseen_labels
from foveate.forms.image_files import image_files
from foveate.metrics.classification import accuracy
from foveate.metrics.error_rates import error_rate
from foveate.sight import look
from foveate.tasks.answers.word_reading import BATCH, Search, read_words
from foveate.tasks.former.predictor import Measured, Predictor
from foveate.tasks.former.recipe import Architecture, Training
from foveate.tasks.former.task import Examples, Task
from foveate.tasks.start.parts import WholeRun
from foveate.viewer.protocol import Input, LookResult

ROW, COLUMN = 8, 4
"""Height and width in pixels of a place that SAR attends to."""

CHARACTERS_FROM = 5_000
"""Examples that the characters are taken from, where there are more of them."""

NEIGHBOURS = 5_000
"""Training images that the nearest one is searched in, for the baseline."""


@dataclass
class WordImages(Examples):
    """Which images of words to learn from, a table with image<TAB>text on each line, and what becomes of them."""

    batch: int = 64
    """Images of a batch."""
    validation_examples: int = 500
    """Images that each validation during training reads."""
    height: int = 32
    """Height that images are scaled to, in pixels, their proportions kept."""
    width: int = 100
    """Width in pixels; wider images are squeezed, narrower ones padded."""
    augment: bool = True
    """Invert and stretch images in training, at random."""

    def check(self) -> None:
        super().check()
        for name in ("height", "width"):
            at_least(8, name, getattr(self, name))


@dataclass
class WordRead:
    """What a model read in an image."""

    place: str
    """The file of the image."""
    text: str
    probability: float
    """Of the whole text; 0 for a file that could not be read."""
    error: str | None = None

    @property
    def line(self) -> str:
        """File, text and probability, with tabs between them."""
        if self.error:
            return f"{one_line(self.place)}\t\t{one_line(self.error)}"
        return f"{one_line(self.place)}\t{one_line(self.text)}\t{self.probability:.3f}"

    def json_values(self) -> dict[str, Any]:
        """Place, text and probability, and what is wrong with a file that could not be read."""
        problem = {"error": self.error} if self.error else {}
        return {"place": self.place, "text": self.text, "probability": self.probability, **problem}


@dataclass
class Read(Task[Architecture]):
    """Train a reader of words in images.

    `--config FILE` takes settings from a TOML or JSON file, in the tables of a trained model's config.json (examples,
    training, architecture, ...); a flag counts more than the file.
    """

    task = "read"
    unit = "characters"
    files = "TABLE"
    takes = "image"
    metric = "word_accuracy"
    processor = WordImageProcessor
    options = Search
    start_parts = WholeRun(grows="vocabulary")
    default_training = Training(
        usual_epochs=1,
        learning_rate=1e-3,
        schedule="cosine",
        usual_warmup=200,
        optimizer="muon",
        label_smoothing=0.0,
        validate_every=500,
    )

    examples: Annotated[WordImages, tyro.conf.arg(name="")] = field(default_factory=WordImages)
    model: str = "sar-tiny"
    """The preset to begin from: see `foveate models`."""
    out: Path = Path("runs/read")
    """Folder for the trained model; a training that it holds is resumed."""

    def read(self, paths: Sequence[Path]) -> Dataset[WordImage]:
        return word_images(paths)

    def fit(self, train: Dataset[WordImage]) -> WordImageProcessor:
        chosen = self.examples
        characters = find_characters(one.label for one in train.some(CHARACTERS_FROM))
        return WordImageProcessor(chosen.height, chosen.width, characters, chosen.augment)

    def grow(self, trained: WordImageProcessor, train: Dataset[WordImage]) -> WordImageProcessor:
        found = self.fit(train)
        return replace(found, characters="".join(dict.fromkeys(trained.characters + found.characters)))

    def expand(self, places: Sequence[str]) -> list[str]:
        return image_files(places)

    def answer(self, predictor: Predictor, texts: Sequence[str], options: Search) -> list[WordRead]:
        """What is written in the image of each file; a file that cannot be read gets no text, but an error."""
        options.check()
        images, errors = {}, {}
        for place in dict.fromkeys(texts):
            try:
                images[place] = _line_image(place)
            except UserError as error:
                errors[place] = str(error)
        found = dict(zip(images, read_words(predictor, [*images.values()], options), strict=True))
        return [WordRead(place, *found.get(place, ("", 0.0)), error=errors.get(place)) for place in texts]

    def measure(self, predictor: Predictor, examples: Sequence[WordImage], options: Search) -> Measured:
        found: list[str] = []
        for begin in range(0, len(examples), BATCH):
            images = [example.read() for example in examples[begin : begin + BATCH]]
            found += [text for text, _ in read_words(predictor, images, options)]
        return Measured(found, text_metrics(found, [one.label for one in examples]))

    def notes(self, predictor: Predictor, examples: Sequence[WordImage]) -> list[str]:
        characters = [character for one in examples for character in one.label]
        return unseen_labels("characters", characters, predictor.processor.characters)

    def baselines(
        self, predictor: Predictor, examples: Sequence[WordImage], options: Search
    ) -> dict[str, dict[str, float]]:
        """The most frequent word of the training images, and the word of the nearest of 5,000 of them."""
        chosen, right = self.examples, [one.label for one in examples]
        learned = self.open_source(chosen.source).train if chosen.source else self.read(chosen.data)
        known = learned.some(NEIGHBOURS)
        words = [one.label for one in known]
        frequent = Counter(words).most_common(1)[0][0]
        nearest = [words[place] for place in nearest_writing(examples, known)]
        return {
            "the most frequent word": text_metrics([frequent] * len(right), right),
            "the nearest image": text_metrics(nearest, right),
        }

    def picture(self, predictor: Predictor, prediction: WordRead) -> Any:
        """The image, and for each character where the model looked when it wrote it."""
        from foveate.viewer.steps import draw

        processor: WordImageProcessor = predictor.processor
        image = read_image(Path(prediction.place))
        inputs = processor.inputs([image])
        tokens = [processor.special.start, *processor.encode(prediction.text)]
        with torch.inference_mode(), look(predictor.model) as sight:
            predictor.forward({**inputs, "target": torch.tensor([tokens])})
        weights = sight[sight.sites[-1]].weights()[0, 0].cpu()
        columns = int(inputs["pixels"].shape[3]) // COLUMN
        maps = weights.unflatten(1, (-1, columns))[:, :, : -(-int(inputs["widths"][0]) // COLUMN)]
        shown = processor.grey(image)
        return draw(np.asarray(shown), maps.numpy(), [*prediction.text, "end"], "image")

    def look(
        self, predictor: Predictor, given: Input, max_length: int, sites: Sequence[str] | None = None
    ) -> LookResult:
        from foveate.tasks.looking.reading import look_at_reading

        return look_at_reading(predictor, given, max_length, sites, ROW, COLUMN)


def _line_image(place: str) -> PIL.Image.Image:
    """The image of a file. Raises UserError where it cannot be read, or cannot hold a line of text."""
    image = read_image(Path(place))
    check_line_of_text(image.size, place)
    return image


def text_metrics(found: Sequence[str], right: Sequence[str]) -> dict[str, float]:
    """In percent: words that are right, words whose letters and digits are right whatever their case, and CER."""
    plain = [["".join(filter(str.isalnum, text)).lower() for text in texts] for texts in (found, right)]
    return {
        "word_accuracy": accuracy(found, right),
        "accuracy_ignoring_case": accuracy(*plain),
        "character_error_rate": error_rate(found, right),
    }
