"""flex_attention with functions that users write, plain and compiled."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention.flex_attention import and_masks, create_block_mask, flex_attention

from foveate import look
from foveate.errors import UserError

pytestmark = [
    pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile"),
    pytest.mark.filterwarnings("ignore:torch.compile with fullgraph=True found no compiled frames"),  # torch 2.12
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

B, H, T, S, D = 2, 6, 7, 11, 5

SLOPES = torch.tensor([0.5, 0.25, 0.1, 0.05, 1.0, 0.0])
TABLE = torch.randn(B, H, T + S, generator=torch.Generator().manual_seed(5))
LENGTHS = torch.tensor([S, 4])


def causal(example: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    return query >= key


def window(example: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    return (query - key).abs() <= 2


def padding(example: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    return key < LENGTHS[example]


def of_its_head(example: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    return key <= query + head - 2


def alibi(score: Tensor, example: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    return score - SLOPES[head] * (query - key).abs()


def capped(score: Tensor, example: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    return 2 * torch.tanh(score / 2)


def from_a_table(score: Tensor, example: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    return score + TABLE[example][head][query - key + S]


def masked(function: Callable, examples: int | None = None, heads: int | None = None) -> Any:
    return create_block_mask(function, examples, heads, T, S, device="cpu", BLOCK_SIZE=4)


CALLS: dict[str, dict[str, Any]] = {
    "plain": {},
    "scale": {"scale": 0.9},
    "causal": {"block_mask": masked(causal)},
    "window": {"block_mask": masked(window)},
    "padding": {"block_mask": masked(and_masks(causal, padding), B)},
    "of its head": {"block_mask": masked(of_its_head, None, H)},
    "alibi": {"score_mod": alibi},
    "capped": {"score_mod": capped, "scale": 1.5},
    "from a table": {"score_mod": from_a_table, "block_mask": masked(window)},
}


class Flex(nn.Module):
    def __init__(self, function: Callable = flex_attention) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        return self.function(*args, **kwargs)


def dense(query: Tensor, key: Tensor, options: dict[str, Any]) -> Tensor:
    """The weights by the formula, for all indices at once."""
    key = key.repeat_interleave(H // key.shape[1], 1)
    scores = query @ key.mT * options.get("scale", 1 / math.sqrt(D))
    places = torch.meshgrid(*(torch.arange(size) for size in (B, H, T, S)), indexing="ij")
    if options.get("score_mod") is from_a_table:
        example, head, row, column = places
        scores = scores + TABLE[example, head, row - column + S]
    elif "score_mod" in options:
        scores = options["score_mod"](scores, *places)
    if "block_mask" in options:
        scores = scores.masked_fill(~options["block_mask"].mask_mod(*places), -torch.inf)
    return scores.softmax(-1).nan_to_num()


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("heads", [H, 2])
def test_weights(name: str, heads: int) -> None:
    options = CALLS[name]
    query, key, value = torch.randn(B, H, T, D), torch.randn(B, heads, S, D), torch.randn(B, heads, S, 3)
    with look(model := Flex()) as sight:
        output = model(query, key, value, enable_gqa=heads != H, **options)
    site, expected = sight[""], dense(query, key, options)
    torch.testing.assert_close(site.weights(), expected, atol=1e-6, rtol=0)
    assert site.output_error() < 2e-6
    assert site.weights().std() > 0.05
    torch.testing.assert_close(expected @ value.repeat_interleave(H // heads, 1), output, atol=2e-6, rtol=0)
    chosen = site.weights(heads=[4, 1], queries=[5, 2, 3], keys=slice(3, 9))
    torch.testing.assert_close(chosen, expected[:, [4, 1]][:, :, [5, 2, 3], 3:9], atol=1e-6, rtol=0)
    torch.testing.assert_close(site.received(), expected.sum(-2), atol=1e-5, rtol=0)


def test_the_compiled_function_runs_uncompiled() -> None:
    query, key = torch.randn(B, H, T, D), torch.randn(B, H, S, D)
    with look(model := Flex(torch.compile(flex_attention))) as sight:
        model(query, key, key, score_mod=alibi)
    torch.testing.assert_close(sight[""].weights(), dense(query, key, {"score_mod": alibi}), atol=1e-6, rtol=0)


def test_outputs_are_those_without_looking() -> None:
    query, key = torch.randn(B, H, T, D), torch.randn(B, H, S, D)
    model = Flex()
    expected = model(query, key, key, score_mod=alibi)
    with look(model):
        assert torch.equal(model(query, key, key, score_mod=alibi), expected)


def test_a_table_that_is_written_to_later() -> None:
    """What a function reads is the model's own, and never misread."""
    table = torch.randn(H)

    def biased(score: Tensor, example: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return score * table[head]

    query, key = torch.randn(B, H, T, D), torch.randn(B, H, S, D)
    with look(model := Flex()) as sight:
        model(query, key, key, score_mod=biased)
    expected = (query @ key.mT / math.sqrt(D) * table[:, None, None]).softmax(-1)
    torch.testing.assert_close(sight[""].weights(), expected, atol=1e-6, rtol=0)
    table.zero_()
    with pytest.raises(UserError, match=r"of shape \(6,\) was modified in place"):
        sight[""].weights()


def test_half_precision() -> None:
    """Places stay exact where queries and keys are rounded."""
    query, key = torch.randn(1, 1, 300, D).bfloat16(), torch.randn(1, 1, 300, D).bfloat16()

    def near(score: Tensor, example: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return score - (query - key).abs()

    with look(model := Flex()) as sight:
        model(query, key, key, score_mod=near)
    distance = (torch.arange(300)[:, None] - torch.arange(300)).abs()
    expected = (query.float() @ key.float().mT / math.sqrt(D) - distance).softmax(-1)
    torch.testing.assert_close(sight[""].weights(), expected, atol=1e-6, rtol=0)
