"""Walking: a model follows an instruction on a map, one action after the other."""

from dataclasses import dataclass
from typing import Any

from foveate.data.worlds.routes import read_routes
from foveate.forms.walks import MapActions
from foveate.forms.world import Directions
from foveate.tasks.recipe import FileExamples
from foveate.tasks.start.parts import AllWeights
from foveate.tasks.task import Task
from foveate.training import SmoothedCrossEntropy, Training


@dataclass
class Routes(FileExamples):
    """Which routes to learn from."""

    leave_out: tuple[str, ...] = ()
    """Names of maps whose routes are not learned from, to measure on them later."""
    mirror: bool = False
    """Learn from each route in a mirror too: left and right exchanged on the map, in the path, and as words of the
    instruction, which must be English."""


def _route_walker() -> Any:
    from foveate.tasks.route_walker import RouteWalker

    return RouteWalker


TASK = Task(
    name="walk",
    about="Train a model that follows instructions on a map.",
    families=("walker",),
    reads=Directions(),
    writes=MapActions(),
    objective=SmoothedCrossEntropy(label_smoothing=0.05),
    read=lambda paths, recipe: read_routes(paths, recipe.examples.leave_out),
    files="ROUTES",
    layout='Your own routes: JSON, a list of {"instruction": text, "map": file, "path": [[x, y, heading], ...]}; '
    "or an XML file as the SAIL corpus has it.",
    examples=Routes(batch=600),
    model="walker",
    training=Training(
        usual_epochs=40,
        learning_rate=2e-3,
        schedule="cosine",
        usual_warmup=100,
        validate_every=200,
    ),
    start=AllWeights(),
    unit="actions",
    skill=_route_walker,
)
