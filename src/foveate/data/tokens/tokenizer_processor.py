"""What a model keeps whose batches are made elsewhere: its tokenizer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from foveate.contracts import Tokenizer
from foveate.data.processor import SavedProcessor
from foveate.data.text.preferences import TOKENIZER
from foveate.data.tokens.bert_tokenizer import load_text_tokenizer


@dataclass
class TokenizerProcessor(SavedProcessor):
    """A tokenizer, saved with the model that learned with it."""

    tokenizer: Tokenizer
    unit: str = "tokens"
    """What texts are cut into, for the user."""

    def sizes(self) -> Mapping[str, int]:
        return {"vocabulary": len(self.tokenizer)}

    @property
    def summary(self) -> str:
        return f"{len(self.tokenizer):,} {self.unit}"

    def files(self) -> dict[str, Callable[[Path], object]]:
        return {TOKENIZER: self.tokenizer.save}

    @classmethod
    def load(cls, folder: Path) -> "TokenizerProcessor":
        return cls(load_text_tokenizer(folder / TOKENIZER))
