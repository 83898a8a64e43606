"""What attends unseen is named with what to do, and nothing else is."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foveate import look
from foveate.errors import UserError

B, T, C = 2, 5, 12


class Own(nn.Module):
    """Attends by a softmax of its own, in a product that adds something."""

    def __init__(self) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        return torch.baddbmm(x, self.dropout((x @ x.mT).softmax(-1)), x)


class OuterAttention(nn.Module):
    """Has a part that attends by a softmax of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.core = Own()

    def forward(self, x: Tensor) -> Tensor:
        return self.core(x)


class Balanced(nn.Module):
    """Divides its weights by their sum once more."""

    def forward(self, x: Tensor) -> Tensor:
        weights = (x @ x.mT).softmax(-1) + 1e-6
        return (weights / weights.sum(-2, keepdim=True)) @ x


class Router(nn.Module):
    """A mixture of experts: chooses some by a softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.experts = nn.Linear(C, 4), nn.ModuleList(nn.Linear(C, C) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        shares, chosen = self.gate(x).softmax(-1).topk(2, -1)
        answers = torch.stack([expert(x) for expert in self.experts], -2)
        answers = answers.gather(-2, chosen[..., None].expand(*chosen.shape, C))
        return (shares.unsqueeze(-2) @ answers).squeeze(-2)


class Codebook(nn.Module):
    """Takes a mean of learned vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.classify, self.vectors = nn.Linear(C, 7), nn.Parameter(torch.randn(7, C))

    def forward(self, x: Tensor) -> Tensor:
        return self.classify(x).softmax(-1) @ self.vectors


class LinearAttention(nn.Module):
    """Has no weights."""

    def forward(self, x: Tensor) -> Tensor:
        keys = F.elu(x) + 1
        return keys @ (keys.mT @ x) / (keys @ keys.sum(-2)[..., None])


class Flattened(nn.Flatten):
    pass


class Fused(nn.Module):
    """Attends by torch's function, or by its own softmax."""

    def __init__(self, fused: bool) -> None:
        super().__init__()
        self.fused_attn = fused

    def forward(self, x: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(x, x, x) if self.fused_attn else Own.forward(self, x)

    def dropout(self, weights: Tensor) -> Tensor:
        return weights


def error(model: nn.Module, **options: list[str]) -> str:
    with pytest.raises(UserError) as raised, look(model, **options):
        model(torch.randn(B, T, C))
    return str(raised.value)


def sites(model: nn.Module, **options: list[str]) -> list[str]:
    with look(model, **options) as sight:
        model(torch.randn(B, T, C))
    return sight.sites


ADVICE = (
    "attend by torch's scaled_dot_product_attention or foveate's attend, or look(model, sites=[...]) at other modules"
)


def test_a_softmax_of_its_own() -> None:
    """Also where something else was seen."""
    expected = f"1 (Own) attends by a softmax of its own in a way that cannot be seen; {ADVICE}"
    assert error(nn.Sequential(nn.Linear(C, C), Own())) == expected
    assert error(nn.Sequential(Fused(True), Own())) == expected


def test_many_are_not_all_named() -> None:
    assert error(nn.Sequential(*(Own() for _ in range(5)))).startswith(
        "0 (Own), 1 (Own), 2 (Own) (and 2 more like it) attends"
    )


def test_other_modules_can_be_looked_at() -> None:
    assert sites(nn.Sequential(Own(), Fused(True)), sites=["1"]) == ["1"]


def test_a_part_of_what_is_called_attention() -> None:
    """The whole is named, also where only the part is looked at."""
    for wanted in ("0.core", "0", "0*"):
        told = error(nn.Sequential(OuterAttention()), sites=[wanted])
        assert told.startswith("0 (OuterAttention) attends by a softmax of its own")
    assert sites(nn.Sequential(OuterAttention(), Fused(True)), sites=["1"]) == ["1"]


def test_what_is_made_of_a_softmax_counts_only_if_nothing_else_does() -> None:
    told = "0 (Balanced) multiplies something by a changed softmax, which may be attention"
    assert error(nn.Sequential(Balanced())) == f"{told} and cannot be seen; {ADVICE}"
    assert sites(nn.Sequential(Balanced(), Fused(True))) == ["1"]


def test_a_name_alone_counts_only_if_nothing_else_does() -> None:
    assert error(nn.Sequential(LinearAttention())) == (
        "0 (LinearAttention) is called attention, but made no attention call that can be seen; "
        "if it has no weights, as linear attention has none, there is nothing to see"
    )
    assert sites(nn.Sequential(LinearAttention(), Fused(True))) == ["1"]


def test_no_false_alarm() -> None:
    """Routers, classifiers and codebooks attend to nothing; such a model has no sites, and no error."""
    assert sites(nn.Sequential(Router(), Codebook(), nn.Linear(C, 7), nn.Softmax(-1), Flattened())) == []
    assert sites(nn.Sequential(nn.TransformerEncoderLayer(C, 3, 7, batch_first=True), Router(), Codebook())) == [
        "0.self_attn"
    ]
    assert sites(nn.Sequential(nn.Linear(C, C), nn.ReLU(), nn.LSTM(C, C))) == []


def test_a_switch_that_a_module_has() -> None:
    model = nn.Sequential(Fused(False), Fused(False))
    assert error(model).endswith(
        "; set fused_attn = True on these modules, or look(model, sites=[...]) at other modules"
    )
    for module in model:
        module.fused_attn = True
    assert sites(model) == ["0", "1"]


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("made", ["script", "trace", "script of torch's layer"])
def test_script(made: str) -> None:
    """Its code tells that it attends."""
    part = nn.TransformerEncoderLayer(C, 2, 7, batch_first=True) if made.endswith("layer") else Own().eval()
    scripted = torch.jit.trace(part, torch.randn(B, T, C)) if made == "trace" else torch.jit.script(part)
    advice = "look at the model that it was made from, or "
    message = f"({type(part).__name__}) is TorchScript, which cannot be seen into; {advice}"
    assert error(scripted).startswith(f"the model {message}")
    assert error(nn.Sequential(nn.Linear(C, C), scripted)).startswith(f"1 {message}")
    assert sites(nn.Sequential(Fused(True), scripted), sites=["0"]) == ["0"]


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_script_that_does_not_attend() -> None:
    scripted = torch.jit.script(nn.Sequential(nn.Linear(C, C), nn.Softmax(-1)))
    assert sites(nn.Sequential(Fused(True), scripted)) == ["0"]
