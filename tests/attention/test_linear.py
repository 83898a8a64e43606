"""Linear attention: weights that are the scores, in chunks, from a state, and the values of the delta rule."""

import pytest
import torch
from torch import Tensor, nn

import foveate
from foveate.attention import (
    Dot,
    Fading,
    Features,
    Linear,
    Mask,
    RandomFeatures,
    ScaledDot,
    Score,
    attend,
    attend_full,
    causal,
    corrected,
    fading,
    padding,
    positive,
    taylor,
    window,
)

LONG = 150
"""More than two chunks."""

MASKS: dict[str, Mask | None] = {
    "none": None,
    "causal": causal(),
    "padding": padding(torch.tensor([LONG, 41])),
    "both": causal() & padding(torch.tensor([LONG, 41])),
    "window": causal() & window(5),
}
SCORES: dict[str, Score] = {"positive": Features(positive), "taylor": Features(taylor), "dot": ScaledDot()}


def parts(length: int = LONG, width: int = 5) -> list[Tensor]:
    return [torch.randn(2, 3, length, width, dtype=torch.float64, requires_grad=True) for _ in range(3)]


def solve(call: dict[str, object], q: Tensor, k: Tensor, v: Tensor, kernel: str, sources: list[Tensor]) -> list[Tensor]:
    output = attend(q, k, v, kernel=kernel, **call)
    return [output, *torch.autograd.grad(output.square().sum(), sources)]


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("score", SCORES)
def test_sums_over_chunks_are_those_of_all_scores(mask: str, score: str) -> None:
    tensors = parts()
    call = {"score": SCORES[score], "mask": MASKS[mask], "select": Linear(normalize=score != "dot")}
    exact = solve(call, *tensors, "eager", tensors)
    for kernel in ["rows", *["chunks"] * (mask != "window")]:
        for found, wanted in zip(solve(call, *tensors, kernel, tensors), exact, strict=True):
            torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)


def test_what_fades_is_the_product_of_all_shares_between() -> None:
    q, k, v = parts()
    decay = (-torch.rand(2, 3, LONG, dtype=torch.float64) / 5).requires_grad_()
    call = {"score": Fading(), "mask": causal(), "select": Linear(normalize=False)}
    found = [solve(call, *fading(q, k, decay), v, kernel, [q, k, v, decay]) for kernel in ("eager", "rows", "chunks")]
    state, rows = torch.zeros(2, 3, 5, 5, dtype=torch.float64), []
    for place in range(LONG):
        state = state * decay[..., place, None, None].exp() + k[..., place, :, None] * v[..., place, None, :]
        rows.append(q[..., place, None, :] @ state)
    wanted = torch.cat(rows, -2)
    wanted = [wanted, *torch.autograd.grad(wanted.square().sum(), [q, k, v, decay])]
    for one in found:
        for own, right in zip(one, wanted, strict=True):
            torch.testing.assert_close(own, right, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("fades", [False, True])
def test_a_call_goes_on_from_the_state_of_the_one_before(fades: bool) -> None:
    q, k, v = parts()
    decay = -torch.rand(2, 3, LONG, dtype=torch.float64) / 5
    select, score = Linear(normalize=not fades), Fading() if fades else Features(positive)

    def call(span: slice, state: Tensor | None) -> foveate.attention.Attended:
        own = [part[..., span, :] for part in (q, k, v)]
        queries, keys = fading(own[0], own[1], decay[..., span]) if fades else own[:2]
        mask = causal() if queries.shape[-2] > 1 else None
        return attend_full(queries, keys, own[2], score=score, mask=mask, select=select, state=state)

    state, rows = torch.zeros(2, 3, 5, 5 if fades else 6, dtype=torch.float64), []
    for span in (slice(0, 70), slice(70, 71), slice(71, 72), slice(72, LONG)):
        found = call(span, state)
        rows.append(found.output)
        state = found.state
    torch.testing.assert_close(torch.cat(rows, -2), call(slice(0, LONG), None).output)


def test_the_delta_rule_replaces_what_a_key_holds() -> None:
    q, k, v = (part.detach() for part in parts())
    k = nn.functional.normalize(k, dim=-1)
    strength, decay = torch.rand(2, 3, LONG, dtype=torch.float64), -torch.rand(2, 3, LONG, dtype=torch.float64) / 5
    state, rows = torch.zeros(2, 3, 5, 5, dtype=torch.float64), []
    for place in range(LONG):
        key = k[..., place, :, None]
        state = state * decay[..., place, None, None].exp()
        state = state + key * strength[..., place, None, None] * (v[..., place, None, :] - key.mT @ state)
        rows.append(q[..., place, None, :] @ state)
    values = corrected(k, v, strength, decay)
    call = {"score": Fading(), "mask": causal(), "select": Linear(normalize=False)}
    torch.testing.assert_close(attend(*fading(q, k, decay), values, **call), torch.cat(rows, -2), rtol=0, atol=1e-9)
    whole = attend(q, k, corrected(k, v, torch.ones_like(strength)), Dot(), causal(), select=Linear(normalize=False))
    first = attend(k, k, corrected(k, v, torch.ones_like(strength)), Dot(), causal(), select=Linear(normalize=False))
    assert whole.isfinite().all()
    torch.testing.assert_close(first, v, rtol=0, atol=1e-6)  # with full strength, a key finds what was just written


@pytest.mark.parametrize("length", [3, 70])
def test_gradients_of_the_delta_rule(length: int) -> None:
    k, v = (torch.randn(1, length, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    strength, decay = (torch.rand(1, length, dtype=torch.float64, requires_grad=True) for _ in range(2))

    def values(k: Tensor, v: Tensor, strength: Tensor, decay: Tensor) -> Tensor:
        return corrected(nn.functional.normalize(k, dim=-1), v, strength, -decay)[:, -2:]

    assert torch.autograd.gradcheck(values, (k, v, strength, decay), fast_mode=length > 10)


def test_products_of_features_come_near_the_exponential_of_the_score() -> None:
    x, y = (torch.randn(9, 8, dtype=torch.float64) / 2 for _ in range(2))
    scores = ScaledDot().block(x, y)
    torch.testing.assert_close(Features(taylor).block(taylor(x), taylor(y)), 1 + scores + scores**2 / 2)
    torch.manual_seed(0)
    features = RandomFeatures(8, 20_000).double()
    found = Linear().weigh(features(x) @ features(y).mT)
    torch.testing.assert_close(found, scores.softmax(-1), rtol=0.1, atol=0.01)


def test_the_table_takes_sums_where_they_are_the_same() -> None:
    q, k, v = parts()
    seen = []
    with foveate.attention.intercept(lambda call, kernel: seen.append(kernel.name) or kernel.attend(call)):
        for mask in MASKS.values():
            attend(q, k, v, SCORES["positive"], mask, select=Linear())
        attend(q, k, v, SCORES["positive"], None, torch.zeros(LONG, LONG), select=Linear())
        attend(q, k, v, SCORES["positive"], None, select=Linear(), dropout=0.5)
        attend(q[..., :3, :], k, v, SCORES["positive"], causal(7), select=Linear())
    assert seen == ["chunks"] * 4 + ["eager"] * 4
    with pytest.raises(ValueError, match="goes on from a state only without bias"):
        attend_full(q, k, v, SCORES["positive"], causal() & window(3), select=Linear(), state=torch.zeros(5, 6))
    with pytest.raises(ValueError, match="chunks kernel serves"):
        attend(q, k, v, kernel="chunks")


def test_a_look_shows_the_shares_of_the_scores() -> None:
    class Layer(nn.Module):
        attends = True

        def forward(self, x: Tensor) -> Tensor:
            return attend(x, x, x, SCORES["positive"], causal(), select=Linear())

    model, x = nn.ModuleDict({"layer": Layer()}), torch.randn(1, 2, LONG, 8)
    model.forward = lambda x: model["layer"](x)  # type: ignore[method-assign]
    with foveate.look(model) as sight:
        output = model(x)
    weights = sight["layer"].weights()
    torch.testing.assert_close(weights @ x, output, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(weights.sum(-1), torch.ones(1, 2, LONG))
