"""Multi-head attention: against PyTorch's own, small attentions side by side, and numbers by hand."""

import math

import pytest
import torch
from torch import Tensor, nn

from foveate.attention import Additive, Biaffine, Dot, Memory, ScaledDot, causal, padding, window
from foveate.errors import UserError
from foveate.nn import MultiHeadAttention

B, T, S = 2, 5, 7


def copy(linear: nn.Module, weight: Tensor, bias: Tensor | None = None) -> None:
    with torch.no_grad():
        linear.weight.copy_(weight)
        linear.bias.zero_() if bias is None else linear.bias.copy_(bias)


def scramble(module: nn.Module) -> nn.Module:
    """Random numbers for all parameters: biases that start at 0 would hide mistakes."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(std=0.5)
    return module


def test_the_worked_example() -> None:
    """One query (1, -1, 0) over three vectors: weights and output computed by hand."""
    layer = MultiHeadAttention(3, 1, source_width=4, head_width=4, value_width=2, output_width=2)
    copy(layer.key, torch.eye(4))
    copy(layer.value, torch.tensor([[1.0, 0, 0, 0], [0, 1, 1, 0]]))
    copy(layer.query, torch.tensor([[0.0, 1, 0], [1, 0, 0], [0, 0, 1], [1, 0, -1]]))
    copy(layer.output, torch.eye(2))
    x = torch.tensor([[[1.0, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0]]])
    y = torch.tensor([[[1.0, -1, 0]]])
    low, high = math.exp(-0.5), math.exp(0.5)
    expected = torch.tensor([[[2 * low, high]]]) / (2 * low + high)
    assert torch.equal(layer.query(y), torch.tensor([[[-1.0, 1, 0, 1]]]))
    assert expected.flatten().tolist() == pytest.approx([0.42388, 0.57612], abs=5e-6)
    torch.testing.assert_close(layer(y, x), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("kind", ["self", "causal", "padded", "cross"])
def test_equals_torch(kind: str) -> None:
    """With the same weights: 3 heads of width 4, source and target of different widths for "cross"."""
    width, heads, source_width = 12, 3, 11 if kind == "cross" else 12
    theirs = nn.MultiheadAttention(width, heads, kdim=source_width, vdim=source_width, batch_first=True)
    scramble(theirs)
    ours = MultiHeadAttention(width, heads, source_width)
    weights = (
        theirs.in_proj_weight.chunk(3)
        if theirs.in_proj_weight is not None
        else (theirs.q_proj_weight, theirs.k_proj_weight, theirs.v_proj_weight)
    )
    parts, biases = (ours.query, ours.key, ours.value), theirs.in_proj_bias.chunk(3)
    for part, weight, bias in zip(parts, weights, biases, strict=True):
        copy(part, weight, bias)
    copy(ours.output, theirs.out_proj.weight, theirs.out_proj.bias)

    x, lengths = torch.randn(B, T, width), torch.tensor([5, 3])
    source = torch.randn(B, S, source_width) if kind == "cross" else x
    hidden = {
        "causal": {"attn_mask": torch.ones(T, T, dtype=torch.bool).triu(1)},
        "padded": {"key_padding_mask": torch.arange(T) >= lengths[:, None]},
    }
    expected, _ = theirs(x, source, source, need_weights=False, **hidden.get(kind, {}))
    mask = {"causal": causal(), "padded": padding(lengths)}.get(kind)
    torch.testing.assert_close(ours(x, source if kind == "cross" else None, mask=mask), expected)


def test_all_widths_are_free() -> None:
    layer = MultiHeadAttention(13, 3, source_width=11, head_width=5, value_width=7, output_width=17)
    assert layer(torch.randn(B, T, 13), torch.randn(B, S, 11)).shape == (B, T, 17)
    sizes = {name: tuple(parameter.shape) for name, parameter in layer.named_parameters() if "weight" in name}
    assert sizes == {
        "query.weight": (3 * 5, 13),
        "key.weight": (3 * 5, 11),
        "value.weight": (3 * 7, 11),
        "output.weight": (17, 3 * 7),
    }


def test_split_heads_are_small_attentions_side_by_side() -> None:
    """Each head sees its own slice of queries and source only."""
    width, source_width, heads = 6, 10, 2
    whole = scramble(MultiHeadAttention(width, heads, source_width, head_width=5, value_width=3, split=True))
    x, source = torch.randn(B, T, width), torch.randn(B, S, source_width)
    outputs = []
    for head in range(heads):
        small = MultiHeadAttention(width // heads, 1, source_width // heads, 5, 3, output_width=3)
        for name in ("query", "key", "value"):
            sliced, size = getattr(whole, name), 3 if name == "value" else 5
            copy(getattr(small, name), sliced.weight[head].T, sliced.bias[head * size : (head + 1) * size])
        copy(small.output, torch.eye(3))
        outputs.append(small(x.chunk(heads, -1)[head], source.chunk(heads, -1)[head]))
    torch.testing.assert_close(whole(x, source), whole.output(torch.cat(outputs, -1)))


@pytest.mark.parametrize("kind", [Dot, Additive, Biaffine])
def test_each_head_is_scored_on_its_own(kind: type) -> None:
    """A learned score is one for all heads, applied to each head's own queries and keys: by a loop over heads."""
    score = kind() if kind is Dot else scramble(kind(5, 5, *([3] if kind is Additive else [])))
    layer = scramble(MultiHeadAttention(7, 2, source_width=11, head_width=5, score=score))
    x, source = torch.randn(B, T, 7), torch.randn(B, S, 11)
    q, k, v = layer.query(x), layer.key(source), layer.value(source)
    heads = []
    for head in range(2):
        own_q, own_k, own_v = (part[..., head * 5 : head * 5 + 5] for part in (q, k, v))
        scores = torch.zeros(B, T, S)
        for t in range(T):
            for s in range(S):
                scores[:, t, s] = by_hand(score, own_q[:, t], own_k[:, s])
        heads.append(scores.softmax(-1) @ own_v)
    torch.testing.assert_close(layer(x, source), layer.output(torch.cat(heads, -1)))


def by_hand(score: Dot | Additive | Biaffine, q: Tensor, k: Tensor) -> Tensor:
    """The score of one query and one key for each example, as its paper writes it."""
    if isinstance(score, Additive):
        return torch.tanh(k @ score.key.weight.T + q @ score.query.weight.T + score.query.bias) @ score.direction
    return torch.einsum("bk,kq,bq->b", k, score.weight, q) if isinstance(score, Biaffine) else (q * k).sum(-1)


def test_the_factor_of_the_score_is_that_of_a_head() -> None:
    layer = MultiHeadAttention(12, 3)
    assert layer.score == ScaledDot()
    assert layer.score.scale(layer.head_width) == 0.5


@pytest.mark.parametrize("mask", [None, causal(), window(1)])
def test_masks_and_biases_reach_every_head(mask: object) -> None:
    layer = scramble(MultiHeadAttention(6, 2))
    x, bias = torch.randn(B, T, 6), torch.randn(2, T, T)
    allowed = torch.ones(T, T, dtype=torch.bool)
    if mask is not None:
        allowed = mask.block(range(T), range(T), 2, x.device)
    q, k, v = (part(x).view(B, T, 2, 3).transpose(1, 2) for part in (layer.query, layer.key, layer.value))
    scores = (q @ k.mT / math.sqrt(3) + bias).masked_fill(~allowed, -torch.inf)
    expected = layer.output((scores.softmax(-1) @ v).transpose(1, 2).reshape(B, T, 6))
    torch.testing.assert_close(layer(x, mask=mask, bias=bias), expected)


def test_permutation_equivariance() -> None:
    layer, order = scramble(MultiHeadAttention(6, 2)), torch.randperm(T)
    x = torch.randn(B, T, 6)
    torch.testing.assert_close(layer(x[:, order]), layer(x)[:, order])


def test_a_source_may_come_in_any_order() -> None:
    layer, order = scramble(MultiHeadAttention(6, 2, source_width=5)), torch.randperm(S)
    x, source = torch.randn(B, T, 6), torch.randn(B, S, 5)
    torch.testing.assert_close(layer(x, source[:, order]), layer(x, source))


@pytest.mark.parametrize("gradients", [True, False])
def test_step_by_step_equals_all_at_once(gradients: bool) -> None:
    layer = scramble(MultiHeadAttention(6, 2, score=scramble(Additive(3, 3, 5))))
    x = torch.randn(B, T, 6)
    with torch.set_grad_enabled(gradients):
        whole, memory, steps = layer(x, mask=causal()), layer.memory(x[:, :0]), []
        for one in x.split(1, 1):
            steps.append(layer(one, past=memory))
        torch.testing.assert_close(torch.cat(steps, 1), whole)
        assert memory.length == T
        if gradients:
            torch.testing.assert_close(
                torch.autograd.grad(torch.cat(steps, 1).square().sum(), layer.key.weight),
                torch.autograd.grad(whole.square().sum(), layer.key.weight),
            )


def test_a_memory_is_the_source() -> None:
    layer = scramble(MultiHeadAttention(6, 2, source_width=5))
    x, source = torch.randn(B, T, 6), torch.randn(B, S, 5)
    memory = layer.memory(source)
    assert isinstance(memory, Memory)
    assert torch.equal(layer(x, memory), layer(x, source))
    assert memory.keys.mT.is_contiguous(), "few queries read them faster so"
    assert memory.values.is_contiguous()
    assert layer.to(torch.bfloat16).memory(source.to(torch.bfloat16)).keys.is_contiguous()


def test_dropout_is_for_training_only() -> None:
    layer = scramble(MultiHeadAttention(6, 2, dropout=0.5))
    x = torch.randn(B, T, 6)
    assert not torch.equal(layer(x), layer(x))
    layer.eval()
    assert torch.equal(layer(x), layer(x))


@pytest.mark.parametrize("source_width", [7, 5])
def test_unequal_heads_are_concatenated_and_projected_once(source_width: int) -> None:
    """Widths 2, 3 and 6: one matrix of (2 + 3 + 6) x 7 and one bias."""
    widths = [2, 3, 6]
    layer = scramble(MultiHeadAttention(7, 3, source_width, head_widths=widths))
    x, source = torch.randn(B, T, 7), torch.randn(B, S, source_width)
    sides = [part.linear(read).split(widths, -1) for part, read in unequal_sides(layer, x, source)]
    outputs = [
        (query @ key.mT / math.sqrt(width)).softmax(-1) @ value
        for width, query, key, value in zip(widths, *sides, strict=True)
    ]
    assert layer.output.linear.weight.shape == (7, sum(widths))
    torch.testing.assert_close(layer(x, source), layer.output.linear(torch.cat(outputs, -1)))
    torch.testing.assert_close(layer(x, layer.memory(source)), layer(x, source))


def unequal_sides(layer: MultiHeadAttention, x: Tensor, source: Tensor) -> list[tuple[nn.Module, Tensor]]:
    return [(layer.query, x), (layer.key, source), (layer.value, source)]


def test_unequal_heads_step_by_step_under_a_bias() -> None:
    """With a past, each step is a row of the whole; a bias reaches each head."""
    layer, x = scramble(MultiHeadAttention(7, 2, head_widths=[2, 3])), torch.randn(B, T, 7)
    bias = torch.randn(2, T, T)
    whole, past = layer(x, mask=causal(), bias=bias), layer.memory(x[:, :0])
    for step in range(T):
        one = layer(x[:, step : step + 1], bias=bias[:, step : step + 1, : step + 1], past=past)
        torch.testing.assert_close(one, whole[:, step : step + 1])
    assert not torch.allclose(whole, layer(x, mask=causal()))


def test_parameters_and_cost_do_not_depend_on_the_number_of_heads() -> None:
    """H heads of width C/H cost what one of width C does: the parameters, and the products of the projections."""

    def parameters(heads: int) -> int:
        return sum(parameter.numel() for parameter in MultiHeadAttention(12, heads).parameters())

    assert parameters(1) == parameters(2) == parameters(6) == 4 * (12 * 12 + 12)


def test_errors_tell_the_widths() -> None:
    with pytest.raises(UserError, match="width 7 is not a multiple of 3 heads"):
        MultiHeadAttention(7, 3)
    with pytest.raises(UserError, match="an input of width 7 cannot be split into slices for 2 heads"):
        MultiHeadAttention(6, 2, source_width=7, split=True)
    with pytest.raises(UserError, match="3 head_widths are given for 2 heads"):
        MultiHeadAttention(6, 2, head_widths=[1, 2, 3])


def test_gates_of_heads() -> None:
    """Each head's output times a number between 0 and 1, which the input of the queries says."""
    layer, x = MultiHeadAttention(12, 3, value_width=5, head_gate=True), torch.randn(2, 7, 12)
    assert layer.gate is not None
    plain = MultiHeadAttention(12, 3, value_width=5)
    plain.load_state_dict({name: value for name, value in layer.state_dict().items() if not name.startswith("gate")})
    heads = torch.zeros(2, 7, 12) + layer.output.bias
    for head in range(3):
        alone = MultiHeadAttention(12, 3, value_width=5)
        alone.load_state_dict(plain.state_dict())
        with torch.no_grad():
            kept = torch.arange(15) // 5 == head
            alone.output.weight[:, ~kept] = 0
            alone.output.bias.zero_()
        heads = heads + layer.gate(x).sigmoid()[..., head : head + 1] * alone(x)
    torch.testing.assert_close(layer(x), heads)
