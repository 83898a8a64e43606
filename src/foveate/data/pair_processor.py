"""What a model keeps that reads pairs of texts, such as sentences and their translations."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from foveate.contracts import Tokenizer
from foveate.data.bert_tokenizer import load_text_tokenizer
from foveate.data.processor import SavedProcessor

SOURCE_TOKENIZER, TARGET_TOKENIZER = "source_tokenizer.json", "target_tokenizer.json"


@dataclass
class PairProcessor(SavedProcessor):
    """The tokenizers of both sides; the same one twice where the sides share a vocabulary."""

    source: Tokenizer
    target: Tokenizer
    unit: str = field(default="tokens", kw_only=True)
    """What texts are cut into, for the user."""

    def encode(self, pairs: Sequence[tuple[str, str]]) -> tuple[list[list[int]], list[list[int]]]:
        """The token ids of the sources and of the targets."""
        return self.source.encode([one for one, _ in pairs]), self.target.encode([other for _, other in pairs])

    def sizes(self) -> Mapping[str, int]:
        return {"src_vocab": len(self.source), "tgt_vocab": len(self.target)}

    @property
    def summary(self) -> str:
        sides = dict.fromkeys((self.source, self.target))
        return f"{' and '.join(f'{len(side):,}' for side in sides)} {self.unit}"

    def files(self) -> dict[str, Callable[[Path], object]]:
        return {SOURCE_TOKENIZER: self.source.save, TARGET_TOKENIZER: self.target.save}

    @classmethod
    def load(cls, folder: Path) -> "PairProcessor":
        return cls(*cls.load_tokenizers(folder))

    @staticmethod
    def load_tokenizers(folder: Path) -> tuple[Tokenizer, Tokenizer]:
        """The tokenizers of a run folder. Raises UserError where they are missing or damaged."""
        return load_text_tokenizer(folder / SOURCE_TOKENIZER), load_text_tokenizer(folder / TARGET_TOKENIZER)
