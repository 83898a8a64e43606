"""An answer is never silently empty, and a look changes nothing for a model in which it can see nothing."""

import copy
import math
import pickle
import threading

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foveate import look
from foveate.attention import attend
from foveate.errors import UserError

X = torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(1))


class Fused(nn.Module):
    """Attends by torch's function, in itself and by a method of another name."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(12, 12)

    def encode(self, x: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(self.inner(x), x, x)

    def forward(self, x: Tensor) -> Tensor:
        return self.encode(x)


class Own(nn.Module):
    """Attends by foveate's function."""

    def forward(self, x: Tensor) -> Tensor:
        return attend(x, x, x)


class Stack(nn.Module):
    """Two layers, the second with the attention of the first."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Sequential(nn.Linear(12, 12), Fused()), nn.Sequential(nn.Linear(12, 12))
        self.last.append(self.first[1])

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.first(x))


@pytest.mark.parametrize("kind", [Fused, Own])
def test_what_attends_outside_of_a_call_of_the_model_is_told(kind: type[nn.Module]) -> None:
    model, another = kind(), kind()
    told = "all attention was outside of a call of the model: call the model itself"
    for call in (model.forward, another):
        with pytest.raises(UserError, match=told), look(model):
            call(X)
    with look(model) as sight:  # beside what is seen, other models may do what they like
        another(X)
        model(X)
    assert sight.sites == [""]


def test_another_method_of_the_model_is_no_call_of_it() -> None:
    with pytest.raises(UserError, match="outside of a call of the model"), look(model := Fused()):
        model.encode(X)


def test_paths_that_nothing_has_which_attends() -> None:
    model = Stack()
    told = r"no module that attends has a path like last\.\* or \*cross\*; modules that attend: first\.1$"
    with pytest.raises(UserError, match=told), look(model, sites=["last.*", "*cross*"]):
        model(X)
    with look(model, sites="last.*") as sight:  # nothing ran
        pass
    assert sight.sites == []


def test_what_was_exported_is_seen_where_it_attends() -> None:
    model = Fused().eval()
    exported = torch.export.export(model, (X,)).module()
    with look(model) as of_model:
        model(X)
    with look(exported) as of_exported:
        exported(X)
    assert of_exported.sites == [""]
    assert torch.allclose(of_exported[""].weights(), of_model[""].weights(), atol=1e-6)


def written_out(x: Tensor, dim: int) -> Tensor:
    exponentials = (x - x.amax(dim, keepdim=True)).exp()
    return exponentials / exponentials.sum(dim, keepdim=True)


def in_powers_of_two(x: Tensor, dim: int) -> Tensor:
    powers = torch.exp2((x - x.amax(dim, keepdim=True)) / math.log(2))
    return powers / powers.sum(dim, keepdim=True)


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")  # of torch, about itself
@pytest.mark.parametrize("decomposed", [False, True])
def test_a_softmax_of_its_own_is_seen_in_what_was_exported(decomposed: bool) -> None:
    class Attention(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return (x @ x.mT).softmax(-1) @ x

    program = torch.export.export(Attention(), (X,))
    model = (program.run_decompositions() if decomposed else program).module()
    with look(model) as sight:
        model(X)
    torch.testing.assert_close(sight[""].weights(), (X @ X.mT).softmax(-1)[:, None], atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    "softmax",
    [
        torch.special.softmax,
        lambda x, dim: F.softmin(-x, dim),
        lambda x, dim: F.log_softmax(x, dim).exp(),
        lambda x, dim: (x - x.logsumexp(dim, keepdim=True)).exp(),
        lambda x, dim: F.normalize((x - x.amax(dim, keepdim=True)).exp(), p=1, dim=dim),
        lambda x, dim: torch.ops.aten._softmax(x, dim, False),
        written_out,
        in_powers_of_two,
    ],
)
def test_every_softmax_of_torch_is_seen(softmax) -> None:
    class Attention(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return softmax(x @ x.mT, -1) @ x

    with look(model := nn.Sequential(Attention())) as sight:
        model(X)
    torch.testing.assert_close(sight["0"].weights(), (X @ X.mT).softmax(-1)[:, None], atol=1e-6, rtol=0)


@pytest.mark.parametrize("model", [Fused(), nn.MultiheadAttention(12, 2, batch_first=True)])
def test_a_model_under_vmap_runs_on(model: nn.Module) -> None:
    """With a UserError in the end, not one of torch's within."""

    def run(x: Tensor) -> Tensor:
        return model(x, x, x)[0] if isinstance(model, nn.MultiheadAttention) else model(x)

    expected, found = torch.vmap(run)(X), []
    with pytest.raises(UserError, match="attends under vmap or on tensors without values"), look(model):
        found.append(torch.vmap(run)(X))
    assert torch.equal(found[0], expected)
    with look(model) as sight:
        torch.func.functional_call(
            model, dict(model.named_parameters()), (X,) * (1 + 2 * (not hasattr(model, "inner")))
        )
    assert len(sight.sites) == 1


def test_a_model_without_numbers_runs_on() -> None:
    model = Fused().to("meta")
    with pytest.raises(UserError, match="call the model itself, on tensors with values"), look(model):
        assert model(X.to("meta")).shape == X.shape


def test_a_hook_of_others_that_fails_leaves_the_paths_right() -> None:
    class Tries(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fails, self.works = Fused(), Fused()

        def forward(self, x: Tensor) -> Tensor:
            with pytest.raises(ValueError, match="no"):
                self.fails(x)
            return self.works(x)

    def refuse(*_: object) -> None:
        raise ValueError("no")

    model = Tries()
    model.fails.register_forward_pre_hook(refuse)
    with look(model) as sight:
        model(X)
    assert sight.sites == ["works"]


def test_copies_made_during_a_look_know_nothing_of_it() -> None:
    model = nn.Sequential(Fused())
    with look(model) as sight:
        model(X)
        copies = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
        for each in copies:
            assert torch.equal(each(X), model(X))
    assert sight.sites == ["0", "0#2", "0#3"]
    hooks = [hook for each in copies for part in each.modules() for hook in part._forward_pre_hooks.values()]
    assert not any(hasattr(hook, "_recorder") for hook in hooks)


def test_another_thread_is_told_that_a_look_is_open() -> None:
    model, told = Fused(), []

    def other() -> None:
        with pytest.raises(UserError, match="another look is open, here or in another thread") as caught, look(Fused()):
            pass
        told.append(caught)

    with look(model) as sight:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        model(X)
    assert (len(told), sight.sites) == (1, [""])


def test_places_are_chosen_by_numbers_or_booleans() -> None:
    model = Fused()
    with look(model) as sight:
        model(torch.randn(3, 5, 12))
    site = sight[""]
    whole = site.weights()
    chosen = torch.tensor([True, False, True, False, False])
    for booleans in (chosen, chosen.tolist(), chosen.numpy()):
        assert torch.equal(site.weights(queries=booleans), whole[:, :, [0, 2]])
    assert torch.equal(site.weights(keys=~chosen), whole[..., [1, 3, 4]])
    assert torch.equal(site.weights(queries=-1, heads=0), whole[:, :1, 4:])
    assert torch.equal(site.weights(keys=torch.tensor([3, -5])), whole[..., [3, 0]])
    for wrong, told in [
        ([True, False], "booleans choose among 5 positions by 5 of them, not by 2"),
        ([0, True, 1, 2, 3], "booleans choose among 5 positions"),
        ([5], "there is no position 5 among 5: they are 0 to 4"),
        (-6, "there is no position -6 among 5"),
    ]:
        with pytest.raises(UserError, match=told):
            site.weights(queries=wrong)
    for call in (lambda: site.top(0), lambda: site.pooled(-1, 2), lambda: site.pooled(2, 0)):
        with pytest.raises(UserError, match="must be at least 1"):
            call()
    with pytest.raises(UserError, match="there is no example 3 among 3: they count from 0"):
        sight.figure("", example=3)
