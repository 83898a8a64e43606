"""What all tests share: checked annotations, and random numbers that repeat.

Every function whose annotations tell the shapes of tensors is called with the shapes checked against them. So a wrong
shape is an error here, and so is a wrong annotation.
"""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import jaxtyping
import pytest
import torch

# Lets tests import `references`.
sys.path.insert(0, str(Path(__file__).parent))

SOURCES = Path(__file__).parents[1] / "src"

SHAPED = [
    ".".join(path.relative_to(SOURCES).with_suffix("").parts)
    for path in SOURCES.rglob("*.py")
    if "jaxtyping" in path.read_text(encoding="utf-8")
]
"""The modules that tell shapes. In the others mypy checks the types, which in all calls would double the time."""

# Before foveate is first imported, which the tests and the other conftest files do. The tower: an int is a float.
jaxtyping.install_import_hook(SHAPED, "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))")

# A shell that runs the tests in the background has them ignore Ctrl-C, which some tests send to themselves.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The tests' tensors are small: more threads would only wait for each other, and results depend on their number.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _same_random_numbers() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _no_weights_are_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few texts do not begin from trained weights, unless a test says so: these would be fetched."""
    monkeypatch.setattr("foveate.tasks.start.usual.FEW", 0)


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Shapes unchecked, as they are for users: for tests of what foveate itself says about a wrong shape."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def full_disk() -> Callable[[int], AbstractContextManager[None]]:
    """`with full_disk(300):` files end at 300 bytes, with the same kind of error as on a full disk.

    A context, because the tests' own output may go to a longer file: nothing may be printed inside.
    """
    resource = pytest.importorskip("resource", reason="this system limits no files of a process")

    @contextmanager
    def limited(size: int) -> Iterator[None]:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    return limited
