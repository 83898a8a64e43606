"""Image completion: a model predicts each pixel of an image from those before it (Chen et al. 2020)."""

from foveate.data.images.labelled import unlabelled_images
from foveate.forms.pixels import PixelImage, Pixels
from foveate.tasks.start.parts import AllWeights
from foveate.tasks.task import Examples, Task
from foveate.training import SmoothedCrossEntropy, Training

TASK = Task(
    name="complete-image",
    about="Train a model that draws an image pixel by pixel. `foveate train classify-image` begins from it.",
    families=("imagegpt",),
    reads=PixelImage(),
    writes=Pixels(),
    objective=SmoothedCrossEntropy(),
    read=lambda paths, recipe: unlabelled_images(paths),
    files="FOLDER",
    layout="Your own images: folders, with folders in them or without.",
    examples=Examples(batch=64, validation_examples=500),
    model="imagegpt-tiny",
    training=Training(
        epochs=10,
        learning_rate=2e-3,
        schedule="cosine",
        warmup=100,
        weight_decay=0.05,
        validate_every=200,
        save_every=200,
    ),
    architecture={"predict": "pixels"},
    start=AllWeights(),
    unit="pixels",
)
