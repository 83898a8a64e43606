"""Q-learning in levels: episodes that the agent itself acts, kept for replay, and batches of parts of them."""

import copy
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from foveate import run_dir
from foveate.contracts import IGNORE, Batch, label_batch
from foveate.data.worlds.episodes import Level
from foveate.data.worlds.grid_levels import GridLevel, encode_views
from foveate.decoding.acting import stack_observations
from foveate.forms.world import LevelName
from foveate.tasks.acting.replay_memory import Experience, pack, unpack
from foveate.training.objectives.q_learning import double_q_targets


@dataclass
class ReplayBatches:
    """Batches of recurrent double Q-learning (Hausknecht and Stone 2015, https://arxiv.org/abs/1507.06527).

    Before each batch the agent acts in a few levels and takes some actions at random, first all, in the end `LEAST` of
    them. The batch has parts of kept episodes, as many steps each, which the agent reads from an empty state on.
    """

    model: Any
    """The agent, as it learns."""
    reads: LevelName
    actions: int
    """How many there are to choose from."""
    levels: Sequence[Level]
    steps: int
    """Steps of a batch, padding included."""
    explore: int
    """Batches until only `LEAST` of the actions are random."""
    discount: float
    seed: int
    kept: deque[Experience] = field(default_factory=lambda: deque(maxlen=KEPT))
    target: nn.Module | None = None
    """The network that says what a next action is worth: the model as it was some batches ago."""

    def __len__(self) -> int:
        return max(1, len(self.levels) // WORLDS)

    def epoch(self, number: int, skip: int = 0) -> Iterator[Batch]:
        """The batches of one epoch, counted from 0, without the first `skip`."""
        for place in range(skip, len(self)):
            generator = np.random.default_rng((self.seed, number, place))
            count = number * len(self) + place
            if self.target is None or count % REFRESH == 0:
                self.target = copy.deepcopy(self.model).eval()
            share = max(LEAST, 1 - (1 - LEAST) * count / self.explore)
            levels = self.levels[place * WORLDS : (place + 1) * WORLDS]
            self.kept.extend(self._act(levels, share, generator))
            yield self._batch(generator)

    def state(self) -> dict[str, Tensor]:
        """The kept episodes and the target network, for a checkpoint; `restore` reads them."""
        target = {} if self.target is None else self.target.state_dict()
        kept = pack(self.kept) if self.kept else {}
        return {f"kept/{name}": one for name, one in kept.items()} | {f"target/{n}": one for n, one in target.items()}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on with the kept episodes and the target network of a checkpoint."""
        kept, target = (
            {name.removeprefix(part): one for name, one in state.items() if name.startswith(part)}
            for part in ("kept/", "target/")
        )
        self.kept.clear()
        self.kept.extend(unpack(kept, self.actions) if kept else [])
        self.target = None
        if target:
            self.target = copy.deepcopy(self.model).eval()
            run_dir.fill(self.target, target, "the checkpoint's target network", "it is damaged")

    @torch.no_grad()
    def _act(self, levels: Sequence[Level], share: float, generator: np.random.Generator) -> list[Experience]:
        """What happens in each level, where this share of the actions is random."""
        training = self.model.training
        self.model.eval()
        worlds = [GridLevel(level.world, level.seed, self.reads.views) for level in levels]
        found = [Experience(world.instruction, [world.codes]) for world in worlds]
        state, open_ = self.model.start(**self._inputs(found)), list(range(len(worlds)))
        for _ in range(LONGEST):
            seen = stack_observations([worlds[one].observe() for one in open_], self._device)
            best = self.model.step(seen, state).argmax(-1).tolist()
            stays = []
            for row, (one, action) in enumerate(zip(open_, best, strict=True)):
                if generator.random() < share:
                    action = int(generator.integers(self.actions))
                found[one].ended = worlds[one].act(action)
                if not found[one].ended:
                    stays.append(row)
                found[one].actions.append(action)
                found[one].rewards.append(float(worlds[one].reward))
                found[one].codes.append(worlds[one].codes)
            open_ = [open_[row] for row in stays]
            if not open_:
                break
            state.reorder(torch.tensor(stays, device=self._device))
        self.model.train(training)
        return found

    @torch.no_grad()
    def _batch(self, generator: np.random.Generator) -> Batch:
        """Parts of kept episodes, with what their actions are worth."""
        chosen = [self.kept[int(place)] for place in generator.integers(len(self.kept), size=self.steps // WINDOW)]
        labels = torch.full((len(chosen), WINDOW), IGNORE)
        rewards, ended = torch.zeros(labels.shape), torch.zeros(labels.shape, dtype=torch.bool)
        codes = np.zeros((len(chosen), WINDOW + 1, *chosen[0].codes[0].shape), np.uint8)
        for row, one in enumerate(chosen):
            begin = int(generator.integers(max(1, len(one.actions) - WINDOW + 1)))
            count = min(WINDOW, len(one.actions))
            labels[row, :count] = torch.tensor(one.actions[begin : begin + count])
            rewards[row, :count] = torch.tensor(one.rewards[begin : begin + count])
            ended[row, count - 1] = one.ended and begin + count == len(one.actions)
            codes[row, : count + 1] = one.codes[begin : begin + count + 1]
        pixels = torch.from_numpy(encode_views(codes.reshape(-1, *codes.shape[2:]), self.reads.views))
        pixels = pixels.unflatten(0, codes.shape[:2])
        inputs = self._inputs(chosen)
        training = self.model.training
        networks: tuple[Any, Any] = (self.model.eval(), self.target)
        seen = pixels.to(self._device)
        online, target = (network(**inputs, pixels=seen).logits.float().cpu() for network in networks)
        self.model.train(training)
        targets = double_q_targets(online, target, rewards, ended, self.discount)
        batch = label_batch({**inputs, "pixels": pixels[:, :-1]}, labels, "replayed episodes")
        batch.targets["values"] = targets
        return batch

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    def _inputs(self, episodes: Sequence[Experience]) -> dict[str, Tensor]:
        inputs = self.reads.inputs([one.instruction for one in episodes])
        return {name: part.to(self._device) for name, part in inputs.items()}


WORLDS = 2
"""Levels that are acted in before each batch."""

LONGEST = 40
"""Steps after which an episode is broken off."""

WINDOW = 16
"""Steps of each part of an episode."""

KEPT = 1000
"""Episodes that are kept."""

REFRESH = 100
"""Batches from one copy of the model, the target network, to the next."""

LEAST = 0.05
"""Share of random actions in the end."""
