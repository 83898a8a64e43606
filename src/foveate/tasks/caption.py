"""Captions: a model describes an image in words."""

import sys
from collections.abc import Sequence
from typing import Any

from foveate.contracts import Picture
from foveate.data.images.caption_layouts import CAPTIONED
from foveate.data.images.captions import captioned_images
from foveate.errors import UserError, one_line
from foveate.forms.caption import CaptionAnswer, CaptionText
from foveate.forms.grids import find_grid
from foveate.forms.image import SquareImage
from foveate.forms.public_written import PublicCaption
from foveate.tasks.recipe import FileTable
from foveate.tasks.skill import Skill
from foveate.tasks.start.image_writers import ImageWriterOrEncoder
from foveate.tasks.start.public_forms import forms_for
from foveate.tasks.task import Task
from foveate.training import Training
from foveate.training.objectives.coverage import CoveredCrossEntropy
from foveate.viewer.figures import WordRow, plot_word_rows


class Captioner(Skill):
    """A model that describes images. A picture may have a row for each head, and for other captioners."""

    def answer(self, given: Sequence[Any], options: Any = None) -> Sequence[Any]:
        """The caption of each image; an image that the model has no word for is reported."""
        found = super().answer(given, options)
        for one in found:
            if isinstance(one, CaptionAnswer) and not one.text:
                print(f"{one_line(one.given)}: the model sees nothing that it has a word for", file=sys.stderr)
        return found

    def picture(self, answer: CaptionAnswer) -> Picture | None:
        options = answer.options
        if not (options.heads or options.beside):
            return super().picture(answer)
        rows = self.word_rows(answer, options.heads)
        for folder in options.beside:
            other: Any = load(folder)
            if not isinstance(other, Captioner):
                raise UserError(f"{folder} is not a captioner")
            rows += other.word_rows(other.run(answer.given, decoding=options.decoding), options.heads)
        reads = self.processor.reads
        return plot_word_rows(reads.enlarged(reads.open(answer.given)), rows)

    def word_rows(self, answer: CaptionAnswer, heads: bool) -> list[WordRow]:
        """The words of a caption with their maps. Raises UserError for a model that does not attend."""
        reads, writes = self.processor.reads, self.processor.writes
        inputs = {**reads.tensors([reads.prepare(reads.open(answer.given))])[0], **writes.teach(answer)}
        name, grid = (self.folder or self.recipe.out).name, find_grid(self.model, inputs)
        rows = writes.word_rows(self.watch(inputs), answer, name, heads, grid)
        if not rows:
            raise UserError(f"{self.name} does not attend: it has no row in the picture")
        return list(rows)


def load(folder: Any) -> Any:
    """The model of a folder."""
    from foveate.tasks.loading import load as load_model  # that imports the pages

    return load_model(folder)


TASK = Task(
    name="caption",
    about="Train a model that describes images in words.",
    families=("rnn-captioner", "transformer-captioner", "vision-encoder-decoder"),
    reads=SquareImage(),
    writes=CaptionText(),
    forms_for=forms_for(SquareImage(), PublicCaption),
    objective=CoveredCrossEntropy(),
    read=lambda paths, recipe: captioned_images(paths),
    files="TABLE",
    layout="Your own images: a table with path<TAB>caption on each line.",
    layouts=CAPTIONED,
    examples=FileTable(batch=64, validation_examples=200),
    model="show-attend-tell-tiny",
    training=Training(
        usual_epochs=10,
        learning_rate=3e-3,
        schedule="cosine",
        usual_warmup=50,
        optimizer="muon",
        validate_every=300,
        save_every=300,
    ),
    start=ImageWriterOrEncoder(),
    skill=lambda: Captioner,
)
