"""Distances behind a cache that was filled before the look."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
import torch
from torch import nn
from transformers import DynamicCache, GPT2Config, GPT2LMHeadModel, StaticCache

from foveate import look
from foveate.attention import Soft, causal, padding
from foveate.attention.call import Call
from foveate.attention.masks import Mask
from foveate.attention.scores import ScaledDot
from foveate.sight.query_positions import first_query_position

N = 9
SITE = "transformer.h.0.attn"


@pytest.fixture(scope="module")
def model() -> GPT2LMHeadModel:
    torch.manual_seed(0)
    size = {"n_layer": 1, "n_head": 2, "n_embd": 16, "vocab_size": 50, "n_positions": 64}
    return GPT2LMHeadModel(GPT2Config(**size, initializer_range=0.3)).eval()


@pytest.mark.parametrize("keep", [None, ["distance"]])
@pytest.mark.parametrize("ends", [[5, 9], [8, 9], [5, 8, 9], [5, 6, 7, 8, 9]])
def test_steps_after_a_cache_have_the_distances_of_the_whole_text(
    model: GPT2LMHeadModel, ends: Sequence[int], keep: list[str] | None
) -> None:
    tokens = torch.randint(3, 50, (2, N), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        with look(model) as whole:
            model(tokens)
        cache = DynamicCache()
        model(tokens[:, : ends[0]], cache)  # second: its name differs between versions
        with look(model, keep=keep) as sight:
            for start, end in pairwise(ends):
                model(tokens[:, start:end], cache)
    assert sight.sites == [SITE]
    torch.testing.assert_close(sight[SITE].distance(), whole[SITE].distance()[..., ends[0] :], atol=1e-5, rtol=0)


def test_a_cache_of_a_fixed_size(model: GPT2LMHeadModel) -> None:
    """Its keys are those written so far, or all of them and a mask that hides the rest: versions differ."""
    tokens = torch.randint(3, 50, (1, N), generator=torch.Generator().manual_seed(2))
    cache = StaticCache(config=model.config, max_cache_len=13)
    with torch.no_grad():
        with look(model) as whole:
            model(tokens)
        model(tokens[:, :6], cache)
        with look(model) as sight:
            model(tokens[:, 6:], cache)
    torch.testing.assert_close(sight[SITE].distance(), whole[SITE].distance()[..., 6:], atol=1e-5, rtol=0)


def call_of(queries: int, keys: int, mask: Mask | None) -> Call:
    x = torch.randn(2, 3, keys, 4)
    return Call(torch.randn(2, 3, queries, 4), x, x, ScaledDot(), mask, None, Soft(), 0.0, False)


@pytest.mark.parametrize(
    ("queries", "keys", "mask", "position"),
    [
        (3, 7, causal(4), 4),
        (3, 7, causal(4) & padding(torch.tensor([2, 7])), 4),
        (7, 7, causal(), 0),
        (3, 7, padding(torch.tensor([2, 5])), None),
        (7, 7, None, None),
        (1, 7, None, None),
        (1, 7, padding(torch.tensor([2, 5])), None),
    ],
)
def test_what_a_mask_tells(queries: int, keys: int, mask: Mask | None, position: int | None) -> None:
    assert first_query_position(call_of(queries, keys, mask), nn.Identity()) == position


def test_what_a_causal_module_tells() -> None:
    module = nn.Identity()
    module.is_causal = True
    assert first_query_position(call_of(1, 7, None), module) == 6
    assert first_query_position(call_of(1, 7, padding(torch.tensor([2, 5]))), module) == 4
    module.is_cross_attention = True
    assert first_query_position(call_of(1, 7, None), module) is None
