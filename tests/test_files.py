"""Files are written whole or not at all."""

from pathlib import Path

from foveate.files import strict_json, written


def test_folders_of_others_stay(tmp_path: Path) -> None:
    """Two files may be written beside one another, too."""
    (tmp_path / ".unfinished").mkdir()
    with written(tmp_path / "a") as first, written(tmp_path / "b") as second:
        first.write_text("a")
        second.write_text("b")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".unfinished", "a", "b"]


def test_json_has_neither_infinity_nor_nan() -> None:
    assert strict_json({"a": [1.5, float("inf")], "b": (float("nan"), 2)}) == '{"a": [1.5, null], "b": [null, 2]}'
