"""Texts that are read, token by token.

B batch    S tokens of a text, with those around it
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from foveate.contracts import Picture, Tokenizer
from foveate.data.ragged import padded
from foveate.data.text.scripts import unspaced
from foveate.data.tokens.bert_tokenizer import load_text_tokenizer
from foveate.data.tokens.tokenizers import SubwordTokenizer
from foveate.errors import UserError, at_least
from foveate.forms.form import Changes, InputForm, MapRow, Naming
from foveate.forms.grids import GridFinder
from foveate.forms.inputs import require_text
from foveate.forms.naming import token_names
from foveate.forms.truncation import CutText
from foveate.nn import longest_sequence
from foveate.viewer import Alignment, plot_alignments
from foveate.viewer.protocol import Input

MUCH_UNKNOWN = 0.1
"""A larger share of unknown tokens is worth a line to the user."""

ASKED = 1000
"""Texts whose tokens are looked up for that."""


@dataclass
class ReadText(CutText, InputForm):
    """A text: inputs `source` (B, S) and `source_lengths` (B,). A subclass has a field `tokenizer`.

    A form that reads more tokens than those of the text and its end says so by `around`.
    """

    together: ClassVar[int] = 100_000
    place_name: ClassVar[str] = "tokens"
    by_files: ClassVar[bool] = True
    start_sign: ClassVar[str] = ""
    """What stands for the token before a text in pictures; empty where there is none."""
    end_sign: ClassVar[str] = "¶"
    """What stands for the token behind it."""

    max_length: int = 128
    """Texts with more tokens than this are left out (and counted)."""

    def check(self) -> None:
        at_least(1, "max_length", self.max_length)

    @property
    def words(self) -> Tokenizer:
        """What cuts texts into tokens, once it is learned."""
        found: Tokenizer | None = getattr(self, "tokenizer", None)
        assert found is not None, "the form has not learned from examples"
        return found

    @property
    def around(self) -> tuple[Sequence[int], Sequence[int]]:
        """The tokens that are read before a text and behind it."""
        return (), (self.words.special.end,)

    def check_training(self, model: nn.Module, batch: int) -> None:
        taken, most = self.max_length + 1, longest_sequence(model)
        if taken > most:
            raise UserError(
                f"max_length is {self.max_length:,}, and a start or end token takes a place too, but the model learns "
                f"only {most:,} positions: raise architecture.max_length"
            )

    @classmethod
    def load_part(cls, name: str, path: Path) -> Any:
        return load_text_tokenizer(path)

    def open(self, given: str) -> Any:
        return given

    def receive(self, given: Input, name: str) -> Any:
        return require_text(given, name)

    def place(self, example: Any) -> str:
        """The text of an example."""
        found: str = self.value(example)
        return found

    def warnings(self, name: str, examples: Sequence[Any]) -> list[str]:
        return unknown_note(name, self.words, (self.place(one) for one in examples[:ASKED]))

    def prepare(self, value: Any) -> Any:
        """The tokens of a text and those around it."""
        before, behind = self.around
        return np.array([*before, *self.words.encode([value])[0], *behind], np.int32)

    def cost(self, prepared: Any) -> int:
        return len(prepared)

    def positions(self, prepared: Any) -> int:
        return len(prepared)

    def tensors(
        self, prepared: Sequence[Any], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        source, lengths = padded(prepared, self.words.special.pad)
        return {"source": source, "source_lengths": lengths}, Changes()

    def longer_than_training(self, prepared: Any) -> bool:
        return len(prepared) - sum(map(len, self.around)) > self.max_length

    def names(self, prepared: Any) -> list[str]:
        """What to call each token."""
        before, behind = map(len, self.around)
        pieces = self.words.pieces(prepared[before : len(prepared) - behind].tolist())
        return [*[self.start_sign] * before, *pieces, *[self.end_sign] * behind]

    def axis(self, value: Any, prepared: Any, grid: GridFinder) -> Naming:
        return token_names(self.names(prepared))

    def draw(self, value: Any, rows: Sequence[MapRow], title: str, grid: GridFinder) -> Picture | None:
        """A map of what was written or decided over the tokens of the text."""
        found = self.alignment(value, rows, title)
        return None if found is None else plot_alignments([found])

    def alignment(self, value: Any, rows: Sequence[MapRow], title: str) -> Alignment | None:
        """That map, with the site as its title where that is known."""
        names = self.names(self.prepare(value))
        if not rows or len(rows[0].weights) != len(names):
            return None
        weights = torch.stack([torch.as_tensor(row.weights) for row in rows])
        return Alignment(weights, [row.name for row in rows], names, rows[0].site or title)


def unknown_note(name: str, tokenizer: Tokenizer, texts: Iterable[str]) -> list[str]:
    """A line for the user where the vocabulary lacks much of the texts."""
    if not isinstance(tokenizer, SubwordTokenizer):
        return []
    texts = list(texts)
    tokens = [token for text in tokenizer.encode(texts) for token in text]
    share = tokens.count(tokenizer.special.unknown) / max(1, len(tokens))
    if share < MUCH_UNKNOWN:
        return []
    why = ", and the script has no spaces between words" if unspaced(texts) else ""
    return [
        f"{name}: {share:.0%} of the tokens are unknown to the vocabulary{why}; try --tokens subwords or characters"
    ]
