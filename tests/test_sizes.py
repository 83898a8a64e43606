"""How long files and functions of the package are, and that its modules import each other in one direction."""

import ast
import statistics
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import grimp

SOURCE = Path(__file__).parent.parent / "src" / "foveate"

FILE, MEDIAN, FUNCTION, SCRIPT = 450, 150, 60, 250
"""Lines that a file, half of the files, a function, and a script of a page have at most."""


@cache
def texts() -> dict[str, str]:
    """The text of each file, by its place in the package."""
    return {str(path.relative_to(SOURCE)): path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py"))}


def functions() -> Iterator[tuple[str, int]]:
    """The name of each function and its lines, decorators left out."""
    for place, text in texts().items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                yield f"{place}: {node.name}", node.end_lineno - node.lineno + 1


def test_files_are_short() -> None:
    """A longer file lacks a concept: name it, and give it a module."""
    lengths = {place: len(text.splitlines()) for place, text in texts().items()}
    assert {place: length for place, length in lengths.items() if length > FILE} == {}
    assert statistics.median(lengths.values()) <= MEDIAN


def test_scripts_are_short() -> None:
    lengths = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCE.rglob("*.js")}
    assert len(lengths) >= 40
    assert {name: length for name, length in lengths.items() if length > SCRIPT} == {}


def test_functions_are_short() -> None:
    lengths = dict(functions())
    assert len(lengths) > 1000
    assert {name: length for name, length in lengths.items() if length > FUNCTION} == {}


def test_no_import_circle() -> None:
    """Not even one whose imports are inside functions: such modules cannot be read one after the other."""
    graph = grimp.build_graph("foveate", exclude_type_checking_imports=True, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    while free := {module for module, needed in imports.items() if not needed & imports.keys()}:
        imports = {module: needed for module, needed in imports.items() if module not in free}
    assert sorted(imports) == []
