"""Training: the loop, its settings, objectives and checkpoints. The loop is imported when it is first used."""

from typing import TYPE_CHECKING

from foveate.lazy import import_late
from foveate.training.batches import Batches
from foveate.training.interruption import Interrupted
from foveate.training.objectives.objective import CrossEntropy, Loss, Objective, SmoothedCrossEntropy
from foveate.training.parallel import main_process
from foveate.training.settings import Training
from foveate.training.validation import Validation
from foveate.training.writers import Callback, read_rows

if TYPE_CHECKING:
    from foveate.training.loop import Result as Result
    from foveate.training.loop import train as train

__getattr__ = import_late(__name__, dict.fromkeys(("Result", "train"), "foveate.training.loop"))

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
