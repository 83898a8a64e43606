"""Unmasking: how many places each step fills in, guidance, and chance."""

import math

import pytest
import torch
from torch import Tensor, nn

from foveate.contracts import Output
from foveate.decoding import Unmasking, unmask
from foveate.errors import UserError

HIDDEN = 5


class Known(nn.Module):
    """Gives place t the token (t + shift) % 5, the surer the further to the left; notes how many places are hidden."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[int] = []

    def forward(self, image: Tensor, shift: Tensor) -> Output:
        self.seen.append(int((image == HIDDEN).sum(1)[0]))
        places = torch.arange(image.shape[1])
        logits = torch.zeros(*image.shape, HIDDEN)
        for row in range(len(image)):
            logits[row, places, (places + shift[row]) % HIDDEN] = 30.0 - places
        return Output(logits)


def test_a_cosine_says_how_many_places_are_left() -> None:
    model, hidden = Known(), torch.full((2, 16), HIDDEN)
    shift = {"shift": torch.tensor([0, 3])}
    settings = Unmasking(steps=4, temperature=0, order_temperature=0, guidance=1)
    found = unmask(model, hidden, shift, shift, settings)
    assert model.seen == [16, *(math.floor(16 * math.cos(math.pi / 2 * step / 4)) for step in (1, 2, 3))]
    places = torch.arange(16)
    assert found.tolist() == [(places % HIDDEN).tolist(), ((places + 3) % HIDDEN).tolist()]


def test_places_that_are_known_stay() -> None:
    hidden = torch.full((1, 7), HIDDEN)
    hidden[0, 2] = 4
    shift = {"shift": torch.tensor([0])}
    found = unmask(Known(), hidden, shift, shift, Unmasking(steps=3, temperature=0, guidance=1))
    assert found.tolist() == [[0, 1, 4, 3, 4, 0, 1]]


def test_guidance_moves_away_from_what_is_likely_without_a_condition() -> None:
    """Alone, the condition's token wins by nothing; with guidance 2 the other one is pushed down."""

    class Tied(nn.Module):
        def forward(self, image: Tensor, known: Tensor) -> Output:
            logits = torch.tensor([2.0, 1.9, 0.0, 0.0, 0.0]) if known[0] else torch.tensor([2.0, 0.0, 0.0, 0.0, 0.0])
            return Output(logits.expand(*image.shape, -1))

    hidden = torch.full((1, 3), HIDDEN)
    condition, nothing = {"known": torch.tensor([1])}, {"known": torch.tensor([0])}
    for guidance, token in ((1.0, 0), (2.0, 1)):
        settings = Unmasking(steps=1, temperature=0, guidance=guidance)
        assert unmask(Tied(), hidden, condition, nothing, settings).tolist() == [[token] * 3]


def test_it_repeats_with_its_seed() -> None:
    hidden, shift = torch.full((4, 30), HIDDEN), {"shift": torch.zeros(4, dtype=torch.long)}
    draws = [
        unmask(Known(), hidden, shift, shift, Unmasking(temperature=9.0), torch.Generator().manual_seed(seed))
        for seed in (1, 1, 2)
    ]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    assert int(draws[0].max()) < HIDDEN


@pytest.mark.parametrize(("name", "value"), [("steps", 0), ("temperature", -1.0), ("guidance", math.inf)])
def test_settings_that_cannot_be(name: str, value: float) -> None:
    with pytest.raises(UserError, match=name):
        Unmasking(**{name: value}).check()  # type: ignore[arg-type]
