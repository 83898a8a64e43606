"""Going on from a trained run of the same task, with other examples."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, cast

import tyro
from torch import nn

from foveate import bundle
from foveate.data.processor import SavedProcessor
from foveate.errors import UserError
from foveate.tasks.recipe import Recipe, has_all_sizes
from foveate.tasks.run_folder import Description, describe, recipe_value
from foveate.tensor_parts import file_digest


@dataclass(kw_only=True)
class FromRun:
    """What the settings of a task have beside a `Recipe`'s where a training can go on from a run of the same task.

    All weights are the run's, and so is what reads the examples: a vocabulary, a palette, the form of images.
    """

    start: Annotated[Path | None, tyro.conf.arg(name="from")] = None
    """Begin with all weights of this run of the same task, and with what it reads by, such as its vocabulary. Without
    --model, the preset and its sizes are the run's."""

    def __post_init__(self) -> None:
        recipe = cast("Any", self)
        given = recipe.architecture or {}
        if self.start is not None and isinstance(given, Mapping) and not has_all_sizes(given, recipe.model):
            found = self._described
            if recipe.model == type(recipe).model:
                recipe.model = recipe_value(self.begun.description, "model", kind=str)
            if recipe.preset.family == found.family:
                recipe.architecture = {**found.architecture, **given}
        cast("Any", super()).__post_init__()

    @cached_property
    def begun(self) -> bundle.Bundle:
        """What `start` names. Raises UserError where that is no run."""
        assert self.start is not None
        return bundle.load(self.start)

    @property
    def _described(self) -> Description:
        found, recipe = describe(self.begun), cast("Recipe[Any]", self)
        if found.task != recipe.task:
            raise UserError(f"{self.start} is a run of {found.task}, but {recipe.task} begins from one of its own")
        return found

    def check(self) -> None:
        """Raise UserError for a run of another task or family, before any data is read."""
        recipe = cast("Recipe[Any]", self)
        if self.start is not None and self._described.family != recipe.preset.family:
            family = self._described.family
            raise UserError(f"{self.start} is a {family}, but {recipe.model} is a {recipe.preset.family}")
        cast("Any", super()).check()

    def trained_processor(self) -> SavedProcessor | None:
        """What the run reads its examples by."""
        if self.start is None:
            return None
        kind: type[SavedProcessor] = cast("Any", self).processor
        return kind.load(self.begun.folder)

    def build(self, **sizes: int) -> nn.Module:
        """The model with the weights of the run."""
        model: nn.Module = cast("Any", super()).build(**sizes)
        if self.start is not None and next(model.parameters()).device.type != "meta":
            bundle.fill(model, self.begun.tensors, str(self.start), "it has other sizes: leave them out")
        return model

    def contents(self) -> dict[str, str]:
        """Digests of what is learned from, and of the weights."""
        own: dict[str, str] = cast("Any", super()).contents()
        return own | ({} if self.start is None else {str(self.start): file_digest(self.begun.weights)[:12]})

    def identity(self) -> dict[str, Any]:
        """What must be the same when a training is resumed: these weights too."""
        own: dict[str, Any] = cast("Any", super()).identity()
        return own | ({} if self.start is None else {"start": str(self.start)})
