"""Keypoints: the named points of an object in an image, such as the joints of a person."""

from foveate.data.images.keypoints import POSED, posed_images
from foveate.forms.image import FittedImage
from foveate.forms.keypoints import Keypoints
from foveate.tasks.recipe import FileExamples
from foveate.tasks.start.parts import AllWeights, ImageEncoder, RunOrEncoder
from foveate.tasks.task import Task
from foveate.training import Training
from foveate.training.objectives.point_distance import PointDistance

TASK = Task(
    name="keypoints",
    also="pose estimation",
    about="Train a finder of keypoints: the named points of an object in an image, such as the joints of a person.",
    families=("pose",),
    reads=FittedImage(size=96),
    writes=Keypoints(),
    objective=PointDistance(),
    read=lambda paths, recipe: posed_images(paths),
    files="FILE.json",
    lists=(".json",),
    layout="Your own images: a COCO JSON file whose category has keypoints.",
    layouts=POSED,
    examples=FileExamples(batch=32, validation_examples=500),
    model="pose-tiny",
    training=Training(
        usual_epochs=10, optimizer="muon", learning_rate=4e-3, schedule="cosine", usual_warmup=100, average=1
    ),
    start=RunOrEncoder(AllWeights(grows="points"), ImageEncoder(stride=16)),
    unit="points",
)
