"""Pairs of texts that mean the same become batches for a model that embeds texts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from foveate.contracts import Batch
from foveate.data.ragged import padded
from foveate.data.text.batches import surroundings
from foveate.data.text.pair_processor import Around, EncodesPairs, TokenPair
from foveate.data.tokens.tokenizer_processor import TokenizerProcessor


class PairedTexts(Batch):
    """A batch with two rows of each input for each pair: the source and, behind it, the target."""

    def select(self, chosen: slice) -> "PairedTexts":
        """Some of the pairs alone."""
        pairs = torch.arange(len(self.weight))[chosen]
        places = torch.stack([2 * pairs, 2 * pairs + 1], 1).flatten()
        return replace(
            self,
            inputs={name: value[places] for name, value in self.inputs.items()},
            targets={name: value[pairs] for name, value in self.targets.items()},
            weight=self.weight[pairs],
        )


@dataclass
class PairedTextProcessor(TokenizerProcessor, EncodesPairs):
    """Turns pairs into inputs `tokens` (2B, T) and `lengths` (2B,), and the targets `sources` and `labels` (B, 1): the
    numbers of the first equal source and of the first equal target of the batch."""

    @property
    def around(self) -> tuple[Around, Around]:
        found = surroundings(self.tokenizer)
        return found, found

    def encode(self, pairs: Sequence[tuple[str, str]]) -> tuple[list[list[int]], list[list[int]]]:
        sources, targets = zip(*pairs, strict=True)
        return self.tokenizer.encode(list(sources)), self.tokenizer.encode(list(targets))

    def cost(self, prepared: TokenPair) -> int:
        return max(map(len, prepared))

    def batch(self, prepared: Sequence[TokenPair], generator: np.random.Generator | None) -> Batch:
        rows = [text for pair in prepared for text in pair]
        tokens, lengths = padded(rows, self.tokenizer.special.pad)
        sources, labels = (_first_equal([tuple(pair[side].tolist()) for pair in prepared]) for side in (0, 1))
        weight = torch.ones(len(prepared), dtype=torch.int64)
        targets = {"labels": labels, "sources": sources}
        return PairedTexts({"tokens": tokens, "lengths": lengths}, targets, weight, "pairs")


def _first_equal(texts: Sequence[tuple[int, ...]]) -> torch.Tensor:
    first = {text: place for place, text in reversed([*enumerate(texts)])}
    return torch.tensor([[first[text]] for text in texts])
