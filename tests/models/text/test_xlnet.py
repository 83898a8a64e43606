"""XLNet: who sees whom in the order of the ranks, and where it attends."""

import pytest
import torch
from torch import Tensor

import foveate
from foveate.errors import UserError
from foveate.models.text.xlnet import XLNet

RANKS = torch.tensor([[3, 0, 1, 0, 2, 0, 4], [0, 2, 0, 1, 0, 0, 3]])
TOKENS = torch.tensor([[5, 7, 4, 9, 16, 8, 6], [11, 4, 6, 13, 5, 9, 7]])


@pytest.fixture(scope="module")
def model() -> XLNet:
    torch.manual_seed(3)
    model = foveate.create("xlnet-tiny", vocabulary=17, width=12, heads=3, feedforward=19, layers=3).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return model


@pytest.mark.parametrize("place", range(7))
def test_a_token_is_seen_by_those_of_higher_rank_and_never_by_itself(model: XLNet, place: int) -> None:
    with torch.no_grad():
        before = model(TOKENS, ranks=RANKS).logits
        other = TOKENS.clone()
        other[:, place] = 12
        changed = (model(other, ranks=RANKS).logits - before).abs().amax(-1) > 1e-6
    for row in range(2):
        expected = [int(rank) > int(RANKS[row, place]) for rank in RANKS[row]]
        if not RANKS[row, place]:
            expected = [int(rank) > 0 for rank in RANKS[row]]
        assert changed[row].tolist() == expected


def test_some_places_as_among_all(model: XLNet) -> None:
    places = torch.tensor([[6, 2], [1, 3]])
    whole = model(TOKENS, ranks=RANKS).logits
    some = model(TOKENS, ranks=RANKS, places=places).logits
    torch.testing.assert_close(some, whole.gather(1, places[..., None].expand(-1, -1, 17)))


def test_padding_is_seen_by_nobody(model: XLNet) -> None:
    alone = model(TOKENS[:1, :5], ranks=RANKS[:1, :5]).logits
    padded = model(TOKENS, torch.tensor([5, 7]), RANKS).logits[:1, :5]
    torch.testing.assert_close(padded, alone, atol=1e-5, rtol=0)


def test_the_gradient_reaches_every_parameter(model: XLNet) -> None:
    model.zero_grad()
    segments = torch.tensor([[0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1, 1]])
    model(TOKENS, ranks=RANKS, segments=segments).logits.square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert bool(parameter.grad.any()), name


def test_both_streams_are_sites_of_their_own(model: XLNet) -> None:
    places = torch.tensor([[6, 2], [6, 3]])
    with foveate.look(model) as sight:
        model(TOKENS, ranks=RANKS, places=places)
    streams = ["query_stream", "content_stream"]
    assert list(sight.sites) == [f"blocks.{layer}.self.{stream}" for layer in range(3) for stream in streams][:-1]
    weights = sight["blocks.2.self.query_stream"].weights()
    assert weights.shape == (2, 3, 2, 7)
    seen = RANKS[:, None] < RANKS.gather(1, places)[..., None]
    assert torch.equal(weights > 0, seen[:, None].expand(-1, 3, -1, -1))


def test_long_texts_take_linear_memory() -> None:
    """No tensor has as many numbers as there are pairs of tokens."""
    model = foveate.create("xlnet-tiny", vocabulary=17, width=4, heads=1, feedforward=4, layers=2).eval()
    length, largest = 3_001, 0

    class Largest(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            nonlocal largest
            result = function(*args, **(kwargs or {}))
            largest = max([largest, *(part.numel() for part in (result,) if isinstance(part, Tensor))])
            return result

    tokens, ranks = torch.randint(17, (1, length)), torch.randperm(length)[None]
    with torch.no_grad(), Largest():
        model.hidden(tokens, ranks=ranks, places=torch.arange(5)[None])
    assert largest < length**2 / 3


def test_places_of_the_content_stream(model: XLNet) -> None:
    places = torch.tensor([[1, 3], [2, 0]])
    whole = model(TOKENS).logits
    expected = whole.gather(1, places[..., None].expand(-1, -1, whole.shape[-1]))
    torch.testing.assert_close(model(TOKENS, places=places).logits, expected)


def test_odd_widths() -> None:
    with pytest.raises(UserError, match="the width must be even, not 9"):
        foveate.create("xlnet-tiny", vocabulary=17, width=9, heads=3)
