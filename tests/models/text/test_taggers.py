"""Taggers: what each word's tag may depend on."""

import pytest
import torch
from torch import Tensor, nn

import foveate
from foveate.sight import look

SIZES = {"vocabulary": 31, "spellings": 37, "classes": 5, "width": 12, "dropout": 0.0}
PRESETS = ["rnn-transducer", "birnn-tagger", "transformer-tagger"]


def tagger(name: str) -> nn.Module:
    torch.manual_seed(7)
    return foveate.create(name, **SIZES).eval()


@pytest.fixture
def inputs() -> dict[str, Tensor]:
    """Sentences of 7, 4 and 1 words, spelt by 3 features."""
    torch.manual_seed(11)
    lengths = torch.tensor([7, 4, 1])
    real = torch.arange(7) < lengths[:, None]
    words, spellings = torch.randint(4, 31, (3, 7)), torch.randint(37, (3, 7, 3))
    return {"tokens": words * real, "lengths": lengths, "spellings": spellings * real[..., None]}


def changed_places(model: nn.Module, inputs: dict[str, Tensor], other: dict[str, Tensor]) -> list[bool]:
    """Whose logits in the first sentence differ."""
    with torch.no_grad():
        difference = (model(**inputs).logits - model(**other).logits)[0].abs().amax(-1)
    return (difference > 1e-6).tolist()


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("rnn-transducer", [False] * 4 + [True] * 3),
        ("birnn-tagger", [True] * 7),
        ("transformer-tagger", [True] * 7),
    ],
)
@pytest.mark.parametrize("part", ["tokens", "spellings"])
def test_which_tags_depend_on_the_fifth_word(name: str, changed: list[bool], part: str, inputs) -> None:
    other = {**inputs, part: inputs[part].clone()}
    other[part][0, 4] = (other[part][0, 4] + 1) % 31
    assert changed_places(tagger(name), inputs, other) == changed


def test_only_the_transformer_attends(inputs) -> None:
    for name, sites in zip(PRESETS, (0, 0, 2), strict=True):
        with torch.no_grad(), look(model := tagger(name)) as sight:
            model(**inputs)
        assert len(sight.sites) == sites


def test_the_sum_of_a_words_vectors_does_not_drown_its_place(inputs) -> None:
    """What the encoder is given varies as the positions' waves do, by about 1, however many vectors are summed."""
    model = tagger("transformer-tagger")
    for features in (3, 30):
        given = []
        watching = model.encoder.register_forward_pre_hook(lambda _, arguments, given=given: given.append(arguments[0]))
        spelt = torch.randint(1, 37, (3, 7, features))
        with torch.no_grad():
            model(inputs["tokens"].clamp(min=4), torch.tensor([7, 7, 7]), spelt)
        watching.remove()
        assert 0.7 < float(given[0].std()) < 1.4
