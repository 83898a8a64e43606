"""Run folders of versions in which classifiers and taggers were families of their own."""

from pathlib import Path
from typing import Any

import pytest
import torch

from foveate import models, run_dir
from foveate.config import from_dict
from foveate.models.legacy_names import FAMILIES

SIZES = {"vocabulary": 17, "embedding": 5, "width": 12}

TOKENS, LENGTHS = torch.tensor([[4, 5, 6], [7, 8, 0]]), torch.tensor([3, 2])


def folder(place: Path, before: str, values: dict[str, Any], preset: str, **now: int) -> torch.nn.Module:
    """As an earlier version would have saved this preset with these values."""
    model = models.create(preset, **SIZES, **now).eval()
    reader = ("embedding.", "recurrent.", "pooling.") if before == "rnn-classifier" else ()
    tensors = {f"reader.{name}" if name.startswith(reader) else name: one for name, one in model.state_dict().items()}
    left_open = {"tags": 0, "vocabulary": 0} if "tags" in values else {"classes": 0, "vocabulary": 0}
    recipe = {"model": preset, "architecture": left_open}
    run_dir.save(place, {"task": "x", "family": before, "architecture": values, "recipe": recipe}, tensors)
    return model


@pytest.mark.parametrize(
    ("before", "preset"), [("rnn-classifier", "rnn-attentive-classifier"), ("rnn-tagger", "birnn-tagger")]
)
def test_they_open_as_they_were(before: str, preset: str, tmp_path: Path) -> None:
    fields = {name: value for name, value in models.preset(preset).values.items() if name != "head"} | SIZES
    tags, spellings = before == "rnn-tagger", torch.arange(12).view(2, 3, 2)
    values = {**fields, "tags": 3, "spellings": 13} if tags else {**fields, "classes": 3}
    model = folder(tmp_path, before, values, preset, classes=3, spellings=13)
    found = run_dir.load(tmp_path)
    family, head = FAMILIES[before]
    config = from_dict(models.config_class(family), found.description["architecture"], "here")
    assert (found.description["family"], config.head, config.classes) == ("rnn-encoder", head, 3)
    assert found.description["recipe"]["architecture"] == {"head": head, "classes": 0, "vocabulary": 0}
    again = models.build(family, config).eval()
    found.fill(again)
    inputs = (TOKENS, LENGTHS, spellings) if tags else (TOKENS, LENGTHS)
    assert torch.equal(again(*inputs).logits, model(*inputs).logits)


@pytest.mark.parametrize("description", [{"family": ["rnn-tagger"]}, {"family": None}, {}])
def test_what_is_no_earlier_family_stays_as_it_is(description: dict[str, Any], tmp_path: Path) -> None:
    run_dir.save(tmp_path, description, {})
    assert run_dir.load(tmp_path).description == description


@pytest.mark.parametrize("part", ["architecture", "recipe"])
def test_damage_is_left_to_those_who_tell_of_it(part: str, tmp_path: Path) -> None:
    run_dir.save(tmp_path, {"family": "rnn-tagger", part: 3}, {})
    assert run_dir.load(tmp_path).description[part] == 3
