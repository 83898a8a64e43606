"""Several texts in one row are read as if each stood alone, by every causal model."""

import pytest
import torch

import foveate
from foveate.models.text import CAUSAL
from foveate.models.text.causal_language_model import places_within

SIZES = {"width": 24, "heads": 3, "feedforward": 20, "layers": 2, "vocabulary": 29, "max_length": 13, "dropout": 0.0}

GROUPED = {"key_value_heads": 1, "head_width": 8}
WINDOWED = {"window": 2}

MODELS = {
    "gpt-tiny": {},
    "gpt3-tiny": WINDOWED,
    "smollm2-135m": GROUPED,
    "gpt-neox-20b": {"rotary_width": 4},
    "gpt-j-6b": {"rotary_width": 4},
    "opt-125m": {},
    "mistral-7b": {**GROUPED, **WINDOWED},
    "qwen2-0.5b": GROUPED,
    "qwen3-0.6b": GROUPED,
    "smollm3-3b": GROUPED,
    "gemma2-2b": {**GROUPED, **WINDOWED},
    "olmo2-1b": GROUPED,
    "phi3-mini": GROUPED,
    **{f"gpt-tiny, {kind}": {"positions": kind} for kind in ("none", "sinusoidal", "relative", "rotary")},
}


def test_every_family_is_tried() -> None:
    tried = {foveate.models.preset(name.partition(",")[0]).family for name in MODELS}
    assert tried == set(CAUSAL)


@pytest.mark.parametrize("name", MODELS)
def test_logits_are_those_of_each_text_alone(name: str) -> None:
    """In two rows of other lengths, the shorter one padded; learned positions are enough for each text."""
    torch.manual_seed(5)
    model = foveate.create(name.partition(",")[0], **{**SIZES, **MODELS[name]}).eval()
    lengths = [[7, 3, 1], [11, 5]]
    tokens, texts = torch.zeros(2, 16, dtype=torch.long), torch.full((2, 16), -1)
    alone: list[tuple[int, int, torch.Tensor]] = []
    for row, sizes in enumerate(lengths):
        at = 0
        for number, size in enumerate(sizes):
            own = torch.randint(29, (size,))
            tokens[row, at : at + size], texts[row, at : at + size] = own, number
            alone.append((row, at, own))
            at += size
    with torch.no_grad():
        found = model(tokens, texts=texts).logits
        for row, at, own in alone:
            torch.testing.assert_close(found[row, at : at + len(own)], model(own[None]).logits[0], atol=5e-5, rtol=0)


def test_places_begin_anew() -> None:
    assert places_within(torch.tensor([[4, 4, 4, 1, 2, 2], [0, 1, 1, 1, -1, -1]])).tolist() == [
        [0, 1, 2, 0, 0, 1],
        [0, 0, 1, 2, 0, 1],
    ]
