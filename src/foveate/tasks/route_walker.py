"""A walker in use: it follows instructions sentence by sentence or as a whole, alone or with others."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch.nn.functional as F
from torch import nn

from foveate.contracts import Picture
from foveate.data.dataset import Dataset
from foveate.data.worlds.routes import mirrored, read_routes
from foveate.decoding.ensemble import Ensemble
from foveate.errors import UserError
from foveate.forms.form import MapRow
from foveate.forms.walks import MapOptions
from foveate.tasks.skill import Skill
from foveate.training import Batches


@dataclass(repr=False)
class RouteWalker(Skill):
    """A walker in use: it learns from mirrored routes too, and is measured on maps of its own."""

    _others: dict[Path, nn.Module] = field(default_factory=dict, init=False, repr=False)
    """The other models of an ensemble."""

    def batches(self, train: Dataset[Any]) -> Batches:
        if not self.recipe.examples.mirror:
            return super().batches(train)
        return super().batches(Dataset(train.name, [*train, *mirrored(train)], train.unit))

    def picture(self, answer: Any) -> Picture | None:
        """The words that each action attended to; for each sentence its own."""
        if not answer.sentences:
            return super().picture(answer)
        reads, writes = self.processor.reads, self.processor.writes
        prepared = self.fit(reads.open(answer.given)).prepared
        found: list[MapRow] = []
        before = 0
        for one, walk in zip(prepared.sentences(), answer.sentences, strict=True):
            sight = self.watch({**reads.tensors([one])[0], **writes.teach(walk)})
            after = len(answer.words) - before - len(walk.words)
            for row in writes.rows(sight, self.model, walk, 0):
                found.append(MapRow(row.name, F.pad(row.weights, (before, after))))
            before += len(walk.words)
        return writes.draw(answer, None, found, None) if found else None

    def _in_use(self, count: int, options: Any) -> nn.Module:
        """The model, or the ensemble that the options name."""
        own = super()._in_use(count, options)
        return Ensemble([own, *map(self._other, options.ensemble)]) if options.ensemble else own

    def _other(self, folder: Path) -> nn.Module:
        """Another model of an ensemble. Raises UserError for one that learned from other routes."""
        if folder not in self._others:
            from foveate.tasks.loading import load  # which knows all tasks

            other = load(folder, str(self.device))
            if other.processor != self.processor:
                raise UserError(f"--ensemble: {folder} did not learn from the same routes as {self.folder}")
            self._others[folder] = other.model
        return self._others[folder]

    def test_examples(self, data: Sequence[Path], options: MapOptions) -> Dataset[Any]:
        """A user's routes, by default those on the maps that were left out in training."""
        if not data:
            return super().test_examples(data, options)
        return read_routes(data, only=options.only or self.recipe.examples.leave_out)
