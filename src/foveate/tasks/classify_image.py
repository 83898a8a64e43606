"""Image classification: an image gets one of several labels."""

from foveate.data.images.labelled import labelled_images
from foveate.forms.image import AugmentedImage
from foveate.forms.label import Label
from foveate.tasks.recipe import FileExamples
from foveate.tasks.task import Task
from foveate.training import Training
from foveate.training.mixup import MixedCrossEntropy

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
    examples=FileExamples(),
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
)
