"""Hugging Face folders of a BERT, RoBERTa or XLNet that predicts hidden words."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from foveate.data.tokens.public_tokenizer import ROLES
from foveate.errors import UserError
from foveate.forms.answers import NoOptions
from foveate.forms.blanks import FillOptions
from foveate.forms.form import InputForm
from foveate.forms.processor import Processor
from foveate.forms.public_blanks import OWN_NAMES, BertBlanks, PublicFilledBlanks, XLNetBlanks
from foveate.tasks.cloze import TASK
from foveate.tasks.evaluation import Evaluation
from foveate.tasks.filler import Filler
from foveate.tasks.hf.reader import open_public


class PublicFiller(Filler):
    """A model of a public folder that fills in words."""

    @property
    def name(self) -> str:
        return f"{self.description['family']} from {self.folder}"

    @classmethod
    def run_options(cls, recipe: Mapping[str, Any], where: str) -> FillOptions:
        """The flags of `foveate run`."""
        return FillOptions()

    @classmethod
    def eval_options(cls, recipe: Mapping[str, Any], where: str) -> NoOptions:
        """The flags of `foveate eval`."""
        return NoOptions()

    @classmethod
    def of(cls, folder: Path, family: str, model: Any, reads: InputForm, tokenizer: Any) -> Any:
        """A model with its forms."""
        description = {"family": family, "recipe": {}}
        return cls(TASK, TASK.recipe(), model, Processor(reads, PublicFilledBlanks(tokenizer)), description, folder)

    def evaluate(self, data: Sequence[Path], options: Any = None, console: Console | None = None) -> Evaluation:
        """UserError: its training text is not known."""
        raise UserError("a public BERT is measured by a task: train one with --from")


class WordFiller(PublicFiller):
    """A BERT that predicts hidden words."""

    @classmethod
    def load(cls, folder: Path | str, device: str = "cpu") -> Any:
        """The model of a folder. Raises UserError, one line, for what is missing or damaged."""
        public, tokenizer = open_public(Path(folder), device)
        return cls.of(Path(folder), public.family, public.model, BertBlanks(tokenizer=tokenizer), tokenizer)


class XLNetFiller(PublicFiller):
    """An XLNet: the words at the blanks come last in its order, and none of them sees another."""

    @classmethod
    def load(cls, folder: Path | str, device: str = "cpu") -> Any:
        """The model of a folder. Raises UserError, one line, for what is missing or damaged."""
        public, tokenizer = open_public(Path(folder), device)
        for role in OWN_NAMES.values():
            if role not in tokenizer.special:
                raise UserError(f"the tokenizer in {folder} names no {ROLES[role]} in tokenizer_config.json")
        return cls.of(Path(folder), public.family, public.model, XLNetBlanks(tokenizer=tokenizer), tokenizer)
