"""Detection: boxes around the objects of an image, with a class each."""

from foveate.data.images.box_layouts import BOXED
from foveate.data.images.boxes import boxed_images
from foveate.forms.boxes import Boxes
from foveate.forms.image import FittedImage
from foveate.tasks.recipe import FileExamples
from foveate.tasks.start.parts import DetectorOrEncoder, ImageEncoder
from foveate.tasks.task import Task
from foveate.training import Training
from foveate.training.objectives.set_matching import SetMatching

TASK = Task(
    name="detect",
    about="Train a detector, which finds the objects in an image: a box and a class for each.",
    families=("detr", "deformable-detr", "rt-detr"),
    reads=FittedImage(),
    writes=Boxes(),
    objective=SetMatching(),
    read=lambda paths, recipe: boxed_images(paths),
    files="FILE.json or FOLDER",
    lists=(".json",),
    layout="Your own images: a COCO JSON file, or a folder with Pascal VOC annotations.",
    layouts=BOXED,
    examples=FileExamples(batch=16, validation_examples=300),
    model="rt-detr-lite0",
    usual_start="efficientnet-lite0",
    training=Training(
        usual_epochs=10,
        learning_rate=4e-4,
        schedule="cosine",
        usual_warmup=200,
        weight_decay=1e-4,
        clip=0.1,
        validate_every=500,
    ),
    start=DetectorOrEncoder(body=ImageEncoder(stride=16)),
    unit="boxes",
)
