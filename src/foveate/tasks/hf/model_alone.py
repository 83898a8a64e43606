"""Hugging Face folders without a tokenizer: their models are used, looked at and exported, but answer no text."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from foveate import run_dir
from foveate.contracts import Output
from foveate.errors import UserError
from foveate.files import read_json
from foveate.forms.processor import Processor
from foveate.forms.token_ids import IdsAlone, TokenIds, WrittenIds
from foveate.interop.huggingface import read_optional_json
from foveate.interop.public_folder import header_of, reads_images, reads_sounds, translates
from foveate.interop.through_transformers import (
    OF_SOUNDS,
    WRITES_ANOTHER,
    head_of_any,
    is_ours,
    predicts_next,
    read_any,
)
from foveate.tasks import find_task
from foveate.tasks.checkpoint import IMAGE_TASKS, public_recipe
from foveate.tasks.evaluation import Evaluation
from foveate.tasks.hf import image_forms, sounds, texts
from foveate.tasks.hf.reader import MASKED
from foveate.tasks.looking import ReadInput
from foveate.tasks.run_config import RunConfig
from foveate.tasks.skill import Skill
from foveate.training.hardware import choose_device
from foveate.viewer.protocol import Input, LookResult

MOST_WRITTEN = 16
"""Tokens that an encoder-decoder writes for a look."""

NO_WORDS = ("embed",)
"""Tasks of models whose output is no choice of a word or a label."""


@dataclass(repr=False)
class ModelAlone(Skill):
    """A model whose folder lacks its tokenizer: `model` can be called, `look` is given token ids."""

    lacks: str = ""
    """What is missing, as one line."""

    @property
    def name(self) -> str:
        return f"{self.description['family']} from {self.folder}"

    def answer(self, given: Sequence[Any], options: Any = None) -> Sequence[Any]:
        """Raises UserError, which says what is missing."""
        raise UserError(self.lacks)

    def evaluate(self, data: Sequence[Path], options: Any = None, console: Console | None = None) -> Evaluation:
        """Raises UserError, which says what is missing."""
        raise UserError(self.lacks)

    def scored_form(self) -> Any:
        """Raises UserError, which says what is missing."""
        raise UserError(self.lacks)

    def look(
        self, given: Input | Path, max_length: int = 4096, sites: Sequence[str] | None = None, measure: str = "weights"
    ) -> LookResult:
        """A look while the model reads token ids, such as "5 17 9". Raises UserError for a text, and for a model that
        reads images or sounds."""
        if reads_other(self.folder):
            raise UserError(self.lacks)
        return super().look(given, max_length, sites, measure)

    def answer_prepared(self, prepared: Sequence[Any], options: Any) -> list[Any]:
        """What an encoder-decoder writes, greedily, for the ids of a look; nothing of other models."""
        start: int | None = self.processor.writes.start
        return [WrittenIds(tokens=() if start is None else self._written(ids, start)) for ids in prepared]

    def _written(self, ids: Sequence[int], start: int) -> tuple[int, ...]:
        inputs, _ = self.processor.reads.tensors([ids])
        target = [start]
        while len(target) < MOST_WRITTEN:
            output = self.forward({**inputs, "target": torch.tensor([target])})
            target.append(int(output.logits[0, -1].argmax()))
        return tuple(target[1:])

    def _score_of(self, read: ReadInput) -> Callable[[Output], Any] | None:
        """The log-probability of the likeliest label, or of the likeliest next token."""
        if self.task.name in NO_WORDS:
            return None
        return lambda output: output.logits[:, -1].float().log_softmax(-1).amax(-1).sum()


def load_alone(folder: Path, device: str, lacks: str) -> ModelAlone:
    """The model of a folder that `lacks` what cuts texts into tokens.

    Raises UserError, one line, for whatever else is missing, damaged or unknown.
    """
    public = read_any(folder)
    config, task = public.model.config, find_task(task_of(folder, public.family))
    writes = writes_another(folder)
    size = getattr(config, "src_vocab" if writes else "vocabulary", 0)
    reads = TokenIds(lacks, size, ("source", "source_lengths") if writes else ("tokens", "lengths"))
    forms = Processor(reads, IdsAlone(_start(folder) if writes else None))
    recipe = public_recipe(task, public, folder, forms)
    description = asdict(RunConfig(task.name, public.family, asdict(config), {"examples": {}}))  # type: ignore[call-overload]
    model = public.model.to(choose_device(device))
    return ModelAlone(task, recipe, model, forms, description, folder, lacks=lacks)


def writes_another(folder: Path) -> bool:
    """Whether the model of a folder reads a text and writes another."""
    return translates(folder) or head_of_any(folder) == WRITES_ANOTHER


def reads_other(folder: Path | None) -> bool:
    """Whether the model of a folder reads images or sounds."""
    if folder is None:
        return False
    kind = header_of(folder).model_type
    return reads_images(kind) or reads_sounds(kind) or head_of_any(folder) in OF_SOUNDS.values()


def task_of(folder: Path, family: str) -> str:
    """The task that the model of a folder, of this family, would have with its tokenizer."""
    kind, head = header_of(folder).model_type, head_of_any(folder)
    if writes_another(folder):
        return "translate"
    if reads_sounds(kind) or head in OF_SOUNDS.values():
        return sounds.TASK_OF[head]
    if reads_images(kind):
        return image_forms.task_of(folder) if head == "words" else IMAGE_TASKS[head]
    if head != "words":
        return texts.TASK_OF[head]
    if is_ours(folder):
        return "cloze" if family in (*MASKED, "xlnet") else "language"
    return "language" if predicts_next(folder) else "cloze"


def _start(folder: Path) -> int:
    """The token that the decoder of a folder begins with; 0 where it names none."""
    values = {**read_json(folder / run_dir.CONFIG), **read_optional_json(folder, "generation_config.json")}
    found = values.get("decoder_start_token_id")
    return found if type(found) is int and found >= 0 else 0
