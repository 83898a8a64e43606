"""Requests that join others while those are being written: each gets what it gets alone."""

from dataclasses import replace
from typing import Any

import pytest
import torch

import foveate
from foveate import models
from foveate.decoding import ContinuousBatch, Decoding, Writing, can_share, generate
from foveate.errors import UserError
from foveate.inference.int8 import in_int8
from foveate.inference.lean import lean_copy

SIZES: dict[str, Any] = {"vocabulary": 23, "width": 24, "heads": 4, "feedforward": 14, "layers": 2, "max_length": 40}

LIKELIEST, DRAWN = Decoding("greedy", max_new_tokens=5), Decoding("sample", max_new_tokens=6, top_k=7)

REQUESTS: list[tuple[int, list[list[int]], Decoding]] = [
    (0, [[3, 5, 7, 11], [2]], LIKELIEST),
    (1, [[4, 4, 6, 8, 1, 9, 3, 2, 5, 5, 7]], replace(LIKELIEST, max_new_tokens=3)),
    (2, [[13, 5]], DRAWN),
    (3, [[1, 2, 3, 1, 2, 3, 1, 2]], replace(LIKELIEST, max_new_tokens=14)),
    (3, [[9], [8, 7, 6], [5, 5]], replace(DRAWN, repetition_penalty=1.3)),
    (4, [[6]], replace(LIKELIEST, max_new_tokens=1)),
    (20, [[2, 4, 6]], replace(LIKELIEST, repetition_penalty=1.5)),
]
"""The step before which each is sent, its prompts, and how it is written."""


def small(family: str, **settings: Any) -> Any:
    torch.manual_seed(4)
    name = next(name for name in models.presets() if models.preset(name).family == family)
    known = models.config_class(family).__dataclass_fields__
    turned = {"rotary_width": 4} if family in ("gpt-neox", "gpt-j") else {}
    sizes = {"key_value_heads": 2} | SIZES | turned | settings
    model = foveate.create(name, **{key: value for key, value in sizes.items() if key in known}).double().eval()
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -0.4, 0.4)
    return lean_copy(model)


def writings() -> list[Writing]:
    """One for each request, with a generator of its own."""
    seeds = (torch.Generator().manual_seed(seed) for seed in range(len(REQUESTS)))
    return [Writing(prompts, how, {0}, seed) for (_, prompts, how), seed in zip(REQUESTS, seeds, strict=True)]


@pytest.mark.parametrize("family", ["gpt", "llama", "gemma2"])  # learned, rotary and windowed positions
def test_each_request_gets_what_it_gets_alone(family: str) -> None:
    model = small(family)
    batch, requests, most = ContinuousBatch(model), writings(), 0
    for step in range(27):
        for (when, *_), writing in zip(REQUESTS, requests, strict=True):
            if when == step:
                batch.join(writing)
        most = max(most, batch.rows)
        if batch.writings:
            batch.step()
    assert most > 4
    assert not batch.writings
    for (_, prompts, how), writing, seed in zip(REQUESTS, requests, range(len(REQUESTS)), strict=True):
        alone = generate(model, prompts, how, {0}, torch.Generator().manual_seed(seed))
        assert [one.tokens for one in writing.outputs] == [one.tokens for one in alone]
        assert [one.ended for one in writing.outputs] == [one.ended for one in alone]
        for one, other in zip(writing.outputs, alone, strict=True):
            assert one.log_probs == pytest.approx(other.log_probs, abs=1e-5)


def test_a_batch_that_is_never_empty_keeps_no_padding_of_all_rows() -> None:
    model, how = small("llama"), Decoding("greedy", max_new_tokens=7)
    batch, longest = ContinuousBatch(model), 0
    for step in range(20):
        if step % 4 == 0:
            batch.join(Writing([[3, 5, 7]], how, set()))
        batch.step()
        longest = max(longest, 0 if batch._state is None else batch._state.past[0].length)
    assert 0 < longest < 15


def test_who_leaves_or_fails_disturbs_no_other() -> None:
    model, how = small("gpt"), Decoding("greedy", max_new_tokens=9)
    (alone,) = generate(model, [[3, 5, 7]], how, set())

    def fail(row: int, token: int) -> bool:
        raise UserError("the client's own")

    stays, leaves = Writing([[3, 5, 7]], how, set()), Writing([[2], [4, 4]], how, set())
    fails = Writing([[6, 1]], how, set(), on_token=fail)
    batch = ContinuousBatch(model)
    for one in (leaves, stays, fails):
        batch.join(one)
    assert isinstance(fails.error, UserError)
    batch.step()
    batch.leave(leaves)
    while stays.rows:
        batch.step()
    assert stays.outputs[0].tokens == alone.tokens
    assert len(leaves.outputs[0].tokens) == 2
    with pytest.raises(UserError, match="the client's own"):
        generate(model, [[6, 1]], how, set(), on_token=fail)


def test_models_whose_states_do_not_join_or_that_round_together_say_so() -> None:
    sizes: dict[str, Any] = {"vocabulary": 23, "width": 24, "heads": 4, "layers": 1, "feedforward": 14}
    plain, running, scored = (
        foveate.create("gpt-tiny", **sizes, mixing=mixing).eval()
        for mixing in ("attention", "retention", "multi-token")
    )
    assert can_share(plain, DRAWN)
    assert not can_share(running, LIKELIEST)
    assert not can_share(scored, LIKELIEST)
    assert can_share(in_int8(plain), LIKELIEST)
    assert not can_share(in_int8(plain), DRAWN)
