"""Walking: a model follows an instruction on a map, one action after the other."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from foveate.data.dataset import Dataset
from foveate.data.worlds.routes import mirrored, read_routes
from foveate.decoding.ensemble import Ensemble
from foveate.errors import UserError
from foveate.forms.walks import MapActions, MapOptions
from foveate.forms.world import Directions
from foveate.tasks.recipe import FileExamples
from foveate.tasks.skill import Skill
from foveate.tasks.start.parts import AllWeights
from foveate.tasks.task import Task
from foveate.training import Batches, SmoothedCrossEntropy, Training


@dataclass
class Routes(FileExamples):
    """Which routes to learn from."""

    leave_out: tuple[str, ...] = ()
    """Names of maps whose routes are not learned from, to measure on them later."""
    mirror: bool = False
    """Learn from each route in a mirror too: left and right exchanged on the map, in the path, and as words of the
    instruction, which must be English."""


class WalkSkill(Skill):
    """A walker in use: it learns from mirrored routes too, and is measured on maps of its own."""

    def batches(self, train: Dataset[Any]) -> Batches:
        if not self.recipe.examples.mirror:
            return super().batches(train)
        return super().batches(Dataset(train.name, [*train, *mirrored(train)], train.unit))

    def _in_use(self, count: int, options: Any) -> nn.Module:
        """The model, or the ensemble that the options name."""
        own = super()._in_use(count, options)
        if not options.ensemble:
            return own
        from foveate.tasks.loading import load  # which knows all tasks

        others = [load(folder, str(self.device)) for folder in options.ensemble]
        for folder, other in zip(options.ensemble, others, strict=True):
            if other.processor != self.processor:
                raise UserError(f"--ensemble: {folder} did not learn from the same routes as {self.folder}")
        return Ensemble([own, *(other.model for other in others)])

    def test_examples(self, data: Sequence[Path], options: MapOptions) -> Dataset[Any]:
        """A user's routes, by default those on the maps that were left out in training."""
        if not data:
            return super().test_examples(data, options)
        return read_routes(data, only=options.only or self.recipe.examples.leave_out)


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
    skill=lambda: WalkSkill,
)
