"""What a model needs that writes its own batches: its tokenizer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foveate.contracts import Tokenizer
from foveate.data.preferences import TOKENIZER
from foveate.data.processor import Processor
from foveate.data.prose import Passage
from foveate.data.tokenizers import load_tokenizer


@dataclass
class PromptProcessor(Processor[Passage]):
    """The tokenizer of a language model."""

    tokenizer: Tokenizer

    def batch(self, prepared: Sequence[Any], generator: Any) -> Any:
        """Batches are written by the model: see `foveate.tasks.rollouts`."""
        raise NotImplementedError

    def sizes(self) -> Mapping[str, int]:
        return {"vocabulary": len(self.tokenizer)}

    def files(self) -> dict[str, Callable[[Path], object]]:
        return {TOKENIZER: self.tokenizer.save}

    @classmethod
    def load(cls, folder: Path) -> "PromptProcessor":
        return cls(load_tokenizer(folder / TOKENIZER))
