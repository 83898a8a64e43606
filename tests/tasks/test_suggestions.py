"""What the explorer suggests to type: texts that the run did not learn from."""

from pathlib import Path

import pytest
import words

import foveate
from foveate.data.sources.cache import without_fetching
from foveate.data.sources.emoji import open_emoji
from foveate.errors import UserError
from foveate.forms.inputs import EXAMPLES
from foveate.tasks.viewers.skills import SkillViewer


def test_they_are_of_the_held_out_part_and_else_sentences(tmp_path: Path) -> None:
    lines = [f"{source}\t{target}" for source, target in words.messages(60, 1)]
    data, held_out = tmp_path / "train.tsv", tmp_path / "dev.tsv"
    data.write_text("\n".join(lines[:40]))
    held_out.write_text("\n".join(lines[40:]))
    recipe = foveate.recipe("translate", model="transformer-tiny", data=data, validation=held_out, out=tmp_path / "run")
    recipe.training.steps, recipe.training.epochs = 1, None
    foveate.train(recipe)
    viewer = SkillViewer(foveate.load(tmp_path / "run"))
    assert len(viewer.examples) == 3
    assert {*viewer.examples} <= {line.split("\t")[0] for line in lines[40:]}
    held_out.unlink()
    assert SkillViewer(foveate.load(tmp_path / "run")).examples == EXAMPLES


def test_nothing_is_fetched_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path))
    with without_fetching(), pytest.raises(UserError, match="was not fetched yet"):
        open_emoji("en", "fr", lambda place: pytest.fail("nothing is fetched"))
    assert not [*tmp_path.iterdir()]
