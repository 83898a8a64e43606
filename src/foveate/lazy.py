"""Names of a package that are imported when they are first used, so that others need not wait for torch."""

import gc
import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any


@contextmanager
def without_collection() -> Iterator[None]:
    """Nothing that is imported becomes garbage: looking for some takes a tenth of a second, and a fifth afterwards."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # with the next line: all objects count as old, and the next new object has nothing looked through
        gc.unfreeze()
        if collects:
            gc.enable()


def import_late(package: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """A `__getattr__` of a package for the `names`, each with the module that has it, or "" for a submodule itself."""

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with without_collection():
            module = importlib.import_module(names[name] or f"{package}.{name}")
        return getattr(module, name) if names[name] else module

    return find
