"""The moving average of the weights: by hand, and saved, resumed, validated and kept by a training."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from test_resume import BreakOff, Sudden, checkpoint, rows, same, vanish
from tiny_training import TinyModel, run
from torch import Tensor, nn

from foveate import run_dir
from foveate.errors import UserError
from foveate.tensor_files import read_tensors
from foveate.training import Training
from foveate.training.moving_average import MovingAverage

DECAY = 0.9


def test_by_hand() -> None:
    """The average begins with the first weights and reaches over few steps at first; a counter is copied."""
    average = MovingAverage(0.25)
    for step, value in enumerate([4.0, 8.0, 16.0], start=1):
        average.update({"w": torch.tensor([value]), "steps": torch.tensor(step)}, step)
    second = 0.25 * 4 + 0.75 * 8  # (1 + 2) / (10 + 2) is 0.25
    assert average.tensors["w"].tolist() == [0.25 * second + 0.75 * 16]  # 4 / 13 would be more than the decay
    assert average.tensors["steps"] == 3


def test_weights_of_two_names_are_exchanged_once() -> None:
    model, other = TinyModel(), TinyModel()
    average = MovingAverage(0.5)
    average.restore({name: tensor + 1 for name, tensor in other.state_dict().items()}, model.state_dict())
    with average.exchanged(model.state_dict()):
        assert torch.equal(model.head.weight, other.head.weight + 1)
        assert model.head.weight is model.embedding.weight
    assert torch.equal(model.head.weight, other.head.weight)
    average.update(model.state_dict(), 1000)
    assert torch.allclose(average.tensors["head.weight"], other.head.weight + 0.5)


class Normed(TinyModel):
    """A model with statistics and a counter beside its weights."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Sequential(nn.Linear(7, 7), Flat(7))  # type: ignore[assignment]


class Flat(nn.BatchNorm1d):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.flatten(0, 1)).view_as(x)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[nn.Module, Any, Path]:
    folder = tmp_path_factory.mktemp("whole")
    return *run(folder, Normed(), ema=DECAY), folder


def test_the_average_of_all_steps_is_saved_validated_and_kept(tmp_path: Path, whole: Any) -> None:
    """Against the weights of each step of the same training without an average."""
    run(tmp_path, Normed(), save_every=1, validate_every=60, average=60)
    learned = [
        read_tensors(tmp_path / "checkpoints" / f"step-{step:08d}.safetensors", run_dir.MODEL).tensors
        for step in range(1, 61)
    ]
    expected = {name: tensor.double() for name, tensor in learned[0].items()}
    for step, weights in enumerate(learned[1:], start=2):
        decay = min(DECAY, (1 + step) / (10 + step))
        expected = {name: decay * expected[name] + (1 - decay) * tensor for name, tensor in weights.items()}
    found = read_tensors(whole[2] / "checkpoints" / "step-00000060.safetensors").tensors
    for name, tensor in learned[-1].items():
        assert torch.equal(found[f"learned/{name}"], tensor)
        if tensor.is_floating_point():
            assert torch.allclose(found[f"model/{name}"].double(), expected[name], atol=1e-5)
    errors = [row["validation"]["error"] for row in rows(whole[2]) if "validation" in row]
    others = [row["validation"]["error"] for row in rows(tmp_path) if "validation" in row]
    assert errors[-1] != others[-1]


@pytest.mark.parametrize("step", [3, 29, 60])
def test_resumed_bit_for_bit(tmp_path: Path, whole: Any, step: int) -> None:
    with pytest.raises(Sudden):
        run(tmp_path, Normed(), batches=BreakOff(step, vanish), ema=DECAY)
    assert same(run(tmp_path, Normed(), ema=DECAY), whole[:2])
    assert checkpoint(tmp_path, 60) == checkpoint(whole[2], 60)
    assert rows(tmp_path) == rows(whole[2])


def test_a_training_goes_on_with_its_own_decay_alone(tmp_path: Path, whole: Any) -> None:
    shutil.copytree(whole[2], tmp_path / "run")
    with pytest.raises(UserError, match=r"a training with ema 0\.9, not 0\.0: resume it with 0\.9"):
        run(tmp_path / "run", Normed())


@pytest.mark.parametrize("ema", [-0.1, 1.0])
def test_a_decay_that_cannot_be(ema: float) -> None:
    with pytest.raises(UserError, match=r"ema is .*, but must be at least 0 and below 1"):
        Training(ema=ema).check()
