"""What a language model keeps: its tokenizer, and the names of the kinds of text that it was trained to tell apart."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from foveate.data.bert_tokenizer import load_text_tokenizer
from foveate.data.preferences import TOKENIZER
from foveate.data.tokenizer_processor import TokenizerProcessor
from foveate.errors import UserError
from foveate.files import read_json

CONDITIONS = "conditions.json"


@dataclass
class LanguageProcessor(TokenizerProcessor):
    """A tokenizer and the names of conditions; none for a model without conditions."""

    conditions: list[str] = field(default_factory=list)

    @property
    def numbers(self) -> dict[str, int] | None:
        """The number of each condition, from 1; None for a model without conditions."""
        return {name: number for number, name in enumerate(self.conditions, 1)} if self.conditions else None

    def sizes(self) -> Mapping[str, int]:
        return {**super().sizes(), "conditions": 1 + len(self.conditions)}

    @property
    def summary(self) -> str:
        kinds = f", {len(self.conditions)} conditions" if self.conditions else ""
        return f"{super().summary}{kinds}"

    def files(self) -> dict[str, Callable[[Path], object]]:
        text = json.dumps({"conditions": self.conditions}, ensure_ascii=False) + "\n"
        return {**super().files(), CONDITIONS: lambda path: path.write_text(text, encoding="utf-8")}

    @classmethod
    def load(cls, folder: Path) -> "LanguageProcessor":
        names = read_json(folder / CONDITIONS).get("conditions")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise UserError(f"{folder / CONDITIONS} is damaged: {names!r} stands where a list of names must be")
        return cls(load_text_tokenizer(folder / TOKENIZER), conditions=names)
