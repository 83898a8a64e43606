"""Matching of images and captions: which of many captions belongs to an image."""

from foveate.data.images.caption_layouts import CAPTIONED
from foveate.data.images.captions import captioned_images
from foveate.forms.caption_match import CaptionedImages, CaptionFit
from foveate.forms.public_match import PublicFit, PublicImageText
from foveate.tasks.image_matcher import ImageMatcher
from foveate.tasks.recipe import FileTable
from foveate.tasks.start.matchers import MatcherOrEncoder
from foveate.tasks.start.public_forms import forms_for
from foveate.tasks.task import Task
from foveate.training import Training
from foveate.training.objectives.contrastive import Contrastive

TASK = Task(
    name="match-image",
    about="""Train a model that tells which caption belongs to an image.

    `foveate run` takes the path of an image and a caption with a tab between them, or an image and captions.""",
    families=("clip", "dual-encoder"),
    reads=CaptionedImages(),
    writes=CaptionFit(),
    forms_for=forms_for(CaptionedImages(), PublicFit, PublicImageText),
    objective=Contrastive(),
    read=lambda paths, recipe: captioned_images(paths),
    files="TABLE",
    layout="Your own images: a table with path<TAB>caption on each line.",
    layouts=CAPTIONED,
    examples=FileTable(batch=64, validation_examples=500),
    model="clip-tiny",
    training=Training(
        usual_epochs=10,
        learning_rate=1e-3,
        schedule="cosine",
        usual_warmup=100,
        weight_decay=0.05,
        validate_every=200,
        save_every=200,
    ),
    start=MatcherOrEncoder(),
    unit="images",
    skill=lambda: ImageMatcher,
)
