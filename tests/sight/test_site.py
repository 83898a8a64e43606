"""All that can be asked of a map, against its weights written out: of one call, of many, and of what was kept."""

import math

import pytest
import torch
from torch import Tensor, nn

from foveate import look
from foveate.attention import Hard, Memory, Monotonic, ScaledDot, attend, attend_full, causal, padding
from foveate.errors import UserError
from foveate.sight import Site
from foveate.sight.key_measures import cell_indices

B, H, D, N = 2, 3, 5, 23
MEASURES = ["received", "entropy", "top", "max", "distance", "output_error"]


class Attends(nn.Module):
    def forward(self, q: Tensor, k: Tensor, v: Tensor, lengths: Tensor) -> Tensor:
        return attend(q, k, v, mask=causal() & padding(lengths.clamp(max=k.shape[-2])))


class Writes(nn.Module):
    """Attends to a first part of a text at once, and then to itself step by step."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor, first: int) -> Tensor:
        memory = Memory(k[..., :first, :], v[..., :first, :], ScaledDot())
        outputs = [attend(q[..., :first, :], memory, mask=causal())]
        for step in range(first, q.shape[-2]):
            memory.append(k[..., step : step + 1, :], v[..., step : step + 1, :])
            outputs.append(attend(q[..., step : step + 1, :], memory))
        return torch.cat(outputs, -2)


def draw(queries: int = N) -> tuple[Tensor, Tensor, Tensor]:
    return torch.randn(B, H, queries, D) * 2, torch.randn(B, H, N, D), torch.randn(B, H, N, 7)


def dense(q: Tensor, k: Tensor, allowed: Tensor) -> Tensor:
    scores = (q.double() @ k.double().mT / math.sqrt(D)).masked_fill(~allowed, -torch.inf)
    return scores.softmax(-1)


TRIANGLE = torch.ones(N, N, dtype=torch.bool).tril()


def at_once(**options) -> tuple[Site, Tensor]:
    (q, k, v), lengths = draw(), torch.tensor([N, 7])
    with look(model := Attends(), **options) as sight, torch.no_grad():
        model(q, k, v, lengths)
    allowed = TRIANGLE & (torch.arange(N) < lengths[:, None, None, None])
    return sight[""], dense(q, k, allowed)


def in_steps(**options) -> tuple[Site, Tensor]:
    q, k, v = draw()
    with look(model := Writes(), **options) as sight, torch.no_grad():
        model(q, k, v, first=7)
    assert len(sight[""].calls) == N - 6
    return sight[""], dense(q, k, TRIANGLE)


WAYS = pytest.mark.parametrize("made", [at_once, in_steps])
KEPT = pytest.mark.parametrize("options", [{}, {"keep": MEASURES}], ids=["later", "kept"])


def check(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected.float(), atol=1e-5, rtol=1e-5)


@WAYS
def test_weights(made) -> None:
    site, expected = made()
    assert site.shape == (B, H, N, N)
    check(site.weights(), expected)
    check(site.weights([2, 0], slice(5, 12)), expected[:, [2, 0], 5:12])
    check(site.weights(queries=[22, 0, 9], keys=[-1, 3]), expected[:, :, [22, 0, 9]][..., [-1, 3]])
    assert site.weights(queries=[]).shape == (B, H, 0, N)
    with pytest.raises(UserError, match=f"there is no position {H} among {H}"):
        site.weights(heads=[H])


@KEPT
@WAYS
def test_measures(made, options) -> None:
    site, expected = made(**options)
    check(site.received(), expected.sum(-2))
    check(site.entropy(), torch.special.entr(expected).sum(-1))
    check(site.max(), expected.amax(-1))
    distances = (torch.arange(N)[:, None] - torch.arange(N)).abs()
    check(site.distance(), (expected * distances).sum(-1))
    assert site.output_error() < 1e-5


@KEPT
@WAYS
def test_top(made, options) -> None:
    site, expected = made(**options)
    top = site.top(3)
    check(top.weights, expected.topk(3).values)
    there = top.keys >= 0
    assert torch.equal(there, top.weights > 0)
    check(top.weights[there], expected.gather(-1, top.keys.clamp_min(0))[there])
    assert not there[:, :, 0, 1:].any()
    assert site.top().weights.shape == (B, H, N, 8)


@WAYS
def test_pooled(made) -> None:
    """Rows and columns of unequal cells, and no more cells than places."""
    site, expected = made()
    over, along = torch.eye(5)[cell_indices(N, 5)].double(), torch.eye(4)[cell_indices(N, 4)].double()
    check(site.pooled(5, 4), (over / over.sum(0)).T @ expected @ along)
    check(site.pooled(64, 64), expected)
    check(site.pooled(5, 4).sum(-1), torch.ones(B, H, 5))


@WAYS
def test_carried(made) -> None:
    site, expected = made()
    shares = torch.rand(B, 2, N)
    check(site.propagate(shares), shares.double() @ expected.mean(1))


def test_what_was_not_kept() -> None:
    site, _ = at_once(keep=["received", "top"])
    with pytest.raises(
        UserError, match="entropy needs queries and keys, but only received, top was kept; look without"
    ):
        site.entropy()
    with pytest.raises(UserError, match="top 9 needs queries and keys, but only received, top was kept"):
        site.top(9)
    with pytest.raises(UserError, match="unknown measure 'recieved'; did you mean received"):
        at_once(keep=["recieved"])


@WAYS
def test_several_measures_at_once(made) -> None:
    """They are taken together, and then known without queries and keys."""
    site, expected = made()
    site.measure("received", "entropy", "top")
    site.keys = None
    check(site.received(), expected.sum(-2))
    check(site.entropy(), torch.special.entr(expected).sum(-1))
    check(site.top(5).weights, expected.topk(5).values)
    with pytest.raises(UserError, match="unknown measure 'topp'; did you mean top"):
        made()[0].measure("topp")


def test_a_small_map_that_was_kept_is_no_other() -> None:
    site, expected = at_once(keep="pooled")
    check(site.pooled(), expected)
    with pytest.raises(UserError, match="pooled to 5 x 4 needs queries and keys"):
        site.pooled(5, 4)


def test_kept_measures_keep_nothing_else() -> None:
    site, _ = in_steps(keep="received")
    assert site.keys is None
    assert sum(each.call.queries.untyped_storage().nbytes() for each in site.calls) <= 4 * len(site.calls)


def test_cross_attention_in_steps() -> None:
    """One source, a row for each step; the distance is that of a row's own number."""

    class Reads(nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> None:
            memory = Memory(k, v, ScaledDot())
            for step in range(q.shape[-2]):
                attend(q[..., step : step + 1, :], memory)

    q, k, v = draw(11)
    with look(model := Reads()) as sight:
        model(q, k, v)
    expected = dense(q, k, torch.ones(11, N, dtype=torch.bool))
    assert sight[""].shape == (B, H, 11, N)
    check(sight[""].weights(), expected)
    distances = (torch.arange(11)[:, None] - torch.arange(N)).abs()
    check(sight[""].distance(), (expected * distances).sum(-1))


@pytest.mark.parametrize("train", [False, True])
def test_hard_choices(train: bool) -> None:
    """The places that were taken, and -1 for nowhere; their chances are the weights."""

    class Chooses(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.select = Hard()

        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return attend_full(q, k, v, select=self.select, mask=causal(-1)).choice

    q, k, v = draw()
    with look(model := Chooses().train(train)) as sight:
        choice = model(q, k, v)
    assert torch.equal(sight[""].choices(), choice)
    assert (choice[:, :, 0] == -1).all()
    check(sight[""].weights()[:, :, 1:], dense(q, k, TRIANGLE.tril(-1))[:, :, 1:])
    assert sight[""].output_error() < 1e-6
    with pytest.raises(UserError, match="has soft attention, which chooses no single key"):
        at_once()[0].choices()


@pytest.mark.parametrize("train", [False, True])
def test_monotonic_weights(train: bool) -> None:
    """They depend on where earlier queries stopped, so they are kept, not computed again."""

    class Goes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.select = Monotonic()

        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            memory, state, found = Memory(k, v, ScaledDot()), None, []
            for step in range(q.shape[-2]):
                attended = attend_full(q[..., step : step + 1, :], memory, select=self.select, state=state)
                state = attended.state
                found.append(attended.weights)
            return torch.cat(found, -2)

    with look(model := Goes().train(train)) as sight:
        weights = model(*draw(11))
    assert sight[""].shape == (B, H, 11, N)
    check(sight[""].weights(), weights.detach())
    check(sight[""].received(), weights.sum(-2).detach())
    assert sight[""].output_error() < 1e-5
    if not train:
        assert torch.equal(sight[""].choices() >= 0, weights.sum(-1) == 1)


def test_output_error_does_not_apply_to_dropout() -> None:
    q, k, v = draw()

    class Drops(nn.Module):
        def forward(self) -> Tensor:
            return attend(q, k, v, dropout=0.4)

    with look(model := Drops()) as sight:
        model()
    check(sight[""].weights(), dense(q, k, torch.ones(N, N, dtype=torch.bool)))
    with pytest.raises(UserError, match="dropout changed the output"):
        sight[""].output_error()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision(dtype: torch.dtype) -> None:
    """Weights in single precision, of queries and keys as they were."""
    q, k, v = (part.to(dtype) for part in draw())
    with look(model := Attends()) as sight, torch.no_grad():
        model(q, k, v, torch.tensor([N, N]))
    assert sight[""].weights().dtype == torch.float32
    check(sight[""].weights(), dense(q, k, TRIANGLE))
    assert sight[""].output_error() < 0.03


def test_autocast() -> None:
    """Queries and keys as the kernel got them."""
    q, k, v = draw()
    with look(model := Attends()) as sight, torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        model(q, k, v, torch.tensor([N, N]))
    expected = dense(q.bfloat16(), k.bfloat16(), TRIANGLE)
    torch.testing.assert_close(sight[""].weights(), expected.float(), atol=2e-2, rtol=0)


def test_nobody_and_nothing_to_look_at() -> None:
    """Rows that may look nowhere: zeros in every measure, never NaN."""
    (q, k, v), lengths = draw(), torch.tensor([N, 0])
    with look(model := Attends()) as sight:
        model(q, k, v, lengths)
    site = sight[""]
    for found in (site.weights(), site.received(), site.entropy(), site.max(), site.distance(), site.pooled(5, 5)):
        assert found.isfinite().all()
        assert not found[1].any()
    assert (site.top(2).keys[1] == -1).all()


def test_a_measure_that_was_taken_before_the_last_step() -> None:
    q, k, v = draw()
    lengths = torch.tensor([N, N])
    with look(model := Attends()) as sight, torch.no_grad():
        model(q[..., 7:8, :], k[..., :8, :], v[..., :8, :], lengths)
        sight[""].measure("entropy", "top")
        model(q[..., 8:9, :], k[..., :9, :], v[..., :9, :], lengths)
    assert sight[""].shape == (B, H, 2, 9)
    assert sight[""].entropy().shape == (B, H, 2)
    sight[""].measure("entropy", "top")
    assert sight[""].top(3).keys.shape == (B, H, 2, 3)


def test_kept_measures_of_unlike_inputs_are_not_mixed() -> None:
    """One query looks into a text, then into another of the same length, then into one that is a key longer."""
    q, lengths = torch.randn(1, 1, 1, D), torch.tensor([N])
    texts = [torch.randn(1, 1, count, D) for count in (5, 5, 6)]
    with look(model := Attends(), keep=["received"]) as sight:
        for text in texts:
            model(q, text, text, lengths)
    assert [sight[name].shape for name in sight.sites] == [(1, 1, 1, 5), (1, 1, 1, 5), (1, 1, 1, 6)]


@pytest.mark.parametrize("lengths", [[N, N], [N, 5]])
def test_queries_and_keys_that_all_examples_share(lengths: list[int]) -> None:
    """Learned ones, which are there once; each example has its row in the map, and its own padding."""
    q, k, v = draw()
    alike = [part[:1].expand(B, -1, -1, -1) for part in (q, k)]
    with look(model := Attends()) as sight:
        model(*alike, v, torch.tensor(lengths))
    site = sight[""]
    expected = attend(*alike, torch.eye(N).expand(B, H, N, N), mask=causal() & padding(torch.tensor(lengths)))
    torch.testing.assert_close(site.weights(), expected, atol=1e-6, rtol=0)
    assert site.entropy().shape == (B, H, N)
    assert site.top(2).keys.shape == (B, H, N, 2)
