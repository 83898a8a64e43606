"""All models in small: every preset, and each of its fields that offers a choice at every value it offers.

A new preset, family or choice is tested by being there.
"""

from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
import torch
from torch import Tensor, nn

from foveate import models

SMALL = {
    "src_vocab": 17,
    "tgt_vocab": 13,
    "width": 12,
    "heads": 3,
    "feedforward": 11,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "max_length": 19,
    "embedding": 10,
    "layers": 2,
    "dropout": 0.0,
}
"""Sizes for tests, by the name of the field."""

NEEDED = {
    ("tie", "all"): {"tgt_vocab": 17},
    ("encoder", "embeddings"): {"embedding": 12},
}
"""Sizes that a choice needs to be equal: one vocabulary, one width of words and states."""

IDLE = [
    ("fixed_vector", {"score": ["additive", "dot", "scaled-dot", "biaffine"]}),
    *((name, {"score": ["none"]}) for name in ("select", "score_from", "input_feeding")),
    ("input_feeding", {"score_from": ["before"]}),
]
"""Fields that do nothing where another has one of these values."""

INPUTS = {
    "source": torch.tensor([[4, 5, 6, 7, 8, 9, 2], [9, 16, 5, 2, 0, 0, 0], [2, 0, 0, 0, 0, 0, 0]]),
    "source_lengths": torch.tensor([7, 4, 1]),
    "target": torch.tensor([[1, 4, 12, 6, 7], [1, 8, 4, 0, 0], [1, 9, 9, 4, 0]]),
    "target_lengths": torch.tensor([5, 3, 4]),
}


@dataclass(frozen=True)
class Variant:
    """A preset in small, perhaps with one field changed."""

    preset: str
    changed: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return "-".join([self.preset, *(f"{name}={value}" for name, value in self.changed)])

    @property
    def config(self) -> Any:
        preset = models.preset(self.preset)
        kind = models.config_class(preset.family)
        values = {**preset.values, **{name: value for name, value in SMALL.items() if name in get_type_hints(kind)}}
        for choice in ((name, value) for name, value in {**values, **dict(self.changed)}.items()):
            values.update(NEEDED.get(choice, {}))
        return kind(**{**values, **dict(self.changed)})

    def build(self) -> nn.Module:
        """The model with the same random weights each time, in evaluation mode."""
        torch.manual_seed(7)
        return models.build(models.preset(self.preset).family, self.config).eval()

    @property
    def attends(self) -> bool:
        return getattr(self.config, "score", None) != "none"


@cache
def variants() -> tuple[Variant, ...]:
    """All of them, each configuration once."""
    found: dict[str, Variant] = {}
    for preset in models.presets().values():
        changes: list[tuple] = [()]
        for part in fields(models.config_class(preset.family)):
            kind = get_type_hints(models.config_class(preset.family))[part.name]
            options = get_args(kind) if get_origin(kind) is Literal else (False, True) if kind is bool else ()
            changes += [((part.name, option),) for option in options]
        for change in changes:
            variant = Variant(preset.name, change)
            if not any(_idle(change, variant.config, *rule) for rule in IDLE):
                found.setdefault(repr(variant.config), variant)
    return tuple(found.values())


def _idle(changes: tuple, config: Any, name: str, where: dict[str, list[str]]) -> bool:
    others_say_so = all(getattr(config, other, None) in values for other, values in where.items())
    return name in dict(changes) and others_say_so


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "variant" in metafunc.fixturenames:
        metafunc.parametrize("variant", variants(), ids=str)


@pytest.fixture
def inputs() -> dict[str, Tensor]:
    """Three sentences of 7, 4 and 1 tokens, with translations of 5, 3 and 4."""
    return {name: value.clone() for name, value in INPUTS.items()}
