"""Texts with blanks as the models of Hugging Face folders read them: a BERT, an XLNet.

B batch    T tokens    M blanks of a text
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from foveate.data.ragged import padded
from foveate.data.text.permutation import Permuted
from foveate.data.tokens.bert_tokenizer import BertTokenizer
from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.forms.blanks import Blank, FilledBlanks, MaskedText, ReadBlanks
from foveate.forms.form import Changes
from foveate.special_tokens import Role

OWN_NAMES: dict[str, Role] = {"[MASK]": "mask", "[SEP]": "separator"}
"""What stands in texts for two tokens that each tokenizer names as it likes."""


@dataclass
class BertBlanks(ReadBlanks):
    """Inputs `tokens`, `token_types` (B, T), `lengths` (B,) and `places` (B, M); [SEP] stands between two texts."""

    def prepare(self, value: str) -> MaskedText:
        tokenizer: BertTokenizer = self.tokenizer
        tokens = tokenizer.encode_question(value)
        return MaskedText(tokens, places_of(tokens, tokenizer.special.mask), value)

    def longer_than_training(self, prepared: MaskedText) -> bool:
        return False

    def tensors(
        self, prepared: Sequence[MaskedText], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        inputs, changes = super().tensors(prepared, generator)
        types = [np.array(self.tokenizer.token_types(one.tokens)) for one in prepared]
        return {**inputs, "token_types": padded(types, 0)[0]}, changes


@dataclass
class XLNetBlanks(ReadBlanks):
    """Inputs `tokens`, `ranks`, `segments` (B, T), `lengths` (B,) and `places` (B, M): the words at the blanks come
    last in the order, and none of them sees another. A text without blanks is only read."""

    def prepare(self, value: str) -> MaskedText:
        tokenizer: PublicTokenizer = self.tokenizer
        tokens = tokenizer.spans(self.own_names(value))[0]
        return MaskedText(tokens, places_of(tokens, tokenizer.special.mask), value)

    def own_names(self, text: str) -> str:
        """The text with the tokenizer's names of [MASK] and [SEP]."""
        for name, role in OWN_NAMES.items():
            text = text.replace(name, self.tokenizer.pieces([self.tokenizer.special[role]])[0])
        return text

    def longer_than_training(self, prepared: MaskedText) -> bool:
        return False

    def tensors(
        self, prepared: Sequence[MaskedText], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        way = Permuted(self.tokenizer.special)
        inputs = way.ask([np.array(one.tokens) for one in prepared], [np.array(one.places) for one in prepared])
        types = [np.array(self.tokenizer.types(self.own_names(one.text))) for one in prepared]
        inputs["segments"] = padded(types, 0)[0]
        if not any(one.places for one in prepared):
            del inputs["ranks"], inputs["places"]
        return inputs, Changes()


@dataclass
class PublicFilledBlanks(FilledBlanks):
    """The words at the blanks, any of the vocabulary."""

    first_word = 0

    def best_words(self, shares: Tensor, best: int) -> list[Blank]:
        tops = [row.topk(min(best, len(row))) for row in shares]
        return [Blank([self.word(token) for token in top.indices.tolist()], top.values.tolist()) for top in tops]

    def word(self, token: int) -> str:
        """What a token says."""
        found: str = self.tokenizer.pieces([token])[0]
        return found.removeprefix("Ġ")


def places_of(tokens: Sequence[int], mask: Any) -> list[int]:
    """Where the masks are."""
    return [place for place, token in enumerate(tokens) if token == mask]
