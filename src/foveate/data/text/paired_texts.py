"""Batches of pairs of texts, both of which are rows."""

from dataclasses import replace

import torch

from foveate.contracts import Batch


class PairedTexts(Batch):
    """A batch with two rows of each input for each pair: the first text and, behind it, the second."""

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
