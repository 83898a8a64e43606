"""Decoding on a pretended accelerator: what the CPU finds, and one thing a step that the CPU waits for: the ends."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from pretended import DEVICE, REAL, pretended_device
from torch import Tensor

import foveate
from foveate.decoding import Decoding, beam, generate, greedy, sample
from foveate.special_tokens import SpecialTokens

ENDING = SpecialTokens({"pad": 0, "start": 2, "end": 3}, withheld=(0, 2, 3))
"""The end is never written, so that outputs have their greatest length."""

Inputs = dict[str, Tensor]


def drawn(model: Any, inputs: Inputs, steps: int) -> Any:
    device = next(iter(inputs.values())).device
    return sample(model, inputs, ENDING, steps, 2, top_k=5, generator=torch.Generator(device).manual_seed(1))


READS = {("beam", "transformer-tiny"): 3}
"""Beams of a sentence share its source: which ones do is read too, in each step."""

SEARCHES: dict[str, Callable[[Any, Inputs, int], Any]] = {
    "greedy": lambda model, inputs, steps: greedy(model, inputs, ENDING, steps),
    "beam": lambda model, inputs, steps: beam(model, inputs, ENDING, steps, 3),
    "sample": drawn,
}


pytestmark = pytest.mark.skipif(bool(REAL), reason="a real device draws other numbers, and does not tell of waits")


@pytest.mark.parametrize("name", ["gpt-tiny", "transformer-tiny", "rnn"])
@pytest.mark.parametrize("search", SEARCHES)
def test_search(search: str, name: str) -> None:
    tokens = torch.tensor([[2, 5, 6], [2, 7, 9]])
    words = {"vocabulary": 17} if name == "gpt-tiny" else {"src_vocab": 17, "tgt_vocab": 17}
    lengths = torch.tensor([3, 3] if name == "gpt-tiny" else [3, 2])
    names = ("tokens", "lengths") if name == "gpt-tiny" else ("source", "source_lengths")
    model: Any = foveate.create(name, width=16, **words).eval()
    inputs = dict(zip(names, (tokens, lengths), strict=True))
    with torch.no_grad():
        expected = SEARCHES[search](model, inputs, 9)
        reads = []
        with pretended_device() as crossings:
            model.to(DEVICE)
            own = {part: value.to(DEVICE) for part, value in inputs.items()}
            for steps in (5, 9):
                crossings.clear()
                found = SEARCHES[search](model, own, steps)
                reads.append(sum(crossings.values()))
    assert [[one.tokens for one in rivals] if isinstance(rivals, list) else rivals.tokens for rivals in found] == [
        [one.tokens for one in rivals] if isinstance(rivals, list) else rivals.tokens for rivals in expected
    ]
    each_step = (reads[1] - reads[0]) / 4
    assert each_step == READS.get((search, name), 1)


@pytest.mark.parametrize("method", ["greedy", "sample"])
def test_token_by_token(method: str) -> None:
    model: Any = foveate.create("gpt-tiny", vocabulary=17, width=16).eval()
    prompts, settings = [[2, 5, 6], [2, 7]], {"method": method, "top_k": 5}

    def written(steps: int, device: str | torch.device) -> Any:
        generator = torch.Generator(device).manual_seed(1)
        return generate(model, prompts, Decoding(max_new_tokens=steps, **settings), {100}, generator)

    expected, reads = written(9, "cpu"), []
    with pretended_device() as crossings:
        model.to(DEVICE)
        for steps in (5, 9):
            crossings.clear()
            found = written(steps, DEVICE)
            reads.append(sum(crossings.values()))
    assert [one.tokens for one in found] == [one.tokens for one in expected]
    assert reads[1] - reads[0] <= 4
