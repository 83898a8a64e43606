"""torch's own attention functions, called in every way that they can be."""

import math
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention.bias import causal_lower_right, causal_upper_left
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

from foveate import look
from foveate.errors import UserError

B, H, T, S, D = 2, 6, 7, 11, 5


class Attends(nn.Module):
    """Calls a function with what it is given."""

    def __init__(self, function: Callable = scaled_dot_product_attention) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        return self.function(*args, **kwargs)


def inputs(heads: int = H, keys: int = S, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    shapes = (B, H, T, D), (B, heads, keys, D), (B, heads, keys, 3)
    return tuple(torch.randn(shape, dtype=dtype) for shape in shapes)


def dense(query: Tensor, key: Tensor, mask: Tensor | None = None, scale: float | None = None) -> Tensor:
    """The weights by the formula, in double precision; a row that may look nowhere is 0."""
    key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
    scores = query.double() @ key.double().mT * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    return scores.softmax(-1).nan_to_num().float()


LOOKED_AT = torch.rand(B, 1, T, S, generator=torch.Generator().manual_seed(5)) > 0.4
ADDED = torch.randn(H, T, S, generator=torch.Generator().manual_seed(5))
PADDED = torch.arange(S) < torch.tensor([S, 4])[:, None, None, None]

CALLS: dict[str, tuple[dict[str, Any], Tensor | None]] = {
    "plain": ({}, None),
    "scale": ({"scale": 0.9}, None),
    "causal": ({"is_causal": True}, torch.ones(T, S).tril().bool()),
    "mask": ({"attn_mask": LOOKED_AT}, LOOKED_AT),
    "padding": ({"attn_mask": PADDED}, PADDED),
    "numbers": ({"attn_mask": ADDED}, ADDED),
    "numbers that hide": (
        {"attn_mask": torch.zeros(T, S).masked_fill(torch.ones(T, S).triu(2).bool(), -torch.inf)},
        torch.ones(T, S).tril(1).bool(),
    ),
    "the least number": (
        {"attn_mask": torch.zeros(B, 1, T, S).masked_fill(~PADDED, torch.finfo(torch.float32).min)},
        PADDED,
    ),
    "a row that looks nowhere": (
        {"attn_mask": torch.ones(T, S).tril(-1).bool()},
        torch.ones(T, S).tril(-1).bool(),
    ),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("heads", [H, 2, 1])
def test_weights(name: str, heads: int) -> None:
    (options, mask), (query, key, value) = CALLS[name], inputs(heads)
    model = Attends()
    expected = model(query, key, value, enable_gqa=heads != H, **options)
    with look(model) as sight:
        output = model(query, key, value, enable_gqa=heads != H, **options)
    assert torch.equal(output, expected)
    assert sight.sites == [""]
    found = sight[""].weights()
    torch.testing.assert_close(found, dense(query, key, mask, options.get("scale")), atol=1e-6, rtol=0)
    torch.testing.assert_close(found @ value.repeat_interleave(H // heads, 1), output, atol=2e-6, rtol=0)
    assert sight[""].output_error() < 2e-6


@pytest.mark.parametrize(
    "function",
    [
        F.scaled_dot_product_attention,
        torch._C._nn.scaled_dot_product_attention,
        lambda *args: scaled_dot_product_attention(*args),
    ],
)
def test_names_of_the_function(function: Callable) -> None:
    query, key, value = inputs()
    with look(model := Attends(function)) as sight:
        model(query, key, value)
    torch.testing.assert_close(sight[""].weights(), dense(query, key), atol=1e-6, rtol=0)


@pytest.mark.parametrize("leading", [(), (3,), (2, 3, 5)])
def test_other_numbers_of_dimensions(leading: tuple[int, ...]) -> None:
    """The last of the leading dimensions is the heads; those in front of it count as examples."""
    query, key = torch.randn(*leading, T, D), torch.randn(*leading, S, D)
    with look(model := Attends()) as sight:
        model(query, key, key)
    weights = (query @ key.mT / math.sqrt(D)).softmax(-1)
    examples = {0: (1, 1), 1: (3, 1), 3: (6, 5)}[len(leading)]
    torch.testing.assert_close(sight[""].weights(), weights.reshape(*examples, T, S), atol=1e-6, rtol=0)


def test_a_mask_for_many_dimensions() -> None:
    """Windows in front of heads, each window with a mask of its own."""
    query, mask = torch.randn(2, 3, 5, T, D), torch.rand(3, 1, T, T) > 0.3
    with look(model := Attends()) as sight:
        model(query, query, query, attn_mask=mask)
    expected = (query @ query.mT / math.sqrt(D)).masked_fill(~mask, -torch.inf).softmax(-1).nan_to_num()
    torch.testing.assert_close(sight[""].weights(), expected.flatten(0, 1), atol=1e-6, rtol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_precisions(dtype: torch.dtype) -> None:
    query, key, value = inputs(dtype=dtype)
    with look(model := Attends()) as sight:
        output = model(query, key, value)
    found = sight[""].weights()
    torch.testing.assert_close(found.float(), dense(query, key), atol=1e-6, rtol=0)
    torch.testing.assert_close((found @ value.to(found.dtype)).to(dtype), output, atol=2e-2, rtol=0)


def test_autocast_sees_what_it_made_of_the_queries() -> None:
    query, key, value = inputs()
    with look(model := Attends()) as sight, torch.autocast("cpu", torch.bfloat16):
        assert model(query, key, value).dtype == torch.bfloat16
    torch.testing.assert_close(sight[""].weights(), dense(query.bfloat16(), key.bfloat16()), atol=1e-6, rtol=0)


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"attn_mask": LOOKED_AT}, {"dropout_p": 0.3}])
def test_outputs_and_gradients_are_those_without_looking(options: dict[str, Any]) -> None:
    parts, model = [part.requires_grad_() for part in inputs()], Attends()

    def run() -> list[Tensor]:
        torch.manual_seed(3)
        output = model(*parts, **options)
        return [output, *torch.autograd.grad(output.square().sum(), parts)]

    expected = run()
    with look(model):
        found = run()
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


def test_dropout_is_behind_the_weights() -> None:
    query, key, value = inputs()
    with look(model := Attends()) as sight:
        model(query, key, value, dropout_p=0.5)
    torch.testing.assert_close(sight[""].weights(), dense(query, key), atol=1e-6, rtol=0)
    with pytest.raises(UserError, match="dropout changed the output"):
        sight[""].output_error()


class Layers(nn.Module):
    """Attends twice, in parts that are computed again for the backward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(D, D), Self()) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False)
        return x


class Self(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return scaled_dot_product_attention(x, x, x)


def test_a_checkpointed_call_is_noted_once() -> None:
    model, x = Layers(), torch.randn(B, H, T, D)
    with look(model) as sight:
        model(x).sum().backward()
    assert sight.sites == ["layers.0.1", "layers.1.1"]
    assert [sight[site].shape for site in sight.sites] == [(B, H, T, T)] * 2


def test_a_compiled_model_runs_uncompiled() -> None:
    layer, x = nn.Sequential(nn.Linear(D, D), Self()), torch.randn(B, H, T, D)
    compiled = torch.compile(layer, backend="eager")
    with look(compiled) as sight:
        output = compiled(x)
    assert sight.sites == ["1"]
    query = layer[0](x)
    torch.testing.assert_close(sight["1"].weights(), dense(query, query), atol=1e-6, rtol=0)
    assert torch.equal(output, layer(x))


class Several(nn.Module):
    """Attends twice in one call, over other keys."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return scaled_dot_product_attention(x, x, x) + scaled_dot_product_attention(x, y, y)


def test_several_calls_of_one_module() -> None:
    x, y = torch.randn(B, H, T, D), torch.randn(B, H, S, D)
    with look(model := Several()) as sight:
        model(x, y)
    assert sight.sites == ["", "#2"]
    torch.testing.assert_close(sight["#2"].weights(), dense(x, y), atol=1e-6, rtol=0)


class Elsewhere(nn.Module):
    """Runs a part in a thread of its own, as DataParallel does."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(6, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        thread = threading.Thread(target=lambda: self.attention(x, x, x))
        thread.start()
        thread.join()
        return x


def test_another_thread_is_named() -> None:
    message = r"attention \(MultiheadAttention\) ran in another thread than the look.*; call the model itself"
    with pytest.raises(UserError, match=message), look(model := Elsewhere()):
        model(torch.randn(B, T, 6))


def test_heads_that_share_keys_in_three_dimensions() -> None:
    query, key = torch.randn(6, T, D), torch.randn(2, S, D)
    with look(model := Attends()) as sight:
        model(query, key, key, enable_gqa=True)
    expected = (query @ key.repeat_interleave(3, 0).mT / math.sqrt(D)).softmax(-1)
    torch.testing.assert_close(sight[""].weights(), expected[None], atol=1e-6, rtol=0)


@pytest.mark.parametrize("shapes", [((3, 2, 5, T, D), (1, 2, 5, S, D)), ((3, 1, T, D), (3, 8, S, D))])
def test_keys_and_queries_that_broadcast(shapes: tuple) -> None:
    query, key = map(torch.randn, shapes)
    with look(model := Attends()) as sight:
        model(query, key, key)
    expected = (query @ key.mT / math.sqrt(D)).softmax(-1)
    torch.testing.assert_close(sight[""].weights(), expected.flatten(0, -4), atol=1e-6, rtol=0)


@pytest.mark.parametrize(("bias", "first"), [(causal_upper_left, 0), (causal_lower_right, S - T)])
def test_causality_by_its_name(bias: Callable, first: int) -> None:
    query, key, value = inputs()
    with look(model := Attends()) as sight:
        model(query, key, value, bias(T, S))
    mask = torch.ones(T, S).tril(first).bool()
    torch.testing.assert_close(sight[""].weights(), dense(query, key, mask), atol=1e-6, rtol=0)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_tensors_are_named() -> None:
    texts = torch.nested.nested_tensor([torch.randn(3, 8), torch.randn(5, 8)], layout=torch.jagged)
    heads, model = texts.unflatten(-1, (2, 4)).transpose(1, 2), Attends()
    message = r"the model \(Attends\) attends on nested tensors, .*; call it with padded tensors and a mask"
    with pytest.raises(UserError, match=message), look(model):
        model(heads, heads, heads)
