"""Names in the package."""

import ast
from collections import defaultdict
from pathlib import Path

import foveate

ROOT = Path(foveate.__file__).parent


def test_no_two_classes_share_a_name() -> None:
    """A name stands for one thing: a reader who meets it in a message or a search finds one class."""
    modules: dict[str, list[str]] = defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules[node.name].append(path.relative_to(ROOT).as_posix())
    assert "Skill" in modules
    assert {name: places for name, places in modules.items() if len(places) > 1} == {}
