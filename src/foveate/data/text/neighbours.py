"""Each word from those before it, and from those after it: what ELMo learns from (Peters et al. 2018, section 3.1,
https://arxiv.org/abs/1802.05365).

B  rows    T  words of a row    K  characters of a word    M  places that are asked for
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from foveate.contracts import IGNORE, Batch, label_batch
from foveate.data.ragged import Numbers, padded
from foveate.data.tokens.characters import OpenVocabulary


@dataclass(frozen=True)
class BothWays:
    """Every word is predicted from both sides, so none is hidden.

    inputs: `characters` (B, T, K), `lengths` (B,). labels (B, 2 T): the word after each word, then the word before
    each word; the start token, which is not a word, is read and not predicted.
    """

    tokenizer: OpenVocabulary

    def hide(self, rows: Sequence[Numbers], generator: np.random.Generator | None) -> Batch:
        closed = [self.tokenizer.closed(row) for row in rows]
        after, _ = padded([np.append(row[1:], IGNORE) for row in closed], IGNORE)
        before, _ = padded([np.append([IGNORE, IGNORE], row[1:-1])[: len(row)] for row in closed], IGNORE)
        return label_batch(self._inputs(rows), torch.cat([after, before], 1), "")

    def ask(self, rows: Sequence[Numbers], places: Sequence[Numbers]) -> dict[str, Tensor]:
        return {**self._inputs(rows), "places": padded(places, 0)[0]}

    def predicted(self, row: Numbers) -> Numbers:
        return np.arange(1, len(row))

    def _inputs(self, rows: Sequence[Numbers]) -> dict[str, Tensor]:
        tokens, lengths = padded(rows, self.tokenizer.special.pad)
        characters = torch.from_numpy(self.tokenizer.characters(tokens.numpy()).astype(np.int64))
        return {"characters": characters, "lengths": lengths}
