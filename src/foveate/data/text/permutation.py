"""Tokens in a random order: what XLNet learns from (Yang et al. 2019, sections 2.2 and 2.3,
https://arxiv.org/abs/1906.08237).

B  rows    T  tokens of a row    M  places that are asked for
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from foveate.contracts import IGNORE, Batch, label_batch
from foveate.data.ragged import Numbers, padded
from foveate.data.text.masking import hidden_places
from foveate.special_tokens import SpecialTokens


@dataclass(frozen=True)
class Permuted:
    """A share of the tokens comes last, in a random order, and each of these is predicted from all before it.

    No token is masked: `ranks` say who sees whom. Tokens that are not predicted have the rank 0, the others
    the ranks from 1 on.

    inputs: `tokens` (B, T), `lengths` (B,), `ranks` (B, T), `places` (B, M) in the order of their ranks. labels (B, M):
    the tokens at these places.
    """

    special: SpecialTokens
    share: float = 0.15

    def hide(self, rows: Sequence[Numbers], generator: np.random.Generator | None) -> Batch:
        drawn = [self._order(row, generator) for row in rows]
        labels, _ = padded([row[places] for row, places in zip(rows, drawn, strict=True)], IGNORE)
        ranks = [np.arange(1, len(places) + 1) for places in drawn]
        return label_batch(self._inputs(rows, drawn, ranks), labels, "")

    def ask(self, rows: Sequence[Numbers], places: Sequence[Numbers]) -> dict[str, Tensor]:
        """Each place is predicted without the others: all of them have the rank 1."""
        return self._inputs(rows, places, [np.ones(len(own), np.int64) for own in places])

    def predicted(self, row: Numbers) -> Numbers:
        return self._order(row, None)

    def _order(self, row: Numbers, generator: np.random.Generator | None) -> Numbers:
        """The places to predict, the first one first."""
        places = hidden_places(row, self.share, generator, self.special)
        return (generator or np.random.default_rng(len(places))).permutation(places)

    def _inputs(
        self, rows: Sequence[Numbers], places: Sequence[Numbers], ranks: Sequence[Numbers]
    ) -> dict[str, Tensor]:
        tokens, lengths = padded(rows, self.special.pad)
        of_tokens = [np.zeros(len(row), np.int64) for row in rows]
        for own, at, order in zip(of_tokens, places, ranks, strict=True):
            own[at] = order
        return {"tokens": tokens, "lengths": lengths, "ranks": padded(of_tokens, 0)[0], "places": padded(places, 0)[0]}
