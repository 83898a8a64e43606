"""Beginning from a trained model that writes characters: all of its weights, and characters that it has not learned."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, cast

import tyro
from torch import nn

from foveate import bundle
from foveate.data.processor import PROCESSOR
from foveate.errors import UserError
from foveate.files import read_json
from foveate.tasks.run_folder import describe


@dataclass(kw_only=True)
class FromCharacters:
    """What the settings of a task have beside a `Recipe`'s where models write characters."""

    start: Annotated[Path | None, tyro.conf.arg(name="from")] = None
    """Begin with the weights of this run of the same task, and learn new characters beside those that it knows."""

    @cached_property
    def trained(self) -> bundle.Bundle | None:
        """What `start` names."""
        return None if self.start is None else bundle.load(self.start)

    def check(self) -> None:
        """Raise UserError for a run of another task or family, before any data is read."""
        recipe = cast("Any", self)
        if self.trained is not None:
            found = describe(self.trained)
            if (found.task, found.family) != (recipe.task, recipe.preset.family):
                raise UserError(
                    f"{self.start} is a {found.family} for {found.task}, "
                    f"but {recipe.model} is a {recipe.preset.family} for {recipe.task}"
                )
        cast("Any", super()).check()

    def with_known(self, characters: str) -> str:
        """The characters of the run, and behind them those of the new data that it does not know."""
        if self.trained is None:
            return characters
        known = read_json(self.trained.folder / PROCESSOR).get("characters")
        if not isinstance(known, str):
            raise UserError(f"{self.start} has no characters in {PROCESSOR}")
        return known + "".join(one for one in characters if one not in known)

    def build(self, **sizes: int) -> nn.Module:
        """The model with the weights of the run; rows of new characters are random."""
        model: nn.Module = cast("Any", super()).build(**sizes)
        if self.trained is None or next(model.parameters()).device.type == "meta":
            return model
        known = describe(self.trained).architecture.get("vocabulary")
        for name, tensor in model.state_dict().items():
            given = self.trained.tensors.get(name)
            if given is None or given.shape != tensor.shape:
                grows = given is not None and given.shape[1:] == tensor.shape[1:] and len(given) == known
                if given is None or not grows or len(tensor) != sizes.get("vocabulary"):
                    has = "nothing" if given is None else tuple(given.shape)
                    raise UserError(
                        f"{self.start} has {has} for '{name}', the model {tuple(tensor.shape)}: give it the run's sizes"
                    )
                tensor = tensor[: len(given)]
            tensor.copy_(given)
        return model

    def identity(self) -> dict[str, Any]:
        """What must be the same when a training is resumed: these weights too."""
        identity: dict[str, Any] = cast("Any", super()).identity()
        return identity | ({} if self.start is None else {"start": str(self.start)})
