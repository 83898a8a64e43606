"""Lets the tests of this folder import `variants`, and runs each test for all of them that it fits."""

import sys
from pathlib import Path

import pytest
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parent))

from variants import variants

KINDS = {
    "variant": lambda _: True,
    "unchanged": lambda variant: not variant.changed,
    "reader": lambda variant: variant.reads,
    "writer": lambda variant: variant.writes,
}
"""Which variants a test is run for, by the name of its argument."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for kind in KINDS.keys() & set(metafunc.fixturenames):
        metafunc.parametrize(kind, list(filter(KINDS[kind], variants())), ids=str)


@pytest.fixture
def inputs(request: pytest.FixtureRequest) -> dict[str, Tensor]:
    """Three examples for the variant (unchanged, reader, writer) under test, to change."""
    (kind,) = KINDS.keys() & set(request.fixturenames)
    return request.getfixturevalue(kind).inputs
