"""`foveate bench windows` and `foveate bench heads`, without their trainings: what each row trains, and the tables."""

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from foveate.errors import UserError
from foveate.experiments import compare, heads, trained_rows, windows
from foveate.experiments.trained_rows import RowResult


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The recipe of each row, by the name of its folder."""
    recipes: dict[str, Any] = {}

    def train_row(task: str, recipe: Any, steps: int, options: Any, folder: Path, console: Console) -> RowResult:
        recipes[folder.name] = recipe
        return RowResult({"bleu": 50.0, "chrf": 70.0, "accuracy": 95.0}, 1234)

    def speeds(architectures: dict[str, Any], *_: Any) -> dict[str, float]:
        return dict.fromkeys(architectures, 7.0)

    for module in (heads, windows):
        monkeypatch.setattr(module, "train_row", train_row)
        monkeypatch.setattr(module, "translator_speeds", speeds)
        monkeypatch.setattr(module, "conditions_note", lambda _: [])
    return recipes


def test_windows(trained: dict[str, Any], tmp_path: Path) -> None:
    found = compare("windows", windows.WindowRadii(out=tmp_path, radii=(1, 3)), Console(quiet=True))
    assert {name: recipe["architecture"].get("window") for name, recipe in trained.items()} == {
        "translate-1": 1,
        "translate-3": 3,
        "translate-all": None,
        "tag-1": 1,
        "tag-3": 3,
        "tag-all": None,
    }
    assert found.tables[0].rows[1] == ["3", "50.0", "70.0", "95.00", "7"]
    assert list(found.figures) == [""]


def test_heads(trained: dict[str, Any], tmp_path: Path) -> None:
    found = compare("heads", heads.Heads(out=tmp_path), Console(quiet=True))
    assert trained["4-heads-split"]["architecture"]["split"]
    assert trained["heads-of-16-16-32-64"]["architecture"]["head_widths"] == (16, 16, 32, 64)
    assert found.tables[0].rows[2] == ["1 head of 128", "50.0", "70.0", "1,234", "7", "7"]
    with pytest.raises(UserError, match="unknown row 'many'"):
        compare("heads", heads.Heads(out=tmp_path, rows=("many",)), Console(quiet=True))


def test_speeds_of_small_translators() -> None:
    small = {"width": 8, "heads": 2, "feedforward": 8, "encoder_layers": 1, "decoder_layers": 1}
    rows = {"all": small, "near": {**small, "window": 1}}
    assert min(trained_rows.translator_speeds(rows, 5, 2, 1).values()) > 0
