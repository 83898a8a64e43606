"""Drafts from the text itself: greedy search's own text, in fewer steps of the model."""

from itertools import cycle
from typing import Any

import pytest
import torch

import foveate
from foveate import models
from foveate.decoding import Decoding, generate, generation
from foveate.decoding.drafts import FIRST, MOST, RUN, Drafts
from foveate.inference.int8 import in_int8
from foveate.models.text import CAUSAL

SIZES: dict[str, Any] = {"vocabulary": 23, "width": 24, "heads": 3, "feedforward": 14, "layers": 2, "max_length": 90}

PROMPT = [3, 5, 7, 11, 2, 4, 6, 3, 5, 7, 11]


def test_guesses() -> None:
    drafts = Drafts(PROMPT)
    assert drafts.guess(9) == [2, 4, 6, 3]
    assert drafts.guess(2) == [2, 4]
    drafts.learn(FIRST, FIRST)
    assert drafts.guess(9) == [2, 4, 6, 3, 5, 7, 11, 2]  # twice as many, and from the beginning where the text ends
    for _ in range(4):
        drafts.learn(FIRST, FIRST)
    assert len(drafts.guess(99)) == MOST
    assert drafts.guess(-1) == []
    assert Drafts([8] * (RUN + 1)).guess(3) == [8, 8, 8]
    assert len(Drafts([*range(40), *range(RUN)]).guess(99)) == FIRST
    drafts.append(9)
    assert drafts.guess(9) == []


def test_wrong_guesses_pause() -> None:
    """For one token, then two, four, ...: a text that only seems to repeat itself costs little."""
    text, drafts, silent = cycle([1, 2, 3]), Drafts([1, 2, 3, 1, 2, 3]), []
    for _ in range(3):
        drafts.learn(FIRST, 0)
        count = 0
        while not drafts.guess(MOST):
            drafts.append(next(text))
            count += 1
        silent.append(count)
    assert silent == [1, 2, 4]


def small(family: str, **settings: Any) -> Any:
    torch.manual_seed(4)
    name = next(name for name in models.presets() if models.preset(name).family == family)
    known = models.config_class(family).__dataclass_fields__
    turned = {"rotary_width": 4} if family in ("gpt-neox", "gpt-j") else {}
    sizes = {"key_value_heads": None} | SIZES | turned | settings
    sizes = {key: value for key, value in sizes.items() if key in known}
    model = foveate.create(name, **sizes).double().eval()
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -0.4, 0.4)
    return model


def written(model: Any, monkeypatch: pytest.MonkeyPatch, drafted: bool, **options: Any) -> tuple[Any, int]:
    """What is written, and in how many steps."""
    steps: list[int] = []
    with monkeypatch.context() as patch:
        if not drafted:
            patch.setattr(generation, "_takes_drafts", lambda *_: False)
        read = type(model).read
        patch.setattr(type(model), "read", lambda self, *given: steps.append(1) or read(self, *given))
        (found,) = generate(model, [PROMPT], Decoding("greedy", max_new_tokens=50), set(), **options)
    return found, len(steps)


@pytest.mark.parametrize("family", CAUSAL)
def test_every_family_writes_the_same_in_fewer_steps(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = small(family)
    plain, many = written(model, monkeypatch, drafted=False)
    drafted, few = written(model, monkeypatch, drafted=True)
    assert drafted.tokens == plain.tokens
    assert drafted.log_probs == pytest.approx(plain.log_probs, abs=1e-5)
    assert few < many == len(plain.tokens) == 50


@pytest.mark.parametrize("most", [11, 12, 13, 20, 31])
def test_no_position_that_was_not_learned_is_read(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = small("gpt", max_length=most)
    plain, _ = written(model, monkeypatch, drafted=False, positions=most)
    drafted, _ = written(model, monkeypatch, drafted=True, positions=most)
    assert drafted.tokens == plain.tokens
    assert len(drafted.tokens) == most + 1 - len(PROMPT)


class Recited(torch.nn.Module):
    """Goes on from any prompt as a text that it knows by heart; it is its own state, and counts the times it reads."""

    can_crop = True

    def __init__(self, text: list[int]) -> None:
        super().__init__()
        self.text, self.place, self.times = torch.tensor(text), 0, 0
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def prefill(self, tokens: torch.Tensor, **_: Any) -> tuple[torch.Tensor, Any]:
        return self.steps(tokens, self)[:, -1], self

    def steps(self, tokens: torch.Tensor, state: Any) -> torch.Tensor:
        self.place, self.times = self.place + tokens.shape[1], self.times + 1
        coming = self.text[self.place - tokens.shape[1] + 1 : self.place + 1]
        return torch.nn.functional.one_hot(coming, 23).float()[None]

    def step(self, tokens: torch.Tensor, state: Any) -> torch.Tensor:
        return self.steps(tokens[:, None], state)[:, 0]

    def crop(self, count: int) -> None:
        self.place -= count

    def reorder(self, rows: torch.Tensor) -> None:
        """There is one row."""


@pytest.mark.parametrize("end", [11, 2, 4, 6, 8, 3])
def test_an_end_in_the_middle_of_a_draft(end: int) -> None:
    """Nothing is written behind it, though the draft goes on."""
    verse = [3, 5, 7, 11, 2, 4, 6, 8]
    model = Recited(4 * verse)
    (found,) = generate(model, [verse + verse[:3]], Decoding("greedy", max_new_tokens=20), {end})
    expected = (verse[3:] + verse)[: (verse[3:] + verse).index(end)]
    assert (found.tokens, found.ended) == (expected, True)
    assert model.times == (1 if end == 11 else 2)


def test_a_caller_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    model, seen = small("gpt"), []
    plain, _ = written(model, monkeypatch, drafted=False)

    def stop(row: int, token: int) -> bool:
        seen.append(token)
        return len(seen) == 17

    drafted, _ = written(model, monkeypatch, drafted=True, on_token=stop)
    assert seen == drafted.tokens == plain.tokens[:17]


@pytest.mark.parametrize("mixing", ["latent", "differential", "talking", "multi-token", "linear", "mamba-2"])
def test_other_ways_to_mix(mixing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state of what was read cannot be taken back: it takes a token at a time."""
    model = small("gpt", mixing=mixing, heads=4, positions="none")
    plain, many = written(model, monkeypatch, drafted=False)
    drafted, few = written(model, monkeypatch, drafted=True)
    assert drafted.tokens == plain.tokens
    assert few == many if mixing in ("multi-token", "linear", "mamba-2") else few < many


def test_products_that_depend_on_the_batch_take_a_token_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small("gpt").float()
    assert written(model, monkeypatch, drafted=True)[1] < 50
    assert written(in_int8(model), monkeypatch, drafted=True)[1] == 50


def test_a_look_sees_a_row_for_each_token(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small("gpt")
    with foveate.look(model) as sight:
        found, many = written(model, monkeypatch, drafted=True)
    assert many == len(found.tokens)
    assert all(sight[name].shape[2] == len(PROMPT) + len(found.tokens) - 1 for name in sight.sites)
