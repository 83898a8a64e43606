"""XLNet against transformers: the same logits and gradients from the same weights, both ways."""

import pytest
import torch
import transformers
from torch import Tensor, nn

import foveate
from foveate.interop.keys import xlnet

EXACT = {"atol": 2e-5, "rtol": 0}
"""In single precision, because their two streams take no other."""

LENGTHS = torch.tensor([11, 7, 8])
REAL = torch.arange(11) < LENGTHS[:, None]
RANKS = torch.tensor(
    [[0, 3, 0, 0, 1, 2, 0, 4, 0, 0, 0], [2, 0, 1, 0, 3, 0, 0] + [0] * 4, [0, 0, 0, 1, 0, 2, 3, 0, 0, 0, 0]]
)
PLACES = torch.tensor([[1, 4, 7], [0, 2, 4], [6, 5, 3]])
SEGMENTS = torch.tensor([[0] * 6 + [1] * 5, [0] * 3 + [1] * 8, [1] * 4 + [0] * 7])


@pytest.fixture(scope="module")
def pair() -> tuple[nn.Module, nn.Module]:
    """A model of ours and one of theirs with the same weights, none of them at its initial value."""
    ours = foveate.create("xlnet-base", vocabulary=17, width=20, heads=5, feedforward=28, layers=3).eval()
    config = transformers.XLNetConfig(vocab_size=17, d_model=20, n_head=5, d_inner=28, n_layer=3)
    theirs = transformers.XLNetLMHeadModel(config).eval()
    torch.manual_seed(5)
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.uniform_(-0.5, 0.5)
    theirs.load_state_dict(xlnet.key_map(ours.config).to_public(ours.state_dict()))
    return ours, theirs


def compare(pair: tuple[nn.Module, nn.Module], ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> None:
    tokens = torch.randint(17, (3, 11), generator=torch.Generator().manual_seed(3))
    found, expected = pair[0](tokens, **ours).logits, pair[1](tokens, **theirs).logits
    if expected.shape[1] == 11:  # of padding they compute something else
        found, expected = found[REAL], expected[REAL]
    torch.testing.assert_close(found, expected, **EXACT)
    weights = torch.randn_like(expected) / 8
    for model, logits in zip(pair, (found, expected), strict=True):
        model.zero_grad()
        (logits * weights).sum().backward()
    gradients = {name: _gradient(parameter) for name, parameter in pair[0].named_parameters(remove_duplicate=False)}
    others = dict(pair[1].named_parameters(remove_duplicate=False))
    for name, value in xlnet.key_map(pair[0].config).to_public(gradients).items():
        torch.testing.assert_close(value, _gradient(others[name]), **EXACT, msg=name)


def _gradient(parameter: Tensor) -> Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


@pytest.mark.parametrize("segments", [False, True])
def test_content_stream(pair: tuple[nn.Module, nn.Module], segments: bool) -> None:
    ours, theirs = {"lengths": LENGTHS}, {"attention_mask": REAL.float()}
    if segments:
        ours["segments"] = theirs["token_type_ids"] = SEGMENTS
    compare(pair, ours, theirs)


@pytest.mark.parametrize("segments", [False, True])
def test_both_streams(pair: tuple[nn.Module, nn.Module], segments: bool) -> None:
    """Three places are predicted in the order of their ranks. Theirs gets the mask T x T, and the places one-hot."""
    hidden = (RANKS[:, None, :] >= RANKS[:, :, None]) & (RANKS[:, None, :] > 0)
    theirs = {
        "attention_mask": REAL.float(),
        "perm_mask": hidden.float(),
        "target_mapping": nn.functional.one_hot(PLACES, 11).float(),
    }
    ours = {"lengths": LENGTHS, "ranks": RANKS, "places": PLACES}
    if segments:
        ours["segments"] = theirs["token_type_ids"] = SEGMENTS
    compare(pair, ours, theirs)


def test_the_tensors_come_back_as_they_were(pair: tuple[nn.Module, nn.Module]) -> None:
    ours, theirs = pair
    back = xlnet.key_map(ours.config).to_ours(theirs.state_dict())
    assert back.keys() == ours.state_dict().keys()
    for name, value in ours.state_dict().items():
        assert torch.equal(back[name], value), name


@pytest.mark.parametrize(("name", "count"), [("xlnet-base", 116_750_336), ("xlnet-large", 360_300_800)])
def test_sizes_of_the_paper(name: str, count: int) -> None:
    model = foveate.create(name, device="meta", vocabulary=32_000)
    assert sum(parameter.numel() for parameter in model.parameters()) == count
