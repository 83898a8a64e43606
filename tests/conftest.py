"""What all tests share: checked annotations, and random numbers that repeat.

Every function of foveate is called with the shapes of its tensors checked against its annotations. So a wrong shape is
an error here, and so is a wrong annotation.
"""

from collections.abc import Iterator

import jaxtyping
import pytest
import torch

# Before foveate is first imported, which the tests and the other conftest files do. The tower: an int is a float.
jaxtyping.install_import_hook("foveate", "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))")

# The tests' tensors are small: more threads would only wait for each other, and results depend on their number.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _same_random_numbers() -> None:
    torch.manual_seed(0)


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Shapes unchecked, as they are for users: for tests of what foveate itself says about a wrong shape."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
