"""Names in the package and in its tests."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import foveate

ROOT = Path(foveate.__file__).parent
TESTS = Path(__file__).parent


def test_no_two_classes_share_a_name() -> None:
    """A name stands for one thing: a reader who meets it in a message or a search finds one class."""
    modules: dict[str, list[str]] = defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules[node.name].append(path.relative_to(ROOT).as_posix())
    assert "Skill" in modules
    assert {name: places for name, places in modules.items() if len(places) > 1} == {}


def imported(path: Path) -> set[str]:
    """The modules that a file imports by one word."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
    return found


def test_what_tests_import_from_each_other_has_a_name_of_its_own() -> None:
    """Their folders join one search path: of two files of one name, the order of the tests would choose."""
    files: dict[str, list[Path]] = defaultdict(list)
    for path in TESTS.rglob("*.py"):
        files[path.stem].append(path)
    shared = {name for path in TESTS.rglob("*.py") for name in imported(path)} & files.keys()
    assert "recorded" in shared
    assert {name: files[name] for name in shared if len(files[name]) > 1} == {}


def test_one_file_names_a_kind_of_accelerator() -> None:
    """All others ask it, so that what is right for one kind is right for all."""
    calls = re.compile(r"torch\.(cuda|mps|xpu)\b|\.(cuda|xpu)\(|[\"'](cuda|mps|xpu)[\"':]")
    root = Path(__file__).parents[1]
    folders = (root / "src", root / "benchmarks")
    named = {path for folder in folders for path in folder.rglob("*.py") if calls.search(path.read_text("utf-8"))}
    assert named == {root / "src" / "foveate" / "accelerator.py"}
