"""Segmentation: a label for each pixel of an image."""

from foveate.data.images.mask_layouts import MASKED
from foveate.data.images.masks import masked_images
from foveate.forms.image import FittedImage
from foveate.forms.segments import Segments
from foveate.tasks.start.parts import AllWeights, ImageEncoder, RunOrEncoder
from foveate.tasks.task import Examples, Task
from foveate.training import CrossEntropy, Training

TASK = Task(
    name="segment",
    also="semantic segmentation",
    about="Train a segmenter, which gives each pixel of an image one of several labels.",
    families=("segmenter",),
    reads=FittedImage(),
    writes=Segments(),
    objective=CrossEntropy(),
    read=lambda paths, recipe: masked_images(paths),
    files="FOLDER",
    lists=(".json",),
    layout="Your own images: a folder with images/, masks/ (PNG files of class numbers) and perhaps labels.txt.",
    layouts=MASKED,
    examples=Examples(batch=16, validation_examples=200),
    model="segmenter-tiny",
    training=Training(
        usual_epochs=10, optimizer="muon", learning_rate=4e-3, schedule="cosine", usual_warmup=100, average=1
    ),
    start=RunOrEncoder(AllWeights(grows="classes"), ImageEncoder(stride=16)),
    unit="pixels",
)
