"""Answers to questions about images."""

from foveate.data.images.question_layouts import ASKED_IMAGES
from foveate.data.images.questions import image_questions
from foveate.forms.question import FrequentAnswer, Question
from foveate.tasks.recipe import FileTable
from foveate.tasks.start.parts import AllWeights, RunOrEncoder
from foveate.tasks.task import Task
from foveate.training import CrossEntropy, Training

TASK = Task(
    name="answer",
    also="visual question answering",
    about="""Train a model that answers questions about images.

    `foveate run RUN photo.jpg "what is left of the apple?"` then answers; an image may have several questions.""",
    families=("show-ask", "smem-vqa"),
    reads=Question(),
    writes=FrequentAnswer(),
    objective=CrossEntropy(),
    read=lambda paths, recipe: image_questions(paths),
    files="TABLE",
    layout="Your own questions: a table with image<TAB>question<TAB>answer on each line.",
    layouts=ASKED_IMAGES,
    examples=FileTable(batch=128, validation_examples=1000),
    model="show-ask-stacked-tiny",
    training=Training(
        usual_epochs=10,
        learning_rate=3e-3,
        schedule="cosine",
        usual_warmup=50,
        optimizer="muon",
        validate_every=300,
        save_every=300,
    ),
    start=RunOrEncoder(AllWeights(grows="classes")),
    unit="questions",
)
