"""One set of choices for all ways of decoding."""

from typing import Any

import pytest
import torch

from foveate.config import from_dict
from foveate.decoding import Decoding, beam, decode, greedy, sample
from foveate.errors import UserError
from foveate.special_tokens import LEARNED

END = LEARNED.end

SOURCES = {"source": torch.tensor([11, 5, 7])}
LENGTHS = torch.tensor([2, 0, 3])


def test_each_method_is_the_function_of_its_name(scripted) -> None:
    model = scripted(vocabulary=11)
    rule = {"length_factor": 1.5, "length_extra": 9}
    longest = torch.tensor([12, 9, 13])
    assert decode(model, SOURCES, LEARNED, LENGTHS, Decoding("greedy", **rule)) == [
        [found] for found in greedy(model, SOURCES, LEARNED, longest)
    ]
    found = decode(
        model, SOURCES, LEARNED, LENGTHS, Decoding(n_best=2, width=3, length_penalty=2.0, growth=1.5, **rule)
    )
    assert found == beam(model, SOURCES, LEARNED, longest, 3, 2, 2.0, None, 1.5)
    assert found != beam(model, SOURCES, LEARNED, longest, 3, 2, 2.0, 1.0)
    settings = Decoding("sample", n_best=3, temperature=0.7, top_k=5, top_p=0.8, **rule)
    first, second = torch.Generator().manual_seed(1), torch.Generator().manual_seed(1)
    assert decode(model, SOURCES, LEARNED, LENGTHS, settings, first) == sample(
        model, SOURCES, LEARNED, longest, 3, 0.7, 5, 0.8, second
    )


@pytest.mark.parametrize("method", ["greedy", "beam", "sample"])
def test_no_output_is_longer_than_the_positions_that_are_learned(method: str, endless: Any) -> None:
    """A model that never ends writes them all, and no more."""
    source = {"source": torch.tensor([[5, 6, END]]), "source_lengths": torch.tensor([3])}
    (found,) = decode(endless, source, LEARNED, torch.tensor([3]), Decoding(method), torch.Generator().manual_seed(1))
    assert (len(found[0].tokens), found[0].ended) == (7, False)


def test_greedy_search_has_one_answer(scripted) -> None:
    with pytest.raises(UserError, match="one output, not n_best=2"):
        decode(scripted(vocabulary=11), SOURCES, LEARNED, LENGTHS, Decoding("greedy", n_best=2))


@pytest.mark.parametrize("method", ["greedy", "beam", "sample"])
@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"length_extra": -1}, "length_extra is -1, but must be from 0 to 1,000,000"),
        ({"length_extra": 2**63}, "length_extra is 9223372036854775808, but must be below 9,223"),
        ({"length_factor": float("nan")}, "length_factor is nan, but must be from 0 to"),
        ({"length_factor": float("inf")}, "length_factor is inf, but must be from 0 to"),
        ({"length_factor": 1e6}, "length_factor is 1000000.0, but must be from 0 to 1,000$"),
        ({"length_extra": 10**400}, "length_extra is a number of more than 30 digits, but must be below 9,223"),
        ({"length_factor": 0.0, "length_extra": 0}, "length_factor and length_extra are both 0"),
    ],
)
def test_a_length_that_cannot_be(method: str, rule: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        from_dict(Decoding, {"method": method, **rule}, "test").check()


def test_a_method_that_there_is_not() -> None:
    settings = Decoding()
    settings.method = "beams"  # which no type checker sees
    with pytest.raises(UserError, match=r"^unknown method 'beams'; did you mean beam\?$"):
        settings.check()


def test_settings_come_from_plain_values() -> None:
    assert from_dict(Decoding, {"method": "sample", "top_p": 1}, "test") == Decoding("sample", top_p=1.0)
    with pytest.raises(UserError, match="did you mean width"):
        from_dict(Decoding, {"widht": 3}, "test")
