"""Lets the tests of this folder import `variants`, and runs each test for all of them that it fits."""

import sys
from pathlib import Path

import pytest
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parent))

from variants import variants


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "variant" in metafunc.fixturenames:
        metafunc.parametrize("variant", variants(), ids=str)
    if "writer" in metafunc.fixturenames:
        metafunc.parametrize("writer", [variant for variant in variants() if variant.writes], ids=str)


@pytest.fixture
def inputs(request: pytest.FixtureRequest) -> dict[str, Tensor]:
    """Three examples for the variant (or the writer) under test, to change."""
    return request.getfixturevalue("variant" if "variant" in request.fixturenames else "writer").inputs
