"""Q-learning that is broken off goes on with the episodes that it kept: bit for bit."""

from io import StringIO
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console

from foveate.contracts import Batch, Output
from foveate.data.worlds.episodes import Level
from foveate.data.worlds.grid_levels import SYMBOLS
from foveate.errors import UserError
from foveate.forms.world import LevelName
from foveate.models.multimodal.darqn import DARQN, DARQNConfig
from foveate.tasks import learning
from foveate.tasks.acting import agent, replay
from foveate.tasks.acting.replay import ReplayBatches
from foveate.tasks.acting.replay_memory import Experience, pack, unpack
from foveate.tasks.loading import recipe as make_recipe
from foveate.training import Training
from foveate.training.objectives.objective import Loss
from foveate.training.objectives.q_learning import QLearning

pytest.importorskip("minigrid")


class Sudden(Exception):
    """Stands for a process that vanishes."""


def learn(folder: Path) -> None:
    training = Training(steps=6, warmup=1, validate_every=6, save_every=2, precision="float32", average=1)
    settings = {"objective": "q", "world": "minigrid/Empty-5x5", "actions": 3, "batch": 32, "validation_examples": 1}
    small = {"widths": (8, 8, 8), "width": 16, "dropout": 0.1}
    recipe = make_recipe("control", **settings, explore=4, architecture=small, out=folder, training=training)
    learning.learn(recipe, console=Console(file=StringIO()))


class Vanishing(QLearning):
    """Its process vanishes in the fourth step."""

    steps = 0

    def __call__(self, output: Output, batch: Batch) -> Loss:
        self.steps += 1
        if self.steps == 4:
            raise Sudden
        return super().__call__(output, batch)


def test_a_resumed_training_equals_an_uninterrupted_one(tmp_path: Path, monkeypatch) -> None:
    """It goes on from step 2 of 6; the target network is renewed every 3 batches."""
    monkeypatch.setattr(replay, "REFRESH", 3)
    monkeypatch.setattr(replay, "LONGEST", 12)
    learn(tmp_path / "whole")
    monkeypatch.setattr(agent, "QLearning", Vanishing)
    with pytest.raises(Sudden):
        learn(tmp_path / "broken")
    monkeypatch.setattr(agent, "QLearning", QLearning)
    assert (tmp_path / "broken" / "checkpoints" / "step-00000002.safetensors").exists()
    learn(tmp_path / "broken")
    whole, broken = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "broken"))
    assert whole == broken


def test_what_batches_remember() -> None:
    """Batches that are restored in another process give the same next batch; without, they do not."""
    reads, levels = LevelName(words=("goal",)), [Level("minigrid/Empty-5x5", seed) for seed in range(8)]
    torch.manual_seed(0)
    model = DARQN(DARQNConfig(5, 3, 3, (8,), (8,), (8,), width=8))

    def batches() -> ReplayBatches:
        return ReplayBatches(model, reads, 3, levels, 64, 10, 0.9, 1)

    begun, restored, bare = batches(), batches(), batches()
    stream = begun.epoch(0)
    next(stream), next(stream)
    state = {name: tensor.clone() for name, tensor in begun.state().items()}
    with torch.no_grad():
        model.output.bias += 1
    restored.restore(state)
    expected, found, other = next(stream), next(restored.epoch(0, 2)), next(bare.epoch(0, 2))
    for name, tensor in expected.targets.items():
        assert torch.equal(found.targets[name], tensor)
    assert torch.equal(found.inputs["pixels"], expected.inputs["pixels"])
    assert not torch.equal(other.targets["values"], expected.targets["values"])


def episodes() -> list[Experience]:
    generator = np.random.default_rng(1)
    return [
        Experience(
            instruction,
            list(generator.integers(0, SYMBOLS, (count + 1, 7, 7, 3)).astype(np.uint8)),
            generator.integers(0, 7, count).tolist(),
            [0.0] * (count - 1) + [0.5],
            bool(count % 2),
        )
        for instruction, count in (("go to the ñandu", 3), ("", 1), ("go", 2))
    ]


def test_episodes_are_packed_and_unpacked() -> None:
    kept = episodes()
    packed = pack(kept)
    assert sum(tensor.numel() * tensor.element_size() for tensor in packed.values()) < 9 * 147 + 6 * 5 + 3 * 9 + 21
    for one, other in zip(kept, unpack(packed, 7), strict=True):
        assert np.array_equal(one.codes, other.codes)
        assert (one.instruction, one.actions, one.rewards, one.ended) == (
            other.instruction,
            other.actions,
            other.rewards,
            other.ended,
        )


@pytest.mark.parametrize("change", [None, torch.zeros(0), torch.full((5,), 200), torch.full((9, 7, 7, 3), 250)])
@pytest.mark.parametrize("name", ["instructions", "lengths", "ended", "actions", "rewards", "codes"])
def test_damaged_episodes(name: str, change: torch.Tensor | None) -> None:
    packed = pack(episodes())
    kind = packed.pop(name).dtype
    packed |= {} if change is None else {name: change.to(kind)}
    with pytest.raises(UserError, match="the episodes that the checkpoint keeps are damaged"):
        unpack(packed, 7)
