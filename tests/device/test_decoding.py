"""Decoding of every family on a pretended accelerator: what the CPU finds, and one thing a step that the CPU waits
for: the ends."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from further_families import FURTHER, INSTRUCTIONS, SEEN, build
from pretended import DEVICE, REAL, pretended_device
from torch import Tensor
from variants import ELSEWHERE, PRESETS, Variant

import foveate
from foveate.contracts import Generator
from foveate.decoding import Decoding, beam, generate, greedy, sample
from foveate.decoding.acting import act
from foveate.special_tokens import SpecialTokens

ENDING = SpecialTokens({"pad": 0, "start": 2, "end": 3}, withheld=(0, 2, 3))
"""The end is never written, so that outputs have their greatest length."""

Inputs = dict[str, Tensor]


def drawn(model: Any, inputs: Inputs, steps: int) -> Any:
    device = next(iter(inputs.values())).device
    return sample(model, inputs, ENDING, steps, 2, top_k=5, generator=torch.Generator(device).manual_seed(1))


def _writer(variant: Variant) -> tuple[Any, Inputs]:
    """The model and what it reads: a source, an image or a prompt."""
    inputs = {name: value for name, value in variant.inputs.items() if not name.startswith("target")}
    if "tokens" in inputs:
        inputs = {"tokens": torch.tensor([[2, 5, 6], [2, 7, 9]]), "lengths": torch.tensor([3, 3])}
    return variant.build(), inputs


def _sar() -> tuple[Any, Inputs]:
    return build("sar").eval(), {name: value for name, value in FURTHER["sar"][2]().items() if name != "target"}


WRITERS: dict[str, Callable[[], tuple[Any, Inputs]]] = {
    preset.family: partial(_writer, Variant(preset.name))
    for preset in reversed(PRESETS.values())
    if preset.family not in ELSEWHERE and issubclass(Variant(preset.name).model, Generator)
} | {"sar": _sar}
"""Every family that writes one token after the other: a model, and what it reads."""


def tokens_of(outputs: Any) -> list[list[int]]:
    """The tokens of all outputs, each of which may have rivals."""
    rows = [rivals if isinstance(rivals, list) else [rivals] for rivals in outputs]
    return [output.tokens for rivals in rows for output in rivals]


SEARCHES: dict[str, Callable[[Any, Inputs, int], Any]] = {
    "greedy": lambda model, inputs, steps: greedy(model, inputs, ENDING, steps),
    "beam": lambda model, inputs, steps: beam(model, inputs, ENDING, steps, 3),
    "sample": drawn,
}


pytestmark = [
    pytest.mark.usefixtures("unchecked"),
    pytest.mark.skipif(bool(REAL), reason="a real device draws other numbers, and does not tell of waits"),
]


@pytest.mark.parametrize("family", WRITERS)
@pytest.mark.parametrize("search", SEARCHES)
def test_search(search: str, family: str) -> None:
    model, inputs = WRITERS[family]()
    with torch.no_grad():
        expected = SEARCHES[search](model, inputs, 5)
        reads = []
        with pretended_device() as crossings:
            model.to(DEVICE)
            own = {part: value.to(DEVICE) for part, value in inputs.items()}
            for steps in (3, 5):
                crossings.clear()
                found = SEARCHES[search](model, own, steps)
                reads.append(sum(crossings.values()))
    assert tokens_of(found) == tokens_of(expected)
    assert reads[1] - reads[0] == 2, "a step reads more than the ends"


@dataclass
class Room:
    """A world that shows the same things at each step, and never ends."""

    seen: dict[str, np.ndarray]

    def observe(self) -> dict[str, np.ndarray]:
        return self.seen

    def act(self, action: int) -> bool:
        return False

    def copy(self) -> "Room":
        return self


@pytest.mark.parametrize("width", [1, 3], ids=["greedy", "beam"])
@pytest.mark.parametrize("family", SEEN)
def test_agents(family: str, width: int) -> None:
    """Agents act in their worlds as on the CPU, and each step reads its choices alone."""
    model: Any = build(family).eval()
    name, shape = SEEN[family]
    rooms = [Room({name: np.random.default_rng(row).random(shape, np.float32)}) for row in range(3)]

    def acted(device: str | torch.device, steps: int) -> list[list[int]]:
        inputs = {part: value.to(device) for part, value in INSTRUCTIONS.items()}
        return [episode.actions for episode in act(model, inputs, rooms, steps, width)]

    expected, reads = acted("cpu", 5), []
    with pretended_device() as crossings:
        model.to(DEVICE)
        for steps in (3, 5):
            crossings.clear()
            found = acted(DEVICE, steps)
            reads.append(sum(crossings.values()))
    assert found == expected
    assert reads[1] - reads[0] == 2


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
