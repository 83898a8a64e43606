"""What the CPU computes in."""

from collections.abc import Iterator

import pytest
import torch

from foveate.nn import bfloat16_is_fast, precision


@pytest.fixture(autouse=True)
def measured_anew() -> Iterator[None]:
    bfloat16_is_fast.cache_clear()
    yield
    bfloat16_is_fast.cache_clear()


@pytest.mark.parametrize(
    ("able", "single", "half", "fast"),
    [(True, 2.0, 1.0, True), (True, 1.0, 2.0, False), (True, 1.1, 1.0, False), (False, 2.0, 1.0, False)],
)
def test_bfloat16_is_taken_where_it_is_measured_to_be_faster(
    able: bool, single: float, half: float, fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precision, "cpu_has_bfloat16", lambda: able)
    seconds = {torch.float32: single, torch.bfloat16: half}
    monkeypatch.setattr(precision, "_seconds_of_product", seconds.__getitem__)
    assert bfloat16_is_fast() is fast


def test_a_product_takes_time() -> None:
    assert 0 < precision._seconds_of_product(torch.float32) < 10
