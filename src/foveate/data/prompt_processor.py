"""What a model needs that writes its own batches: its tokenizer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from foveate.contracts import Tokenizer
from foveate.data.preferences import TOKENIZER
from foveate.data.processor import SavedProcessor
from foveate.data.tokenizers import load_tokenizer


@dataclass
class PromptProcessor(SavedProcessor):
    """The tokenizer of a language model, which writes its own batches: see `foveate.tasks.rollouts`."""

    tokenizer: Tokenizer

    def sizes(self) -> Mapping[str, int]:
        return {"vocabulary": len(self.tokenizer)}

    def files(self) -> dict[str, Callable[[Path], object]]:
        return {TOKENIZER: self.tokenizer.save}

    @classmethod
    def load(cls, folder: Path) -> "PromptProcessor":
        return cls(load_tokenizer(folder / TOKENIZER))
