"""Image classification: an image gets one of several labels."""

from collections.abc import Mapping, Sequence
from typing import Any

from foveate.baselines.nearest_images import nearest_images
from foveate.baselines.pixel_probe import labels_by_pixels
from foveate.data.images.labelled import labelled_images
from foveate.forms.image import AugmentedImage
from foveate.forms.label import Label
from foveate.tasks.labeller import Labeller
from foveate.tasks.recipe import FileTable
from foveate.tasks.task import Task
from foveate.training import Training
from foveate.training.mixup import MixedCrossEntropy


class ImageClassifier(Labeller):
    """A classifier of images."""

    def simple_ways(
        self, known: Sequence[Any], labels: Sequence[Sequence[str]], asked: Sequence[Any]
    ) -> Mapping[str, Sequence[Sequence[str]]]:
        """The label of the training image with the nearest pixels, and a linear classifier of the pixels."""
        channels, several = getattr(self.model.config, "channels", 3), self.processor.writes.several
        return {
            "the nearest training image, by pixels": [labels[one] for one in nearest_images(asked, known, channels)],
            "a linear classifier of pixels": labels_by_pixels(asked, known, labels, channels, several),
        }


TASK = Task(
    name="classify-image",
    about="Train an image classifier, which gives an image one of several labels.",
    families=(
        "resnet",
        "vit",
        "vgg",
        "googlenet",
        "alexnet",
        "zfnet",
        "efficientnet",
        "convnext",
        "cnn",
        "swin",
        "mvit",
        "imagegpt",
    ),
    reads=AugmentedImage(),
    writes=Label(),
    objective=MixedCrossEntropy(label_smoothing=0.1),
    read=lambda paths, recipe: labelled_images(paths),
    files="FOLDER",
    layout="Your own images: a folder with one folder for each class, or a table with path<TAB>label on each line.",
    examples=FileTable(),
    model="resnet20",
    training=Training(
        usual_epochs=10,
        learning_rate=4e-3,
        schedule="cosine",
        usual_warmup=100,
        weight_decay=0.05,
        validate_every=200,
        save_every=200,
    ),
    unit="images",
    skill=lambda: ImageClassifier,
)
