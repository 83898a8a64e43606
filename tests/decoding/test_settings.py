"""One set of choices for all ways of decoding."""

import pytest
import torch

from foveate.contracts import UserError, from_dict
from foveate.decoding import Decoding, beam, decode, greedy, sample

SOURCES = {"source": torch.tensor([11, 5, 7])}
LENGTHS = torch.tensor([2, 0, 3])


def test_each_method_is_the_function_of_its_name(scripted) -> None:
    model = scripted(vocabulary=11)
    rule = {"length_factor": 1.5, "length_extra": 9}
    longest = torch.tensor([12, 9, 13])
    assert decode(model, SOURCES, LENGTHS, Decoding("greedy", **rule)) == [
        [found] for found in greedy(model, SOURCES, longest)
    ]
    found = decode(model, SOURCES, LENGTHS, Decoding(n_best=2, width=3, length_penalty=2.0, growth=1.5, **rule))
    assert found == beam(model, SOURCES, longest, 3, 2, 2.0, None, 1.5)
    assert found != beam(model, SOURCES, longest, 3, 2, 2.0, 1.0)
    settings = Decoding("sample", n_best=3, temperature=0.7, top_k=5, top_p=0.8, **rule)
    first, second = torch.Generator().manual_seed(1), torch.Generator().manual_seed(1)
    assert decode(model, SOURCES, LENGTHS, settings, first) == sample(model, SOURCES, longest, 3, 0.7, 5, 0.8, second)


def test_greedy_search_has_one_answer(scripted) -> None:
    with pytest.raises(UserError, match="one output, not n_best=2"):
        decode(scripted(vocabulary=11), SOURCES, LENGTHS, Decoding("greedy", n_best=2))


def test_settings_come_from_plain_values() -> None:
    assert from_dict(Decoding, {"method": "sample", "top_p": 1}, "test") == Decoding("sample", top_p=1.0)
    with pytest.raises(UserError, match="did you mean width"):
        from_dict(Decoding, {"widht": 3}, "test")
