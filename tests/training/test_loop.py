"""The training loop: when it ends, what it logs, what it keeps."""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from tiny_training import VALIDATION, VOCABULARY, TinyBatches, TinyModel, measure, run
from torch import nn

from foveate.contracts import Batch, Output
from foveate.errors import UserError
from foveate.training import CrossEntropy, Training, Validation, train


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def trained(folder: Path, validation: Validation | None, **settings: Any) -> Any:
    chosen = Training(**{"device": "cpu", "warmup": 3, "save_every": 5, "validate_every": 5} | settings)
    console = Console(file=StringIO())
    return train(TinyModel(), TinyBatches(), CrossEntropy(), chosen, folder, validation, console=console)


def scripted(*values: float, higher_is_better: bool = True) -> Validation:
    """A validation that gives the values one by one."""
    remaining = iter(values)
    return Validation(lambda model: {"score": next(remaining)}, "score", higher_is_better)


def test_it_learns(tmp_path: Path):
    model, result = run(tmp_path, steps=200, save_every=50, validate_every=50)
    assert result.metrics["error"] <= 0.1 < VALIDATION.run(TinyModel())["error"]
    assert VALIDATION.run(model) == result.metrics
    losses = [row["cross_entropy"] for row in rows(tmp_path) if "cross_entropy" in row]
    assert losses[-1] < 0.5 * losses[0]


def test_the_logged_loss_is_per_token_that_counts(tmp_path: Path):
    model = TinyModel()
    model.dropout.p = 0.0
    batches = [TinyBatches().batch(0, index) for index in range(3)]
    expected = torch.tensor(0.0)
    for batch in batches:
        logits = model(**batch.inputs).logits.detach()
        expected += nn.functional.cross_entropy(
            logits.flatten(0, 1), batch.labels.flatten(), reduction="sum", label_smoothing=0.1
        )
    tokens = sum(batch.total_weight for batch in batches)
    assert tokens < sum(batch.labels.numel() for batch in batches)
    run(tmp_path, model, learning_rate=0.0, log_every=3, steps=3)
    first = rows(tmp_path)[0]
    assert first["step"] == 3
    assert first["epoch"] == 1
    assert first["tokens"] == tokens
    assert first["loss"] == pytest.approx(float(expected) / tokens, rel=1e-6)
    assert first.keys() == {
        *("step", "epoch", "seconds", "tokens", "loss", "cross_entropy", "accuracy"),
        *("tokens_per_second", "learning_rate", "gradient_norm"),
    }


def test_epochs_end_it_and_an_incomplete_group_still_counts(tmp_path: Path):
    _, result = run(tmp_path, steps=None, epochs=2, accumulate=4)
    assert result.step == 6
    assert rows(tmp_path)[-1]["epoch"] == 2
    trained_on = sum(TinyBatches().batch(epoch, index).total_weight for epoch in range(2) for index in range(11))
    assert [row["tokens"] for row in rows(tmp_path) if "tokens" in row][-1] == trained_on


def test_an_epoch_ends_where_it_has_no_more(tmp_path: Path):
    """Also the last one, which has more batches than the one before."""

    class Growing(TinyBatches):
        def epoch(self, number: int, skip: int = 0) -> Iterator[Batch]:
            return TinyBatches(4 + 3 * number).epoch(number, skip)

    _, result = run(tmp_path, batches=Growing(), steps=None, epochs=3)
    assert result.step == 4 + 7 + 10
    assert rows(tmp_path)[-1]["epoch"] == 3


def test_the_rate_falls_from_the_first_epoch_on_where_its_length_is_known(tmp_path: Path):
    class Counted(TinyBatches):
        def __len__(self) -> int:
            return self.length

    def rates(batches: TinyBatches, folder: Path) -> list[float]:
        settings = Training(epochs=2, warmup=1, schedule="linear", learning_rate=1.0, log_every=1, device="cpu")
        train(TinyModel(), batches, CrossEntropy(), settings, folder, console=Console(file=StringIO()))
        return [row["learning_rate"] for row in rows(folder) if "learning_rate" in row]

    falling = [1 - step / 22 for step in range(22)]
    assert rates(Counted(), tmp_path / "counted") == pytest.approx(falling)
    assert rates(TinyBatches(), tmp_path / "not") == pytest.approx([1.0] * 12 + falling[12:])


def test_minutes_end_it(tmp_path: Path):
    _, result = run(tmp_path, steps=None, minutes=0.2 / 60)
    assert rows(tmp_path)[-1]["seconds"] >= 0.2
    assert result.step > 1


def test_patience_ends_it_and_the_best_is_kept(tmp_path: Path):
    result = trained(tmp_path, scripted(1.0, 3.0, 2.0, 3.0, 2.5, 2.9, 3.0), patience=3, average=2)
    # validations at steps 5, 10, ..., 25, then of the average of the last two and, again, of the best
    assert (result.step, result.kept, result.metrics) == (25, "step 10", {"score": 3.0})
    assert rows(tmp_path)[-1]["final"] == {
        "kept": "step 10",
        "compared": {"step 10": {"score": 3.0}, "the average of steps 20, 25": {"score": 2.9}},
    }


def test_lower_can_be_better_and_nan_never_is(tmp_path: Path):
    nan = float("nan")
    values = (nan, 3.0, 2.0, nan, 2.5, 2.1, 2.0)
    result = trained(tmp_path, scripted(*values, higher_is_better=False), steps=25, average=3)
    assert (result.kept, result.metrics) == ("step 15", {"score": 2.0})


def test_the_average_is_kept_where_it_is_better(tmp_path: Path):
    model = TinyModel()
    settings = Training(steps=15, save_every=5, validate_every=5, warmup=1, average=2, device="cpu")
    seen = []

    def weights(model: nn.Module) -> dict[str, float]:
        seen.append(model.hidden.weight.detach().clone())
        return {"score": (1.0, 2.0, 3.0, 4.0, 3.0)[len(seen) - 1]}

    console = Console(file=StringIO())
    validation = Validation(weights, "score")
    result = train(model, TinyBatches(), CrossEntropy(), settings, tmp_path, validation, console=console)
    assert (result.kept, result.metrics) == ("the average of steps 10, 15", {"score": 4.0})
    torch.testing.assert_close(model.hidden.weight.detach(), (seen[1] + seen[2]) / 2)


def test_a_step_that_was_lucky_does_not_win_in_the_end(tmp_path: Path):
    luck = scripted(1.0, 9.0, 5.0)
    thorough = iter([5.5, 5.4])
    validation = replace(luck, thorough=lambda model: {"score": next(thorough)})
    result = trained(tmp_path, validation, steps=15, average=2)
    assert (result.kept, result.metrics) == ("the average of steps 10, 15", {"score": 5.5})
    assert rows(tmp_path)[-1]["final"]["compared"]["step 10"] == {"score": 5.4}


def test_a_number_beats_what_is_none(tmp_path: Path):
    result = trained(tmp_path, scripted(1.0, 2.0, 1.5, float("nan"), 2.0), steps=15, average=2)
    assert (result.kept, result.metrics) == ("step 10", {"score": 2.0})


def test_without_validation_the_average_is_kept(tmp_path: Path):
    result = trained(tmp_path, None, steps=12, average=3)
    assert (result.kept, result.metrics) == ("the average of steps 5, 10, 12", {})
    assert trained(tmp_path / "one", None, steps=12, average=1).kept == "step 12"


def test_validation_does_not_change_training(tmp_path: Path):
    def careless(model: nn.Module) -> dict[str, float]:
        assert not model.training
        assert not torch.is_grad_enabled()
        torch.rand(7)
        return {"score": 1.0}

    one = trained(tmp_path / "one", Validation(careless, "score"), steps=10, average=1)
    assert one.kept == "step 5"
    trained(tmp_path / "two", None, steps=10, average=1)
    losses = [[row["loss"] for row in rows(tmp_path / name) if "loss" in row] for name in ("one", "two")]
    assert losses[0] == losses[1]


def test_where_no_validation_gave_a_number_the_last_weights_are_kept(tmp_path: Path):
    result = trained(tmp_path, scripted(*[float("nan")] * 4), steps=12, average=1)
    assert result.kept == "step 12"


def test_the_last_step_is_validated_too(tmp_path: Path):
    result = trained(tmp_path, scripted(1.0, 2.0, 3.0, 3.0), steps=12, average=1)
    assert (result.kept, result.metrics) == ("step 12", {"score": 3.0})
    assert [row["step"] for row in rows(tmp_path) if "validation" in row] == [5, 10, 12]


def test_a_model_in_eval_mode_is_trained_with_dropout_all_the_same(tmp_path: Path):
    one, _ = run(tmp_path / "one", TinyModel().eval(), steps=3)
    two, _ = run(tmp_path / "two", steps=3)
    assert torch.equal(one.hidden.weight, two.hidden.weight)


def test_an_unknown_metric_is_named(tmp_path: Path):
    with pytest.raises(UserError, match=r"unknown metric 'eror'; did you mean error\?"):
        trained(tmp_path, Validation(measure, "eror"), steps=5)


def test_no_data(tmp_path: Path):
    with pytest.raises(UserError, match="there is nothing to train on: an epoch has no batch"):
        run(tmp_path, batches=TinyBatches(0))


def test_a_non_finite_loss_leaves_the_last_checkpoint(tmp_path: Path):
    class Poisoned(TinyBatches):
        def epoch(self, number: int, skip: int = 0) -> Iterator[Batch]:
            for batch in super().epoch(number, skip):
                if batch.source == "batch 5 of epoch 1":
                    batch.inputs["poison"] = torch.tensor(float("nan"))
                yield batch

    class Model(TinyModel):
        def forward(self, tokens: torch.Tensor, poison: torch.Tensor | None = None) -> Output:
            output = super().forward(tokens)
            return output if poison is None else Output(output.logits * poison)

    with pytest.raises(
        UserError,
        match=r"step 17 stopped: the loss is nan on batch 5 of epoch 1; the weights were not changed; try a "
        r"learning_rate below 0.02, a longer warmup: the same command with it goes on from step 14, or begins again w",
    ):
        run(tmp_path, Model(), Poisoned())
    assert rows(tmp_path)[-1]["step"] <= 16
    assert run(tmp_path, Model())[1].step == 60


def test_do_not_resume(tmp_path: Path):
    run(tmp_path, steps=14)
    settings = Training(steps=14, device="cpu")
    with pytest.raises(UserError, match="has a training at step 14: resume it, or choose another folder"):
        train(TinyModel(), TinyBatches(), CrossEntropy(), settings, tmp_path, resume=False)


def test_a_folder_that_cannot_be_made(tmp_path: Path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(UserError, match=r"cannot write in .*file/run: .*file is not a folder"):
        run(tmp_path / "file" / "run")


def test_two_trainings_never_share_a_folder(tmp_path: Path):
    """The second is refused while the first one runs, and let in afterwards."""

    def measure(model: nn.Module) -> dict[str, float]:
        with pytest.raises(UserError, match=r"another training is running in .*: wait for its end, or choose another"):
            run(tmp_path)
        return {"score": 0.0}

    trained(tmp_path, Validation(measure, "score"), steps=5)
    assert trained(tmp_path, None, steps=7).step == 7


class Attending(nn.Module):
    """A tiny model that attends, with dropout."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.embedding = nn.Embedding(VOCABULARY, 8)
        self.block = nn.TransformerEncoderLayer(8, 2, 8, dropout=0.2, batch_first=True)
        self.head = nn.Linear(8, VOCABULARY)

    def forward(self, tokens: torch.Tensor) -> Output:
        return Output(self.head(self.block(self.embedding(tokens))))


def test_attention_is_watched_and_nothing_else_changes(tmp_path: Path) -> None:
    weights = []
    for watch in (False, True):
        chosen = Training(device="cpu", warmup=3, steps=10, validate_every=5, save_every=5, watch_attention=watch)
        model, folder = Attending(), tmp_path / str(watch)
        train(model, TinyBatches(), CrossEntropy(), chosen, folder, VALIDATION, console=Console(file=StringIO()))
        weights.append(model.state_dict())
        seen = [row["attention"] for row in rows(folder) if "attention" in row]
        assert len(seen) == (2 if watch else 0)
    for name, weight in weights[0].items():
        assert torch.equal(weight, weights[1][name])
    (measures,) = seen[0].values()
    assert all(0 <= share <= 1 for share in measures["sink_share"])
    assert all(0 < entropy <= math.log(5) for entropy in measures["entropy"])
    assert len(measures["largest_score"]) == 2
