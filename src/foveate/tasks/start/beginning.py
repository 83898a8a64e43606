"""The settings of a training that may begin from trained weights (`--from`), and change few of them (LoRA)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from torch import nn

from foveate import models
from foveate.contracts import Tokenizer
from foveate.errors import UserError
from foveate.nn import add_low_rank, low_rank_updates, merge_low_rank
from foveate.tasks.former.recipe import AS_USUAL, Architecture, Recipe, Training
from foveate.tasks.run_folder import ADAPTER
from foveate.tasks.start.parts import FromRun, Parts, WholeRun
from foveate.tasks.start.plan import has_all_sizes
from foveate.tasks.start.weights import HEADS, Start, open_start
from foveate.tensor_files import write_tensors
from foveate.training import main_process

Kind = TypeVar("Kind", bound="Beginning")


@dataclass(kw_only=True)
class Beginning(Recipe[Architecture]):
    """A recipe that says which trained weights to begin from, if any. A page says which parts its task takes of them.

    A page with other `start_parts` than these restates `start`, for its help.
    """

    start_parts: ClassVar[Parts] = WholeRun()
    """What is taken of the weights."""

    start: FromRun = None
    lora: int | None = None
    """Leave the trained weights as they are, and train updates of this rank and the head alone (LoRA). In the end the
    updates are merged into the weights; adapter.safetensors has them too."""
    lora_layers: tuple[str, ...] = ("self.query", "self.value")
    """The linear layers that get an update: the ends of their places in the model."""

    def __post_init__(self) -> None:
        left_open = self.architecture is None or isinstance(self.architecture, Mapping)
        if self.start is not None and left_open and not has_all_sizes(self.architecture, self.model):
            self.start_parts.complete(self)
        if self.start is not None and self.training is AS_USUAL:
            tuned = self.start_parts.training(self)
            self.training = AS_USUAL if tuned is None else Training(**vars(tuned), label_smoothing=0.0)
        super().__post_init__()
        if not isinstance(self.architecture, models.config_class(self.preset.family)):
            raise UserError(f"{self.start} has another architecture than {self.model}: name another --model")

    @cached_property
    def weights(self) -> Start:
        """What `start` names. Raises UserError where there is no model."""
        assert self.start is not None, "there is nothing to begin from"
        return open_start(self.start)

    def trained_tokenizer(self) -> Tokenizer | None:
        """That of the trained weights, if there are any."""
        return None if self.start is None else self.weights.tokenizer

    @classmethod
    def from_json(cls: type[Kind], values: dict[str, Any], where: str) -> Kind:
        start = values.get("start")
        if not isinstance(start, str) or not has_all_sizes(values.get("architecture"), values.get("model")):
            return super().from_json(values, where)
        # not opened: a trained run does without what it began from
        return replace(super().from_json({**values, "start": None}, where), start=Path(start))

    def check(self) -> None:
        if self.lora is not None and self.start is None:
            raise UserError("lora adapts trained weights: name them with --from, or train all weights without it")
        if self.start is not None:
            self.start_parts.check(self)
        super().check()

    def build(self, **sizes: int) -> nn.Module:
        """The model, with the trained weights if there are any."""
        begins = self.start is not None
        model = super().build(**sizes | (self.start_parts.sizes(self) if begins else {}))
        if begins and next(model.parameters()).device.type != "meta":
            self.start_parts.fill(self, model)
        if self.lora is not None:
            add_low_rank(model, self.lora, self.lora_layers)
            for name, parameter in model.named_parameters():
                parameter.requires_grad_(parameter.requires_grad or name.startswith(HEADS))
        return model

    @property
    def usable_before_the_end(self) -> bool:
        """Low-rank updates are merged in the end."""
        return self.lora is None

    def finish(self, model: nn.Module) -> None:
        """Merge low-rank updates, so that the folder holds a plain model; keep them in a file of their own too."""
        updates = low_rank_updates(model)
        if updates and main_process():
            write_tensors(self.out / ADAPTER, updates)
        merge_low_rank(model)
        super().finish(model)

    def contents(self) -> dict[str, str]:
        """Digests of what is learned from, and of the weights."""
        return super().contents() | ({} if self.start is None else {str(self.start): self.weights.digest})

    def identity(self) -> dict[str, Any]:
        """What must be the same when a training is resumed: these weights too."""
        start = {} if self.start is None else {"start": str(self.start)}
        updates = {} if self.lora is None else {"lora": self.lora, "lora_layers": list(self.lora_layers)}
        return super().identity() | start | updates
