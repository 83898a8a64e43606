"""Each field of each preset acts: another value changes the weights or the output, or is refused."""

from dataclasses import fields, replace
from typing import Any, Literal, get_args, get_origin

import pytest
import torch
from torch import Tensor
from variants import AS_THEY_ARE, ELSEWHERE, PRESETS, Variant, field_types

import foveate
from foveate import models
from foveate.errors import UserError
from foveate.models.idle_settings import idle_settings

READ_ELSEWHERE = {
    "max_length": "the longest text that a task takes, also where positions need no table",
    "image_size": "the size that images are scaled to, also where a model reads any",
    "patch_size": "the size of the patches of images, also where a model reads none",
    "last_pool": "the size of the last map, which small images do not have",
    "unknown": "the token of hidden words, where a task hides some",
    "window": "the reach of attention, which short texts do not have",
    "longest": "the end of the last bucket of distances, which short texts do not reach",
    "farthest": "the distances that share a bucket, which short texts do not have",
    "window_every": "which layers have that reach, of more layers than these have",
    "condition_dropout": "how often a condition is hidden, where one is given",
    "antialias": "how positions are interpolated, for images of other sizes",
    "head": "what is predicted, which a task decides",
    "windows": "how sounds are read and words are written, which a task decides",
}
"""Fields that something else than the model reads, or that need larger inputs than these."""


def small() -> list[Variant]:
    """Each preset in small; of several that are then the same, one."""
    found: dict[tuple[str, str], Variant] = {}
    for name, preset in PRESETS.items():
        if preset.family not in ELSEWHERE and name not in AS_THEY_ARE:
            variant = Variant(name)
            found.setdefault((preset.family, repr(variant.config)), variant)
    return list(found.values())


def other_values(kind: Any, value: Any) -> list[Any]:
    """Values that a field may have instead."""
    if get_origin(kind) is Literal:
        return [option for option in get_args(kind) if option != value]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [2 * value, value + 1]
    if isinstance(value, float):
        return [value / 2 + 0.1, 0.0, 0.9]
    return []


def run(variant: Variant, config: Any, training: bool) -> tuple[dict[str, Tensor], list[Any]]:
    """The weights of a model with a fixed seed, and all of its output."""
    torch.manual_seed(7)
    model = models.build(PRESETS[variant.preset].family, config).train(training)
    torch.manual_seed(3)
    with torch.no_grad():
        output = model(**variant.inputs)
    return model.state_dict(), [getattr(output, part.name) for part in fields(output)]


def equal(first: Any, second: Any) -> bool:
    """Whether two weights or outputs are the same."""
    if isinstance(first, Tensor):
        return isinstance(second, Tensor) and first.shape == second.shape and torch.equal(first, second)
    if isinstance(first, dict):
        return (
            isinstance(second, dict)
            and first.keys() == second.keys()
            and all(equal(first[name], second[name]) for name in first)
        )
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(equal, first, second))
    return repr(first) == repr(second)


@pytest.mark.parametrize("preset", small(), ids=str)
def test_each_field_acts_or_is_refused(preset: Variant) -> None:
    family = PRESETS[preset.preset].family
    kind, usual = models.config_class(family), preset.config
    if hasattr(usual, "rotary_width"):  # of a single frequency, the base does not matter
        usual = replace(usual, rotary_width=4)
    before = {training: run(preset, usual, training) for training in (False, True)}
    for part in fields(kind):
        if part.name in {*models.sizes_of_data(family), *READ_ELSEWHERE}:
            continue
        acts: dict[bool, list[bool]] = {}
        for value in other_values(field_types(kind)[part.name], getattr(usual, part.name)):
            try:
                config = replace(usual, **{part.name: value})
                refused = part.name in idle_settings(config)
                if not refused and any(acts.get(False, [])):
                    continue  # one value that acts is enough
                changes = not all(equal(before[way], run(preset, config, way)) for way in before)
            except (UserError, RuntimeError):  # sizes that do not fit together
                continue
            acts.setdefault(refused, []).append(changes)
        assert not any(acts.get(True, [])), f"{part.name} is refused, but acts"
        assert any(acts.get(False, [True])), f"{part.name} does nothing, and is not refused"


@pytest.mark.parametrize(
    ("preset", "changes", "told"),
    [
        ("rnn", {"select": "hard"}, "architecture.select does nothing where score is 'none'"),
        ("rnn-bahdanau", {"input_feeding": True}, "architecture.input_feeding does nothing where score_from is"),
        ("rnn-bahdanau", {"samples": 3}, "architecture.samples does nothing where select is 'soft'"),
        ("rnn-bahdanau", {"fixed_vector": "every"}, "architecture.fixed_vector does nothing where score is 'additive'"),
        ("gpt-tiny", {"window_every": 3}, "architecture.window_every does nothing where window is None"),
        ("rnn-acceptor", {"score": "dot"}, "architecture.score does nothing where pooling is 'last'"),
    ],
)
def test_what_is_said_of_one_that_does_not(preset: str, changes: dict[str, Any], told: str) -> None:
    sizes = dict.fromkeys(models.sizes_of_data(models.preset(preset).family), 11)
    with pytest.raises(UserError, match=told):
        foveate.create(preset, device="meta", **sizes, **changes)
