"""Token ids, such as "5 17 9": what a model can be shown whose folder has no tokenizer.

B batch    T tokens    N vocabulary
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from foveate.errors import UserError
from foveate.forms.answers import Answer
from foveate.forms.form import Changes, InputForm, OutputForm
from foveate.forms.grids import GridFinder
from foveate.forms.inputs import require_text
from foveate.forms.naming import DecoderNames, Naming, token_names
from foveate.viewer.protocol import Input


@dataclass(kw_only=True)
class WrittenIds(Answer):
    """The tokens that a model wrote while it was looked at."""

    tokens: tuple[int, ...] = ()

    @property
    def cells(self) -> list[str]:
        return [" ".join(map(str, self.tokens))] if self.tokens else []


@dataclass
class TokenIds(InputForm):
    """Ids for a look: inputs `tokens` (B, T) and `lengths` (B,); of an encoder-decoder `source` and `source_lengths`.

    A text is refused, because there is nothing to cut it into tokens.
    """

    place_name: ClassVar[str] = "tokens"

    lacks: str = ""
    """What is missing, as one line."""
    vocabulary: int = 0
    """Tokens that the model has embeddings for."""
    names: tuple[str, str] = ("tokens", "lengths")
    """What the model calls its inputs."""

    def open(self, given: str) -> list[int]:
        """Raises UserError: the answer to a text would have to be a text."""
        raise UserError(self.lacks)

    def receive(self, given: Input, name: str) -> list[int]:
        words = re.split(r"[\s,]+", require_text(given, name).strip("[] \t\r\n"))
        if not all(re.fullmatch(r"[0-9]{1,9}", word) for word in words):
            raise UserError(f"{self.lacks}; a look is given token ids, such as '5 17 9'")
        ids = [int(word) for word in words]
        if wrong := [number for number in ids if number >= self.vocabulary]:
            raise UserError(f"there is no token {wrong[0]:,}: the model has {self.vocabulary:,}, counted from 0")
        return ids

    def cost(self, prepared: Any) -> int:
        return len(prepared)

    def positions(self, prepared: Any) -> int:
        return len(prepared)

    def tensors(
        self, prepared: Sequence[Any], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        """One row, of which nothing is padding."""
        (ids,) = prepared
        return dict(zip(self.names, (torch.tensor([ids]), torch.tensor([len(ids)])), strict=True)), Changes()

    def axis(self, value: Any, prepared: Any, grid: GridFinder) -> Naming:
        return token_names([str(number) for number in prepared])


@dataclass
class IdsAlone(OutputForm):
    """What a model without a tokenizer writes, for a look: no text, but ids that its decoder reads again."""

    start: int | None = None
    """The token that an encoder-decoder begins with; None for a model that writes nothing."""

    def teach(self, answer: WrittenIds) -> dict[str, Tensor]:
        return {} if self.start is None else {"target": torch.tensor([[self.start, *answer.tokens]])}

    def axis(self, answer: WrittenIds) -> DecoderNames | None:
        if self.start is None:
            return None
        read = [str(number) for number in (self.start, *answer.tokens)]
        return DecoderNames(token_names(read), token_names([*read[1:], "next"]), "decoder", len(read))
