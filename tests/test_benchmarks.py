"""Benchmarks run seldom: what they take from the package is there, and is called with arguments that it has."""

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"

SCRIPTS = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.py"))


def imports(tree: ast.Module) -> Iterator[tuple[str, str, str]]:
    """Module, name, and the name it has in the script, of all that is imported from the package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "foveate":
            for each in node.names:
                yield str(node.module), each.name, each.asname or each.name


def resolve(module: str, name: str) -> Any:
    found = importlib.import_module(module)
    return getattr(found, name) if hasattr(found, name) else importlib.import_module(f"{module}.{name}")


def replaced(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The attributes that a script takes of names, or replaces by `patch.object(NAME, "ATTRIBUTE", ...)`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield node.value.id, node.attr
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "patch.object" and len(node.args) > 1:
            of, attribute = node.args[:2]
            if isinstance(of, ast.Name) and isinstance(attribute, ast.Constant):
                yield of.id, str(attribute.value)


@pytest.mark.parametrize("script", SCRIPTS)
def test_attributes(script: str) -> None:
    """Of modules and classes of the package."""
    tree = ast.parse((FOLDER / script).read_text(encoding="utf-8"))
    known = {own: resolve(module, name) for module, name, own in imports(tree)}
    for name, attribute in replaced(tree):
        if inspect.ismodule(known.get(name)):
            assert hasattr(known[name], attribute), f"{script}: {name} has no {attribute}"


@pytest.mark.parametrize("script", SCRIPTS)
def test_calls(script: str) -> None:
    tree = ast.parse((FOLDER / script).read_text(encoding="utf-8"))
    known = {own: resolve(module, name) for module, name, own in imports(tree)}
    for call in ast.walk(tree):
        called = known.get(call.func.id) if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else None
        if not callable(called) or not isinstance(call, ast.Call):
            continue
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        if any(isinstance(one, ast.Starred) for one in given) or any(keyword.arg is None for keyword in call.keywords):
            continue
        try:
            inspect.signature(called).bind(*call.args, **{str(keyword.arg): keyword.value for keyword in call.keywords})
        except TypeError as error:
            pytest.fail(f"{script}, line {call.lineno}: {ast.unparse(call)[:80]}: {error}")
