"""The best of many scores, log-probabilities and limits."""

import pytest
import torch

from foveate.decoding.ranking import best, hypothesis, limits, log_probs
from foveate.errors import UserError


@pytest.mark.parametrize(
    ("rows", "width", "count"), [(3, 7, 2), (5, 7, 11), (2, 131, 1), (3, 32_003, 6), (2, 4_099, 211)]
)
@pytest.mark.parametrize("levels", [2, 20_000, 1_000_000])
def test_best_equals_a_stable_sort(rows: int, width: int, count: int, levels: int) -> None:
    generator = torch.Generator().manual_seed(1)
    scores = torch.randint(levels, (rows, width), generator=generator).float()
    scores[0, width // 2 :] = -torch.inf
    values, places = best(scores, count)
    expected = scores.sort(dim=1, descending=True, stable=True)
    assert torch.equal(values, expected.values[:, :count])
    assert torch.equal(places, expected.indices[:, :count])


def test_log_probabilities_are_in_full_precision() -> None:
    logits = torch.randn(71, 13, generator=torch.Generator().manual_seed(2)).bfloat16()
    tokens = torch.tensor([[3, 11, 0]]).expand(71, -1)
    expected = logits.double() - logits.double().exp().sum(1, keepdim=True).log()
    found = log_probs(logits, tokens)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), expected[:, [3, 11, 0]], rtol=0, atol=1e-6)


def test_limits_are_one_for_all_or_one_each() -> None:
    inputs = {"source": torch.zeros(3, 5)}
    assert limits(inputs, 7).tolist() == [7, 7, 7]
    assert limits(inputs, torch.tensor([2, 3, 5])).tolist() == [2, 3, 5]


def test_bad_limits_are_refused() -> None:
    inputs = {"source": torch.zeros(3, 5)}
    with pytest.raises(UserError, match="2 numbers for 3 examples"):
        limits(inputs, torch.tensor([2, 3]))
    with pytest.raises(UserError, match=r"at least 1 \(the end token is counted\), not 0"):
        limits(inputs, torch.tensor([2, 0, 3]))
    with pytest.raises(UserError, match="no example"):
        limits({"source": torch.zeros(0, 5)}, 7)


def test_a_model_that_gives_nan_is_refused() -> None:
    with pytest.raises(UserError, match="NaN within 3 steps"):
        hypothesis([5, 6], float("nan"), 0.0, ended=True)
