"""Texts that are written for several clients at once: each client gets what it gets alone."""

import sys
import threading
from concurrent.futures import CancelledError
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "parity"))

from public_models import folder_of
from served_skill import LIMITS

import foveate
from foveate.errors import UserError
from foveate.forms.answers import answer_values
from foveate.forms.prompts import Prompting
from foveate.serving import Service

LONG = "the keeper lit a lamp"


@pytest.fixture(scope="module")
def skill(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return foveate.load(folder_of("llama", tmp_path_factory.mktemp("llama"))[0])


class Held:
    """A service that waits after the first request until all others are there; how many answers it writes at once."""

    def __init__(self, skill: Any, batch: int = 64) -> None:
        self.service = Service(skill, skill.options_with(), replace(LIMITS, batch=batch))
        self.sizes: list[int] = []
        self.go = threading.Event()
        self.service.on_batch = self._on_batch

    def _on_batch(self, size: int) -> None:
        self.sizes.append(size)
        assert self.go.wait(30)


def test_each_client_gets_what_it_gets_alone(skill: Any) -> None:
    asked: list[tuple[list[str], dict[str, Any]]] = [
        ([LONG], {"max_new_tokens": 24}),
        (["climbed", "up stairs ,", LONG], {"max_new_tokens": 5}),
        (["climbed"], {"method": "sample", "temperature": 1.0, "seed": 3, "n_best": 3, "max_new_tokens": 9}),
        (["the keeper"], {"prompting": Prompting(choices=("up", "dawn"))}),
        (["a lamp", "lamp " * 900], {"max_new_tokens": 3}),
        (["lit a lamp"], {"max_new_tokens": 1}),
    ]
    options = [skill.options_with(**changes) for _, changes in asked]
    held = Held(skill)
    futures = [held.service.answer(texts, how) for (texts, _), how in zip(asked, options, strict=True)]
    looked = held.service.compute(lambda: len(skill.look("lit a lamp").sight.sites))
    wrong = held.service.answer(["a"], replace(options[0], seed=-1))
    held.go.set()
    for (texts, _), how, future in zip(asked, options, futures, strict=True):
        alone = [answer_values(text, answer) for text, answer in zip(texts, skill.answer(texts, how), strict=True)]
        for one, other in zip(future.result(30), alone, strict=True):
            assert one.keys() == other.keys()
            assert one.get("text") == other.get("text")
            assert one.get("error") == other.get("error")
            assert one.get("log_prob") == pytest.approx(other.get("log_prob"), abs=1e-4)
    assert looked.result(30)[0] > 0
    with pytest.raises(UserError, match="seed"):
        wrong.result(30)
    assert held.sizes[:3] == [1, 4, 7]


def test_those_who_leave_are_dropped_and_those_without_room_wait(skill: Any) -> None:
    here, how = True, skill.options_with(max_new_tokens=60)
    brief = skill.options_with(max_new_tokens=3)
    held = Held(skill, batch=2)
    stays = held.service.answer([LONG], how)
    leaves = held.service.answer(["up"], how, lambda: here)
    waits = held.service.answer(["climbed"], brief)
    steps = []
    step = held.service._batcher._joined.step

    def leave() -> None:
        nonlocal here
        steps.append(held.service._batcher._joined.count)
        here = len(steps) < 3
        step()

    held.service._batcher._joined.step = leave  # type: ignore[method-assign]
    held.go.set()
    assert waits.result(30)[0]["text"] == skill.run("climbed", brief).text
    assert stays.result(30)[0]["text"] == skill.run(LONG, how).text
    with pytest.raises(CancelledError):
        leaves.result(30)
    assert held.sizes == [1, 2, 2]
    assert steps[:3] == [2, 2, 2]
