"""Which presets are marked as not trained: exactly those that `foveate models` says so of, and none without need."""

import re
from pathlib import Path

from foveate import models
from foveate.cli import main
from foveate.models.untrained import UNTRAINED

DOCS = Path(__file__).parents[2] / "docs"


def test_each_is_a_preset_and_all_others_are_in_the_documentation() -> None:
    assert models.presets().keys() >= UNTRAINED
    text = "\n".join(page.read_text(encoding="utf-8") for page in DOCS.rglob("*.md"))
    told = {name for name in models.presets() if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)}
    assert models.presets().keys() - UNTRAINED - told == set()


def test_the_list_marks_them(capsys) -> None:
    main(["models", "control"])
    lines = capsys.readouterr().out.splitlines()
    assert next(line for line in lines if line.startswith("  darqn ")).startswith("  darqn *")
    assert not any(line.startswith("  darqn-tiny *") for line in lines)
    assert any(line.startswith("* built and tested") for line in lines)
