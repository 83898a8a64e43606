"""Training: the loop, its settings, objectives and checkpoints."""

from foveate.training.batches import Batches
from foveate.training.interruption import Interrupted
from foveate.training.loop import Result, train
from foveate.training.objectives.objective import CrossEntropy, Loss, Objective, SmoothedCrossEntropy
from foveate.training.parallel import main_process
from foveate.training.settings import Training
from foveate.training.validation import Validation
from foveate.training.writers import Callback, read_rows

__all__ = [
    "Batches",
    "Callback",
    "CrossEntropy",
    "Interrupted",
    "Loss",
    "Objective",
    "Result",
    "SmoothedCrossEntropy",
    "Training",
    "Validation",
    "main_process",
    "read_rows",
    "train",
]
