"""Local windows: where they are, what they hide and add, and how a predicted one learns."""

import pytest
import torch
from torch import Tensor

from foveate.attention import Dot, attend, padding
from foveate.nn.local_windows import AdvancingWindow, DiagonalWindow, LocalWindow, PredictedWindow

R, T, S, C = 2, 5, 11, 3
LENGTHS = torch.tensor([11, 4])


def seen(window: LocalWindow, queries: Tensor, start: int = 0) -> list[list[list[int]]]:
    mask = window(queries, start, LENGTHS).mask
    block = mask.block(range(queries.shape[1]), range(S), 1, queries.device)
    return [[row.nonzero()[:, 0].tolist() for row in rows] for rows in block]


def test_the_diagonal() -> None:
    """Step t looks around place t; beyond the end of a source of 4, around its last place."""
    queries = torch.zeros(R, 3, C)
    assert seen(DiagonalWindow(1), queries, start=2) == [
        [[1, 2, 3], [2, 3, 4], [3, 4, 5]],
        [[1, 2, 3], [2, 3, 4], [2, 3, 4]],
    ]
    assert DiagonalWindow(1)(queries, 2, LENGTHS).bias is None


def test_the_predicted_place_by_hand() -> None:
    """v·tanh(W q) of 0 is the middle of each source, of log 3 three quarters."""
    window = PredictedWindow(C, 2)
    with torch.no_grad():
        window.place[0].weight.copy_(torch.eye(C))
        window.place[2].weight.copy_(torch.tensor([[2.0, 0.0, 0.0]]))
    queries = torch.zeros(R, 2, C)
    queries[:, 1, 0] = torch.atanh(torch.tensor(3.0).log() / 2)
    torch.testing.assert_close(window.centres(queries, 0, LENGTHS), torch.tensor([[5.0, 7.5], [1.5, 2.25]]))
    assert seen(window, queries) == [[[3, 4, 5, 6, 7], [6, 7, 8, 9]], [[0, 1, 2, 3], [1, 2, 3, 4]]]


def test_the_advancing_window_by_hand() -> None:
    """softplus(log(e - 1)) is a step of 1, softplus(log(e^2 - 1)) one of 2; a source of 4 ends at position 3."""
    window = AdvancingWindow(C, 1)
    with torch.no_grad():
        window.advance[0].weight.copy_(torch.eye(C))
        window.advance[2].weight.copy_(torch.tensor([[10.0, 0.0, 0.0]]))
        window.advance[2].bias.zero_()
    queries = torch.zeros(R, 3, C)
    queries[..., 0] = torch.atanh(torch.tensor([1.0, 2.0, 2.0]).expm1().log() / 10)
    places = torch.tensor([[1.0, 3.0, 5.0], [1.0, 3.0, 3.0]])
    torch.testing.assert_close(window.centres(queries, 0, LENGTHS), places, atol=1e-4, rtol=0)
    found = window(queries[:, 1:], 1, LENGTHS, torch.tensor([4.0, 0.0]))
    torch.testing.assert_close(found.centre, torch.tensor([8.0, 3.0]), atol=1e-4, rtol=0)
    block = found.mask.block(range(2), range(S), 1, queries.device)
    assert block[1].nonzero().tolist() == [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [1, 4]]


def test_an_advancing_window_learns_how_far_to_go() -> None:
    """Keys are all alike: from a step of about 0.7, the window learns the step of 2 that the wanted values take."""
    window, queries, keys = AdvancingWindow(C, 4), torch.randn(R, T, C), torch.zeros(R, S, C)
    values = torch.arange(S).float().expand(R, -1)[..., None]
    optimizer = torch.optim.Adam(window.parameters(), 0.05)
    for _ in range(150):
        mask, bias, _ = window(queries, 0, torch.tensor([S, S]))
        found = attend(queries, keys, values, Dot(), mask=mask, bias=bias)
        loss = (found.squeeze(-1) - torch.arange(2, 2 * T + 1, 2).clamp(max=S - 3)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.3


@pytest.mark.parametrize("kind", [PredictedWindow, AdvancingWindow])
def test_autocast_does_not_blur_the_predicted_place(kind: type[LocalWindow]) -> None:
    window, queries = kind(C, 2), torch.randn(1, 50, C)
    lengths = torch.tensor([10_000])
    exact = window.centres(queries, 0, lengths)
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(window.centres(queries, 0, lengths), exact, atol=0, rtol=0)


def test_the_bell_is_half_as_wide_as_the_window() -> None:
    """By hand, with a window of 2 and so a deviation of 1: -1/2 one place away, -2 two places away."""
    window = PredictedWindow(C, 2)
    bias = window(torch.zeros(R, 1, C), 0, LENGTHS).bias
    found = bias.block(torch.zeros(R, 1, C), range(1), range(3, 8))
    torch.testing.assert_close(found[0, 0], torch.tensor([-2.0, -0.5, 0.0, -0.5, -2.0]))


@pytest.mark.parametrize("kernel", ["eager", "blocked"])
def test_a_predicted_window_learns_where_to_look(kernel: str) -> None:
    """Keys are all alike, so that only the window can tell them apart: it moves to where the value is wanted."""
    window, queries, keys = PredictedWindow(C, 4), torch.randn(R, T, C), torch.zeros(R, S, C)
    wanted = torch.tensor([8.0, 1.0])
    values = torch.arange(S).float().expand(R, -1)[..., None]
    optimizer = torch.optim.Adam(window.parameters(), 0.05)
    for _ in range(150):
        mask, bias, _ = window(queries * torch.tensor([1.0, -1.0])[:, None, None] + 3, 0, LENGTHS)
        found = attend(queries, keys, values, Dot(), mask=padding(LENGTHS) & mask, bias=bias, kernel=kernel)
        loss = (found.squeeze(-1) - wanted[:, None]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 1


def test_a_window_holds_a_key_wherever_it_is() -> None:
    window = PredictedWindow(C, 1)
    lengths = torch.tensor([1, 2])
    for scale in (-1e3, 0.0, 1e3):
        mask = window(torch.full((R, T, C), scale), 0, lengths).mask
        assert (mask & padding(lengths)).block(range(T), range(S), 1, lengths.device).any(-1).all()


def test_places_of_long_sources_in_half_precision() -> None:
    """With bfloat16 parameters a place near 5,000 would be known to 32 places only."""
    window = PredictedWindow(C, 10).bfloat16()
    queries = torch.randn(R, T, C, dtype=torch.bfloat16)
    assert window.centres(queries, 0, torch.tensor([5000, 9000])).dtype == torch.float32
