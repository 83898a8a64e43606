"""The comparison of all ways to attend, in small: a moment of training each, on a language of eleven words."""

import json
from io import StringIO
from pathlib import Path

import pytest
import words
from rich.console import Console

from foveate import create
from foveate.data.sources.splits import Splits
from foveate.errors import UserError
from foveate.experiments import compare, save
from foveate.experiments.attention_on_translation import ROWS, AttentionOnTranslation
from foveate.experiments.comparison import Comparison, conditions

HOW = {"steps": 2, "width": 8, "vocabulary": 60, "sentences": 12, "repeats": 1}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Comparison]:
    """The folder of a comparison that was made in two parts, and the comparison."""
    folder = tmp_path_factory.mktemp("bench")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "foveate.experiments.attention_on_translation.open_source",
            lambda *_: Splits(*map(words.messages, (40, 10, 20), (1, 2, 3))),
        )
        console = Console(file=StringIO())
        compare("translation", AttentionOnTranslation(folder, rows=("none", "hard"), **HOW), console)
        weights = folder / "translation" / "none" / "model.safetensors"
        before = weights.stat().st_mtime_ns
        options = AttentionOnTranslation(folder, **HOW)
        found = compare("translation", options, console)
        save(found, "translation", options)
        assert weights.stat().st_mtime_ns == before  # not trained again
        with pytest.raises(UserError, match="was started with steps 2, not 3"):
            compare("translation", AttentionOnTranslation(folder, **{**HOW, "steps": 3}), console)
    return folder, found


def test_a_row_for_every_way(ran: tuple[Path, Comparison]) -> None:
    """What does not attend has no alignment; all others have figures that can be."""
    (table,) = ran[1].tables
    assert [row[0] for row in table.rows] == list(ROWS)
    assert table.rows[0][3:6] == ["", "", ""]
    for row in ran[1].raw["rows"].values():
        assert 0 <= row["bleu"] <= 100
        if row["alignment"] is not None:
            assert 0 <= row["alignment"]["error_rate"] <= 1
    speeds = ran[1].raw["tokens_per_second"]
    assert all(speed > 0 for of in ("training", "writing") for speed in speeds[of].values())


def test_no_two_rows_are_the_same_model() -> None:
    sizes = {"src_vocab": 9, "tgt_vocab": 9, "embedding": 8, "width": 8}
    built = [create(preset, **sizes, **changes).config for preset, changes in ROWS.values()]
    assert len({repr(config) for config in built}) == len(ROWS)


def test_what_is_written(ran: tuple[Path, Comparison]) -> None:
    folder, found = ran
    assert (folder / "translation.md").read_text().startswith("# Attention on translation: emoji names, en-fr")
    assert json.loads((folder / "translation.json").read_text())["measured"]["rows"].keys() == ROWS.keys()
    assert (folder / "translation-maps.png").stat().st_size > 1000
    assert found.notes[0].startswith("Each was trained for 2 steps; greedy search of 12 unseen messages, ")
    assert found.notes[-1] == f"Trained with {conditions()}, in float32."
    assert any(note.startswith("hard: the learned baseline leaves") for note in found.notes)


def test_an_unknown_row(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="unknown row 'monotone'; did you mean monotonic"):
        compare("translation", AttentionOnTranslation(tmp_path, rows=("monotone",)), Console(file=StringIO()))
