"""One step of training, and the optimizer's choice of what decays."""

import subprocess
import sys
from copy import deepcopy
from typing import Any

import pytest
import torch
from tiny_training import TinyBatches, TinyModel
from torch import nn

import foveate
from foveate.contracts import IGNORE, Batch, Output, label_batch
from foveate.errors import UserError
from foveate.training import CrossEntropy, Training
from foveate.training.hardware import autocast_type, choose_device
from foveate.training.loss_scale import LossScale
from foveate.training.optimizers import optimizer as make_optimizer
from foveate.training.update import Updater

CPU = torch.device("cpu")


def stepped(group: list[Batch], **settings: object) -> tuple[nn.Module, float]:
    """A tiny model after one step without dropout, and the norm of its gradient."""
    model = TinyModel()
    model.dropout.p = 0.0
    update = Updater(model, CrossEntropy(0.1), Training(device="cpu", **settings))(group, 0.01, 1)
    return model, update.gradient_norm


def test_accumulation_equals_one_large_batch():
    parts = [TinyBatches().batch(0, index) for index in range(3)]
    whole = label_batch(
        {"tokens": torch.cat([part.inputs["tokens"] for part in parts])},
        torch.cat([part.labels for part in parts]),
        "whole",
    )
    assert len({part.total_weight for part in parts}) > 1, "equal parts would hide a mean of means"
    (apart, norm_apart), (together, norm_together) = stepped(parts), stepped([whole])
    assert norm_apart == pytest.approx(norm_together, rel=1e-6)
    for one, other in zip(apart.parameters(), together.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)


def test_padding_changes_nothing():
    batch = TinyBatches().batch(0, 1)
    width = batch.labels.shape[1]
    tokens, labels = torch.zeros(3, 2 * width, dtype=torch.long), torch.full((3, 2 * width), IGNORE)
    tokens[:, :width], labels[:, :width] = batch.inputs["tokens"], batch.labels
    padded = label_batch({"tokens": tokens}, labels, "padded")
    assert padded.total_weight == batch.total_weight
    updates = []
    for each in (batch, padded):
        model = TinyModel().eval()
        updates.append(Updater(model, CrossEntropy(0.1), Training(device="cpu"))([each], 0.01, 1))
    assert updates[0].weight == updates[1].weight == batch.total_weight
    assert updates[0].sums["loss"] == pytest.approx(updates[1].sums["loss"], rel=1e-6)
    assert updates[0].gradient_norm == pytest.approx(updates[1].gradient_norm, rel=1e-6)


@pytest.mark.parametrize("preset", ["gpt-tiny", "transformer-tiny"])
def test_blocks_that_are_computed_again_keep_less_and_change_nothing(preset: str) -> None:
    sizes = {"width": 16, "heads": 2, "feedforward": 24, "dropout": 0.3}
    words = {"vocabulary": 11} if preset == "gpt-tiny" else {"src_vocab": 11, "tgt_vocab": 11}
    tokens = torch.randint(11, (3, 13), generator=torch.Generator().manual_seed(1))
    inputs = {"tokens": tokens}
    if preset != "gpt-tiny":
        inputs = {"source": tokens, "source_lengths": torch.tensor([13, 7, 5]), "target": tokens}
    norms, kept = [], []
    for recompute in (False, True):
        torch.manual_seed(3)
        model: Any = foveate.create(preset, **sizes, **words).train()
        update = Updater(model, CrossEntropy(0.1), Training(device="cpu", precision="float32", recompute=recompute))
        sizes_kept: list[int] = []

        def keep(tensor: torch.Tensor, sizes_kept: list[int] = sizes_kept) -> torch.Tensor:
            sizes_kept.append(tensor.numel())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            model(**inputs)
        kept.append(sum(sizes_kept))
        torch.manual_seed(5)
        norms.append(update([label_batch(inputs, tokens, "words")], 0.01, 1).gradient_norm)
    assert norms[0] == norms[1]
    assert kept[1] < kept[0] / 3
    copy = deepcopy(model).eval()
    with torch.no_grad():
        for parameter in copy.parameters():
            parameter.zero_()
        assert float(copy(**inputs).logits.abs().max()) == 0
    with pytest.raises(UserError, match="no blocks that could be computed again: leave recompute out"):
        Updater(TinyModel(), CrossEntropy(0.1), Training(device="cpu", recompute=True))


def test_a_compiled_training_has_the_same_losses() -> None:
    """Traced as a whole, once for all lengths. In a process of its own, since checked shapes cannot be compiled."""
    code = """if True:
        import foveate, torch
        from functools import partial
        from foveate.contracts import label_batch
        from foveate.training import CrossEntropy, Training, compilation
        from foveate.training.update import Updater
        torch.compile = partial(torch.compile, backend="eager", fullgraph=True)
        compilation.compiles = lambda kind: True
        torch._dynamo.config.error_on_recompile = True
        losses = []
        for chosen in (False, True):
            torch.manual_seed(3)
            sizes = dict(layers=1, width=16, heads=2, feedforward=24, dropout=0.0)
            model = foveate.create("gpt-tiny", vocabulary=11, **sizes).train()
            update = Updater(model, CrossEntropy(0.1), Training(device="cpu", precision="float32", compile=chosen))
            words = [torch.randint(11, size) for size in ((3, 33), (5, 47))]
            batches = [label_batch({"tokens": tokens}, tokens, "words") for tokens in words]
            losses.append([update([batch], 0.01, 1).sums["loss"] for batch in batches])
        torch.testing.assert_close(*map(torch.tensor, losses), atol=0, rtol=1e-5)
    """
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def test_a_training_without_a_compiler_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foveate.training.compilation.compiles", lambda kind: False)
    with pytest.raises(UserError, match=r"no compiler for the device cpu: install g\+\+.*, or leave compile out"):
        Updater(TinyModel(), CrossEntropy(), Training(device="cpu", compile=True))


def test_clipping_by_hand():
    class Line(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(2))

        def forward(self) -> Output:
            return Output(self.weight.expand(1, 1, 2) * 40)

    model = Line()
    updater = Updater(model, CrossEntropy(), Training(device="cpu", clip=1.0))
    seen = []
    updater.optimizer.register_step_pre_hook(lambda *_: seen.append(model.weight.grad.clone()))
    update = updater([label_batch({}, torch.zeros(1, 1, dtype=torch.long), "one")], 0.01, 1)
    # the gradient of -log softmax is (-1/2, 1/2) * 40
    assert update.gradient_norm == pytest.approx(20 * 2**0.5)
    torch.testing.assert_close(seen[0], torch.tensor([-(0.5**0.5), 0.5**0.5]), rtol=1e-5, atol=1e-6)


def test_one_step_of_adamw_by_hand_decays_matrices_only():
    model = nn.Linear(2, 3)
    nn.init.ones_(model.weight)
    nn.init.ones_(model.bias)
    optimizer = make_optimizer(model, Training(weight_decay=0.5, learning_rate=0.1), CPU)
    (model(torch.tensor([1.0, 2.0])).sum()).backward()
    optimizer.step()
    # a first step of Adam moves each weight by the learning rate against its gradient's sign
    torch.testing.assert_close(model.weight.detach(), torch.full((3, 2), 1 - 0.1 * 0.5 - 0.1))
    torch.testing.assert_close(model.bias.detach(), torch.full((3,), 1 - 0.1))
    assert optimizer.param_groups[0]["fused"]


@pytest.mark.parametrize("poison", ["loss", "gradient"])
def test_a_non_finite_step_changes_nothing_and_names_the_batch(poison: str):
    model = TinyModel()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    batch = TinyBatches().batch(0, 4)
    if poison == "loss":
        model.forward = lambda tokens: Output(TinyModel.forward(model, tokens).logits / 0.0 * 0.0)
        message = r"^step 8 stopped: the loss is nan on batch 4 of epoch 0; the weights were not changed$"
    else:
        model.hidden.weight.register_hook(lambda gradient: gradient * torch.inf)
        message = r"step 8 stopped: the norm of the gradient is (nan|inf) on batch 4 of epoch 0; the weights were not"
    with pytest.raises(UserError, match=message):
        Updater(model, CrossEntropy(), Training(device="cpu"))([batch], 0.01, 8)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])


def test_precision(monkeypatch: pytest.MonkeyPatch):
    narrow, wide = nn.Linear(61, 61), nn.Linear(67, 67)
    monkeypatch.setattr("foveate.training.hardware.bfloat16_is_fast", lambda: True)
    assert autocast_type("bfloat16", narrow, CPU) is torch.bfloat16
    assert autocast_type("float16", narrow, CPU) is torch.float16
    assert autocast_type("float32", wide, CPU) is None
    assert autocast_type("auto", narrow, CPU) is None
    assert autocast_type("auto", wide, CPU) is torch.bfloat16
    monkeypatch.setattr("foveate.training.hardware.bfloat16_is_fast", lambda: False)
    assert autocast_type("auto", wide, CPU) is None


def test_the_loss_scale_is_that_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foveate.training.loss_scale.DOUBLED_AFTER", 3)
    scale, weight = LossScale(), nn.Parameter(torch.ones(2))
    theirs, optimizer = torch.amp.GradScaler("cpu", growth_interval=3), torch.optim.SGD([weight], 0.1)
    for step in (1.0, torch.inf, 1.0, 1.0, 1.0, 1.0, torch.nan, torch.inf, 1.0, 1.0, 1.0, 1.0):
        theirs.scale(weight.sum())
        weight.grad = torch.full_like(weight, step)
        theirs.step(optimizer)
        theirs.update()
        scale = scale.after(overflow=step != 1.0)
        assert scale.factor == theirs.get_scale()


def test_float16_computes_a_step_again_whose_gradients_overflow() -> None:
    """A factor of 2 ** 40 is above what float16 holds: it is halved until gradients are finite."""
    batch = TinyBatches().batch(0, 1)
    exact, expected = stepped([batch], precision="float32")
    model, before = TinyModel(), TinyModel()
    model.dropout.p = 0.0
    updater = Updater(model, CrossEntropy(0.1), Training(device="cpu", precision="float16"))
    updater.loss_scale = LossScale(2.0**40)
    update = updater([batch], 0.01, 1)
    assert update.gradient_norm == pytest.approx(expected, rel=5e-3)
    assert 1 < updater.loss_scale.factor < 2.0**30
    assert updater.loss_scale.steps == 1
    change, right = (
        torch.cat([(one - other).flatten() for one, other in zip(each.parameters(), before.parameters(), strict=True)])
        for each in (model, exact)
    )
    assert torch.cosine_similarity(change, right, 0) > 0.9  # tiny gradients, whose sign turns, make steps as large
    model.hidden.weight.register_hook(lambda gradient: gradient * torch.inf)
    with pytest.raises(UserError, match=r"the norm of the gradient is (nan|inf)"):
        updater([batch], 0.01, 2)
    assert updater.loss_scale.factor == 1


def test_batch_norms_count_the_examples_of_a_step_that_overflowed_once() -> None:
    batch, counted = TinyBatches().batch(0, 1), []
    for factor in (2.0, 2.0**40):
        model = TinyModel()
        model.dropout.p = 0.0
        model.counts = torch.nn.BatchNorm1d(model.hidden.out_features)
        model.hidden.register_forward_hook(lambda _, __, y, norm=model.counts: norm(y.flatten(0, -2)).view_as(y))
        updater = Updater(model, CrossEntropy(0.1), Training(device="cpu", precision="float16"))
        updater.loss_scale = LossScale(factor)
        updater([batch], 0.01, 1)
        counted.append((updater.loss_scale.factor, [one.clone() for one in model.counts.buffers()]))
    (plain, once), (halved, again) = counted
    assert plain == 2.0
    assert halved < 2.0**40
    for one, other in zip(once, again, strict=True):
        torch.testing.assert_close(one, other)


def test_bfloat16_trains_float32_weights():
    model, _ = stepped([TinyBatches().batch(0, 1)], precision="bfloat16")
    exact, _ = stepped([TinyBatches().batch(0, 1)], precision="float32")
    assert model.hidden.weight.dtype == torch.float32
    assert not torch.equal(model.hidden.weight, exact.hidden.weight)
    assert (model.hidden.weight - exact.hidden.weight).abs().max() <= 0.02


def test_devices():
    assert choose_device("cpu") == CPU
    assert choose_device("auto").type in ("cpu", "cuda")
    for name in ("gpu", "cuda:99"):
        with pytest.raises(UserError, match=f"device '{name}' cannot be used on this machine"):
            choose_device(name)


def test_the_optimizer_is_what_the_settings_say():
    settings = Training(learning_rate=0.011, betas=(0.87, 0.953), epsilon=3e-7, weight_decay=0.17)
    optimizer = make_optimizer(TinyModel(), settings, CPU)
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.17, 0.0]
    for group in optimizer.param_groups:
        assert (group["lr"], group["betas"], group["eps"]) == (0.011, (0.87, 0.953), 3e-7)


def test_the_rate_of_a_step_is_that_of_all_parameters():
    model = TinyModel()
    update = Updater(model, CrossEntropy(0.1), Training(device="cpu", learning_rate=0.02, weight_decay=0.0))
    before = [parameter.detach().clone() for parameter in model.parameters()]
    update([TinyBatches().batch(0, 1)], 0.0, 1)
    assert {group["lr"] for group in update.optimizer.param_groups} == {0.0}
    for parameter, old in zip(model.parameters(), before, strict=True):
        assert torch.equal(parameter, old)
