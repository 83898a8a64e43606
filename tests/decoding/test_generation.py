"""Writing after prompts: choices of tokens by hand, limits, ends, and what a caller stops."""

from typing import Any

import pytest
import torch

import foveate
from foveate.decoding import Decoding, generate
from foveate.decoding.generation import choose
from foveate.errors import UserError

LOGITS = torch.tensor([[1.0, 3.0, 2.0, -1.0, 0.5]])


def drawn(**settings: Any) -> set[int]:
    """The tokens that can be drawn."""
    generator = torch.Generator().manual_seed(5)
    many = choose(LOGITS.expand(701, -1), None, Decoding("sample", **settings), generator)
    return set(many.tolist())


def test_choices_by_hand() -> None:
    """Probabilities 0.08, 0.62, 0.23, 0.01, 0.05."""
    assert choose(LOGITS, None, Decoding("greedy")).tolist() == [1]
    assert drawn() == {0, 1, 2, 3, 4}
    assert drawn(top_k=2) == {1, 2}
    assert drawn(top_p=0.9) == {0, 1, 2}
    assert drawn(min_p=0.3) == {1, 2}
    assert drawn(min_p=0.1) == {0, 1, 2}


def test_repetition_penalty_by_hand() -> None:
    """Positive logits of seen tokens are divided by it, negative ones multiplied."""
    seen = torch.tensor([[False, True, False, True, False]])
    assert choose(LOGITS, seen, Decoding("greedy", repetition_penalty=1.4)).tolist() == [1]
    assert choose(LOGITS, seen, Decoding("greedy", repetition_penalty=1.6)).tolist() == [2]
    below = torch.tensor([[-1.0, -2.0]])
    assert choose(below, torch.tensor([[True, False]]), Decoding("greedy", repetition_penalty=3.0)).tolist() == [1]


def test_ends_limits_and_callers() -> None:
    torch.manual_seed(2)
    model = foveate.create("gpt-tiny", vocabulary=19, width=12, heads=3, feedforward=14, layers=2, max_length=11)
    model.eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-0.7, 0.7)
    prompts = [[3, 5, 7], [2], [11, 13]]
    free = generate(model, prompts, Decoding("greedy", max_new_tokens=6), set())
    assert [len(output.tokens) for output in free] == [6, 6, 6]
    assert not any(output.ended for output in free)
    end = free[1].tokens[2]
    ended = generate(model, prompts, Decoding("greedy", max_new_tokens=6), {end})
    for one, other in zip(ended, free, strict=True):
        expected = other.tokens[: other.tokens.index(end)] if end in other.tokens else other.tokens
        assert (one.tokens, one.ended) == (expected, end in other.tokens)
        assert len(one.log_probs) == len(one.tokens)
        torch.testing.assert_close(one.log_probs, other.log_probs[: len(one.tokens)], atol=1e-5, rtol=0)
    seen: list[tuple[int, int]] = []

    def stop(row: int, token: int) -> bool:
        seen.append((row, token))
        return row == 0 and len([one for one in seen if one[0] == 0]) == 2

    stopped = generate(model, prompts, Decoding("greedy", max_new_tokens=6), set(), on_token=stop)
    assert [output.tokens for output in stopped] == [free[0].tokens[:2], free[1].tokens, free[2].tokens]
    # 11 positions: three tokens of a prompt and eight more are read, the ninth is not
    longest = generate(model, prompts[:1], Decoding("greedy", max_new_tokens=99), set(), positions=11)
    assert len(longest[0].tokens) == 9
    with pytest.raises(UserError, match="an empty prompt has no next token"):
        generate(model, [[3], []], Decoding("greedy"), set())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_new_tokens": 0}, "max_new_tokens is 0, but must be at least 1"),
        ({"top_p": 0.9}, "give a temperature above 0"),
        ({"temperature": 1.0, "min_p": 1.5}, "min_p must be greater than 0 and at most 1, not 1.5"),
        ({"repetition_penalty": 0.0}, "repetition_penalty must be above 0, not 0.0"),
        ({"n_best": 2}, "n_best counts draws: give a temperature above 0"),
    ],
)
def test_mistakes(settings: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Decoding("sample", **{"temperature": 0.0, **settings}).check()
