"""What checkpoints hold, which are kept, and what becomes of damaged ones."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_training import TinyModel, run
from torch import nn

from foveate import run_dir
from foveate.errors import UserError
from foveate.tensor_files import write_tensors
from foveate.training import Training
from foveate.training.checkpoints import Checkpoints
from foveate.training.identity import HELD_OUT, refuse_changes
from foveate.training.optimizers import optimizer
from foveate.training.parallel import Placement
from foveate.training.progress import Progress


def saver(folder: Path, **settings: Any) -> tuple[Checkpoints, nn.Module, torch.optim.Optimizer]:
    chosen = Training(**{"save_every": 10, "validate_every": 10, "average": 3} | settings)
    model = TinyModel()
    return Checkpoints(folder / "checkpoints", chosen, {}), model, optimizer(model, chosen, torch.device("cpu"))


def whole(model: nn.Module) -> Placement:
    return Placement(model, torch.device("cpu"))


def test_a_checkpoint_brings_back_the_random_numbers_and_the_optimizer(tmp_path: Path):
    checkpoints, model, optimizer = saver(tmp_path)
    model(torch.tensor([[1, 2, 3]])).logits.sum().backward()
    optimizer.step()
    checkpoints.save(whole(model), optimizer, Progress(step=10, best={"bleu": 2.5}, best_step=10))
    expected = torch.rand(5)
    again, other, fresh = saver(tmp_path)
    nn.init.zeros_(other.hidden.weight)
    progress, damaged = again.resume(whole(other), fresh)
    assert torch.equal(torch.rand(5), expected)
    assert progress == Progress(step=10, best={"bleu": 2.5}, best_step=10)
    assert not damaged
    assert torch.equal(other.hidden.weight, model.hidden.weight)
    assert other.head.weight is other.embedding.weight
    for one, two in zip(optimizer.state.values(), fresh.state.values(), strict=True):
        assert one.keys() == two.keys()
        assert all(torch.equal(one[key], two[key]) for key in one)


def test_the_last_ones_and_the_best_are_kept(tmp_path: Path):
    checkpoints, model, optimizer = saver(tmp_path)
    for step in (10, 20, 23, 30, 40, 50, 57):
        checkpoints.save(whole(model), optimizer, Progress(step=step, best_step=20))
    # 23 and 57 were not due, but 57 is the newest
    assert checkpoints.steps() == [20, 40, 50, 57]
    checkpoints.save(whole(model), optimizer, Progress(step=60, best_step=60))
    assert checkpoints.last_regular(60) == checkpoints.steps() == [40, 50, 60]


def test_the_average_by_hand(tmp_path: Path):
    checkpoints, model, optimizer = saver(tmp_path)
    model.register_buffer("count", torch.tensor(0))
    for step, value in ((10, 1.0), (20, 2.0), (30, 6.0)):
        nn.init.constant_(model.hidden.weight, value)
        nn.init.constant_(model.head.weight, 10 * value)
        model.count.fill_(step)
        checkpoints.save(whole(model), optimizer, Progress(step=step))
    average = checkpoints.average([10, 20, 30])
    assert average.keys() == model.state_dict().keys()
    assert (average["hidden.weight"] == 3.0).all()
    assert (average["embedding.weight"] == 30.0).all()
    assert (average["head.weight"] == 30.0).all()
    assert average["count"] == 30


@pytest.mark.parametrize("length", [0, 5, 100, -1])
def test_a_truncated_newest_checkpoint_is_told_and_passed_over(tmp_path: Path, length: int):
    checkpoints, model, optimizer = saver(tmp_path)
    for step in (10, 20):
        checkpoints.save(whole(model), optimizer, Progress(step=step))
    newest = checkpoints.path(20)
    newest.write_bytes(newest.read_bytes()[:length])
    progress, damaged = checkpoints.resume(whole(model), optimizer)
    assert progress.step == 10
    assert len(damaged) == 1
    assert "step-00000020.safetensors is truncated or damaged" in damaged[0]
    checkpoints.path(10).write_bytes(b"")
    with pytest.raises(UserError, match=r"no checkpoint in .* can be read; remove them to start again: .*00000020"):
        checkpoints.resume(whole(model), optimizer)


def test_what_is_saved_after_one_that_was_passed_over_stays(tmp_path: Path, full_disk: Callable[[int], Any]):
    checkpoints, model, optimizer = saver(tmp_path, average=1)
    for step in (10, 20):
        checkpoints.save(whole(model), optimizer, Progress(step=step, best_step=10))
    checkpoints.path(20).write_bytes(b"")
    assert checkpoints.resume(whole(model), optimizer)[0].step == 10
    assert checkpoints.last_regular(10) == [10]
    with pytest.raises(UserError, match=r"step-00000010\.safetensors is intact"), full_disk(3000):
        checkpoints.save(whole(model), optimizer, Progress(step=13))
    checkpoints.save(whole(model), optimizer, Progress(step=13))
    assert checkpoints.steps() == [13]
    assert checkpoints.resume(whole(model), optimizer)[0].step == 13


def test_a_foreign_file_is_no_checkpoint(tmp_path: Path):
    checkpoints, model, optimizer = saver(tmp_path)
    write_tensors(checkpoints.path(10), model.state_dict())
    with pytest.raises(UserError, match="is not a checkpoint of this version of foveate"):
        checkpoints.resume(whole(model), optimizer)


def test_no_space_left_while_saving(tmp_path: Path, full_disk: Callable[[int], Any]):
    checkpoints, model, optimizer = saver(tmp_path)
    checkpoints.save(whole(model), optimizer, Progress(step=10))
    before = checkpoints.path(10).read_bytes()
    with pytest.raises(UserError) as caught, full_disk(3000):
        checkpoints.save(whole(model), optimizer, Progress(step=20))
    message = str(caught.value)
    assert message.startswith(f"could not write step-00000020.safetensors in {tmp_path / 'checkpoints'}: ")
    assert "File too large" in message
    assert message.endswith("step-00000010.safetensors is intact: run the same command to resume from it")
    assert "\n" not in message
    assert [path.name for path in checkpoints.folder.iterdir()] == ["step-00000010.safetensors"]
    assert checkpoints.path(10).read_bytes() == before
    assert checkpoints.resume(whole(model), optimizer)[0].step == 10


def test_another_model_is_refused(tmp_path: Path):
    checkpoints, model, optimizer = saver(tmp_path)
    checkpoints.save(whole(model), optimizer, Progress(step=10))
    model.hidden = nn.Linear(7, 5)
    with pytest.raises(
        UserError, match=r"'hidden.weight' is \(7, 7\) there, but \(5, 7\) in the model: probably the arch"
    ):
        checkpoints.resume(whole(model), optimizer)


def test_settings_that_change_the_result_may_not_change(tmp_path: Path):
    run(tmp_path, steps=14)
    with pytest.raises(UserError, match=r"has a training with learning_rate 0.02, not 0.03: resume it with 0.02, or t"):
        run(tmp_path, steps=14, learning_rate=0.03)
    assert run(tmp_path, steps=20, patience=50, average=1)[1].step == 20


def test_what_an_older_version_did_not_let_change_may_change(tmp_path: Path):
    checkpoints, model, optimizer = saver(tmp_path, average=5)
    checkpoints.fixed |= {"average": 5}
    checkpoints.save(whole(model), optimizer, Progress(step=10))
    later, model, optimizer = saver(tmp_path, average=7)
    assert later.resume(whole(model), optimizer)[0].step == 10


def test_what_else_must_be_the_same(tmp_path: Path):
    checkpoints, model, optimizer = saver(tmp_path)
    checkpoints.fixed |= {"model.width": 7}
    checkpoints.save(whole(model), optimizer, Progress(step=10))
    other = Checkpoints(checkpoints.folder, checkpoints.settings, {"model": {"width": 5}})
    with pytest.raises(UserError, match=r"with model.width 7, not 5"):
        other.resume(whole(model), optimizer)


def test_refuse(tmp_path: Path):
    checkpoints, model, optimizer = saver(tmp_path)
    checkpoints.refuse()
    checkpoints.save(whole(model), optimizer, Progress(step=1030))
    with pytest.raises(UserError, match=r"has a training at step 1,030: resume it, or choose another folder"):
        checkpoints.refuse()


def test_a_trained_model_without_its_checkpoints_is_kept(tmp_path: Path):
    checkpoints, model, optimizer = saver(tmp_path)
    (tmp_path / run_dir.CONFIG).write_text("{}")
    (tmp_path / run_dir.WEIGHTS).touch()
    with pytest.raises(UserError, match="has a trained model without checkpoints: train in another folder"):
        checkpoints.resume(whole(model), optimizer)


def test_a_training_of_a_version_that_held_out_other_examples() -> None:
    run, task = Path("runs/mine"), {"task": "classify"}
    with pytest.raises(UserError, match=r"of an earlier version, which held out other examples: `foveate finish runs/"):
        refuse_changes(task, {**task, HELD_OUT: 5}, run)
    refuse_changes(task, {**task, HELD_OUT: 20}, run)
    refuse_changes({**task, HELD_OUT: 5}, {**task, HELD_OUT: 5}, run)
    refuse_changes({**task, HELD_OUT: 5}, task, run)  # before the data is read
