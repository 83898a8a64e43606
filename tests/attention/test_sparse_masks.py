"""Masks of long texts, masks joined by `|`, and scores and mixtures of heads that meet them, in every kernel."""

import itertools

import pytest
import torch
from torch import Tensor

from foveate.attention import (
    Mask,
    ScaledDot,
    Sigmoid,
    Soft,
    SquaredDistance,
    TalkingHeads,
    attend,
    big_bird,
    blocks,
    causal,
    chosen_blocks,
    leading,
    longformer,
    looking,
    padding,
    strided,
    window,
)
from foveate.attention.kernels import rows

places = torch.arange(23)
APART = places - places[:, None]
"""From each query to each key."""

ALLOWED = torch.rand(3, 1, 6, 6, generator=torch.Generator().manual_seed(1)) < 0.4

QUERIES, KEYS = (torch.randn(3, 2, 23, 5, generator=torch.Generator().manual_seed(seed)) for seed in (2, 3))


def nearest_blocks(size: int, count: int) -> Tensor:
    """Query by query: its own block, and the best of those before it."""
    seen = torch.zeros(3, 2, 23, 23, dtype=torch.bool)
    for example, head, place in itertools.product(range(3), range(2), range(23)):
        own, keys = place // size, KEYS[example, head].split(size)
        products = [float(keys[block].mean(0) @ QUERIES[example, head, place]) for block in range(own)]
        best = sorted(range(own), key=products.__getitem__, reverse=True)[:count]
        for block in (own, *best):
            seen[example, head, place, block * size : (block + 1) * size] = True
    return seen


MASKS: dict[str, tuple[Mask, Tensor]] = {
    "strided": (strided(3), APART % 3 == 0),
    "dilated window": (window(6) & strided(2), (APART.abs() <= 6) & (APART % 2 == 0)),
    "leading": (leading(4), (places < 4).expand(23, 23)),
    "looking": (looking(4), (places < 4)[:, None].expand(23, 23)),
    "longformer": (longformer(2, 3), (APART.abs() <= 2) | (places < 3) | (places[:, None] < 3)),
    "prefix": (causal() | leading(5), (APART <= 0) | (places < 5)),
    "prefixes": (
        causal() | padding(torch.tensor([5, 0, 9])),
        (APART <= 0) | (places < torch.tensor([5, 0, 9])[:, None, None, None]),
    ),
    "blocks": (blocks(ALLOWED, 4), ALLOWED.repeat_interleave(4, -1).repeat_interleave(4, -2)[..., :23, :23]),
    "chosen blocks": (chosen_blocks(QUERIES, KEYS, 4, 2), nearest_blocks(4, 2)),
    "or given": (window(1) | ((APART % 5) == 0), (APART.abs() <= 1) | (APART % 5 == 0)),
}
"""Each with what it is by its definition."""


@pytest.mark.parametrize("name", MASKS)
def test_what_is_seen_and_how_far(name: str) -> None:
    mask, wanted = MASKS[name]
    found = mask.block(range(23), range(23), 2, torch.device("cpu"))
    assert torch.equal(found.expand(wanted.shape), wanted)
    part = mask.block(range(7, 15), range(5, 9), 2, torch.device("cpu"))
    assert torch.equal(part.expand(*wanted.shape[:-2], 8, 4), wanted[..., 7:15, 5:9])
    for start in range(0, 23, 4):
        span = mask.reach(range(start, min(start + 4, 23)), 23)
        outside = (places < span.start) | (places >= span.stop)
        assert not wanted[..., start : start + 4, :][..., outside].any()


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("score", [ScaledDot(), SquaredDistance()])
def test_kernels_agree(name: str, score: ScaledDot | SquaredDistance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "BLOCK", 300)
    mask, wanted = MASKS[name]
    tensors = [torch.randn(3, 2, 23, 5, dtype=torch.float64, requires_grad=True) for _ in range(3)]

    def solve(kernel: str, mask: Mask | Tensor) -> list[Tensor]:
        output = attend(*tensors, score=score, mask=mask, kernel=kernel)
        return [output, *torch.autograd.grad(output.square().sum(), tensors)]

    exact = solve("eager", wanted)
    fused = ["sdpa"] if isinstance(score, ScaledDot) else []  # which has no values of another width than the keys
    for kernel in ("eager", *fused, "blocked", "rows", "auto"):
        for one, right in zip(solve(kernel, mask), exact, strict=True):
            torch.testing.assert_close(one, right)


def test_big_bird_sees_neighbours_the_first_block_and_some_by_chance() -> None:
    seen = big_bird(38, 4, 2, torch.Generator().manual_seed(0)).block(range(38), range(38), 0, torch.device("cpu"))
    coarse = seen[::4, ::4]
    assert torch.equal(coarse.repeat_interleave(4, 0).repeat_interleave(4, 1)[:38, :38], seen)
    near = (torch.arange(10)[:, None] - torch.arange(10)).abs() <= 1
    assert coarse[near].all()
    assert coarse[0].all()
    assert coarse[:, 0].all()
    assert int(coarse.sum(1)[1:].max()) <= 3 + 1 + 2
    assert not coarse.all()


def test_the_distance_is_that_of_the_vectors() -> None:
    q, k, score = torch.randn(2, 7, 4), torch.randn(2, 9, 4), SquaredDistance()
    torch.testing.assert_close(score.block(score.queries(q), score.keys(k)), -(torch.cdist(q, k) ** 2) / 2)


def test_a_step_chooses_the_blocks_that_the_whole_text_chooses() -> None:
    whole = chosen_blocks(QUERIES, KEYS, 4, 2) & causal()
    step = chosen_blocks(QUERIES[..., 17:18, :], KEYS[..., :18, :], 4, 2, start=17) & causal(17)
    device = torch.device("cpu")
    assert torch.equal(step.block(range(1), range(18), 2, device), whole.block(range(17, 18), range(18), 2, device))


@pytest.mark.parametrize("rule", [Soft(), Sigmoid()])
def test_talking_heads_mix_scores_and_weights(rule: Soft | Sigmoid, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "BLOCK", 300)
    heads = TalkingHeads(2, rule).double()
    tensors = [torch.randn(3, 2, 23, 5, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    torch.testing.assert_close(attend(*tensors, select=heads), attend(*tensors, select=rule))
    torch.nn.init.normal_(heads.before)
    torch.nn.init.normal_(heads.after)
    found = []
    for kernel in ("eager", "rows"):
        output = attend(*tensors, mask=causal(), select=heads, kernel=kernel)
        found.append([output, *torch.autograd.grad(output.square().sum(), [*tensors, *heads.parameters()])])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)
    scores = ScaledDot().block(*tensors[:2])
    mixed = sum(heads.before[:, own, None, None] * scores[:, own, None] for own in range(2))
    weights = rule.weigh(mixed.masked_fill(APART > 0, -torch.inf))
    mixed = sum(heads.after[:, own, None, None] * weights[:, own, None] for own in range(2))
    torch.testing.assert_close(found[0][0], mixed @ tensors[2])
    with pytest.raises(ValueError, match="does not have 2 heads"):
        heads.weigh(torch.zeros(3, 4, 5))
