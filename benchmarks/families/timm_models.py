"""The families of timm: the smallest model of each, looked at and compared with its own weights.

A family is the models of one file whose names begin with the same word.
"""

import re

import timm
import torch
from torch import Tensor, nn

from families.outcome import Outcome
from families.reference import has_softmax, weights_of
from families.trial import can_be_seen, decided, run, told, tried

SMALLEST = ("test", "atto", "femto", "pico", "nano", "xxtiny", "xtiny", "tiny", "xxs", "xx", "xs", "mini", "s0", "b0")
SMALLEST += ("small", "s")
"""What the smallest models are called, the smallest first."""

PICTURE = 128
"""Pixels a side, where a model can be built for them."""


def names() -> list[str]:
    return sorted(_families())


def _families() -> dict[str, list[str]]:
    """The models of each family: those of one file whose names begin with the same word, sizes aside."""
    found: dict[str, list[str]] = {}
    for file in timm.list_modules():
        for name in timm.list_models(module=file):
            word = re.match(r"[a-z]+?(v\d+)?(?![a-z])", name)
            family = f"{file}.{word[0] if word else name}"
            found.setdefault(family, []).append(name)
    return {family: models for family, models in found.items() if not family.endswith(".test")}


def examine(family: str) -> Outcome:
    """Build the family's smallest model, look at it as it is and without fused attention, compare.

    In double precision, because rounding errors grow over many layers. What computes no softmax has no attention
    weights, which shows without any numbers.
    """
    outcome = Outcome(family)
    try:
        outcome.model = _smallest(_families()[family])
        options, size = _small(outcome.model)
        with torch.device("meta"):
            model, picture = _built(outcome.model, options), torch.randn(2, *size, dtype=torch.double)
        if has_softmax(lambda: run(model, {"x": picture})):
            torch.manual_seed(2)
            model, picture = decided(_built(outcome.model, options)), torch.randn(picture.shape, dtype=torch.double)
        inputs = {"x": picture}
        output = run(model, inputs)
    except Exception as error:  # anything at all may be missing
        outcome.verdict, outcome.reason = "not run", told(error)
        return outcome
    outcome.inputs = " x ".join(map(str, picture.shape))
    fused = any(getattr(module, "fused_attn", False) is True for module in model.modules())
    outcome.implementation = "fused" if fused else "own"
    if picture.is_meta:
        tried(outcome, "default", model, inputs, [], output, lambda message: True)
        return outcome
    eager = _set_fused(decided(_built(outcome.model, options)), False)
    reference = weights_of(eager, lambda: run(eager, inputs))
    advised = Advised(outcome.model, options, inputs)
    if fused and reference:
        tried(outcome, "eager", eager, inputs, reference, run(eager, inputs), advised)
    tried(outcome, "default", model, inputs, reference, output, advised)
    return outcome


class Advised:
    """Whether what an error advises is true of a model."""

    def __init__(self, name: str, options: dict[str, int], inputs: dict[str, Tensor]) -> None:
        self.name, self.options, self.inputs = name, options, inputs

    def __call__(self, message: str) -> bool:
        if "fused_attn = True" not in message:
            return True
        model = _set_fused(decided(_built(self.name, self.options)), True)
        return can_be_seen(model, self.inputs)


def _smallest(models: list[str]) -> str:
    def size(name: str) -> tuple[int, int, str]:
        parts = re.split(r"[_.]", name)
        return min((SMALLEST.index(part) for part in parts if part in SMALLEST), default=99), len(name), name

    return min(models, key=size)


def _small(name: str) -> tuple[dict[str, int], tuple[int, int, int]]:
    """Options that make the model smaller, as far as it takes any, and the size of its picture."""
    for options in ({"depth": 2, "img_size": PICTURE}, {"depth": 2}, {"img_size": PICTURE}, {}):
        try:
            with torch.device("meta"):
                model = _built(name, options)
                channels, *size = model.default_cfg["input_size"]
                height, width = (PICTURE, PICTURE) if "img_size" in options else size
                run(model, {"x": torch.randn(2, channels, height, width, dtype=torch.double)})
        except Exception:  # it takes no such options, or not together with the others
            continue
        return options, (channels, height, width)
    raise LookupError("it runs with no options")


def _built(name: str, options: dict[str, int]) -> nn.Module:
    torch.manual_seed(0)
    return timm.create_model(name, **options).double().eval()


def _set_fused(model: nn.Module, fused: bool) -> nn.Module:
    for module in model.modules():
        if hasattr(module, "fused_attn"):
            module.fused_attn = fused
    return model
