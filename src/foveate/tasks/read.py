"""Reading: a model writes the word that it sees in an image, one character after the other."""

from foveate.data.images.word_images import word_images
from foveate.data.images.word_layouts import LISTED_WORDS
from foveate.forms.public_written import PublicLineText
from foveate.forms.reading import LineText, WordLine
from foveate.tasks.recipe import FileTable
from foveate.tasks.start.image_writers import ImageWriter, ImageWriterOrEncoder
from foveate.tasks.start.public_forms import forms_for
from foveate.tasks.task import Task
from foveate.training import CrossEntropy, Training

TASK = Task(
    name="read",
    also="OCR",
    about="Train a reader of words in images.",
    families=("sar", "vision-encoder-decoder"),
    reads=WordLine(),
    writes=LineText(),
    forms_for=forms_for(WordLine(), PublicLineText),
    objective=CrossEntropy(),
    read=lambda paths, recipe: word_images(paths),
    files="TABLE ...",
    layout="Your own images: a table with image<TAB>text on each line, or a folder with such a table, labels.tsv.",
    layouts=LISTED_WORDS,
    examples=FileTable(batch=64, validation_examples=500),
    model="sar-tiny",
    training=Training(
        usual_epochs=1,
        learning_rate=1e-3,
        schedule="cosine",
        usual_warmup=200,
        optimizer="muon",
        validate_every=500,
    ),
    start=ImageWriterOrEncoder(run=ImageWriter(grows="vocabulary")),
    unit="characters",
)
