"""Heads by what they do: heads that are made to do one thing are found by it."""

import math

import pytest
import torch
from torch import Tensor

from foveate.errors import UserError
from foveate.sight import from_weights
from foveate.sight.roles import alignment_score

IDS = torch.tensor([[1, 7, 3, 9, 7, 3, 9, 4]])
WORDS = ["[CLS]", "a", "cat", ",", "a", "cat", ",", "."]
COUNT = IDS.shape[1]


def looking_at(*keys: int | None) -> Tensor:
    """A map whose rows look at one key each, or evenly at all."""
    rows = [torch.full((COUNT,), 1 / COUNT) if key is None else torch.eye(COUNT)[key] for key in keys]
    return torch.stack(rows)


HEADS = {
    "previous": looking_at(None, *range(COUNT - 1)),
    "next": looking_at(*range(1, COUNT), None),
    "first": looking_at(*[0] * COUNT),
    "same": looking_at(None, 4, 5, 6, 1, 2, 3, None),
    "induction": looking_at(None, None, None, None, 2, 3, 4, None),
    "delimiter": looking_at(*[7] * (COUNT - 1), 6),
}


@pytest.mark.parametrize("tokens", [IDS, IDS[0].tolist(), WORDS])
def test_each_head_is_found_by_what_it_does(tokens: object) -> None:
    sight = from_weights(
        {"layer.0": torch.stack(list(HEADS.values())), "layer.1": torch.full((2, COUNT, COUNT), 1 / COUNT)}
    )
    found = sight.roles(tokens, {4, 9} if tokens is not WORDS else {",", "."})
    for head, role in enumerate(HEADS):
        ((site, best, score),) = found.largest(role, 1)
        assert (site, best, round(score, 5)) == ("layer.0", head, 1.0)
        assert next(iter(found.of("layer.0", head))) == role
        even = found.scores[role]["layer.1"]
        assert even[0].item() == pytest.approx(found.even[role])
    assert found.of("layer.1", 0) == {}
    with pytest.raises(UserError, match="inductoin"):
        found.largest("inductoin")


def test_a_path_that_goes_forward() -> None:
    forward = torch.zeros(6, 12)
    for row in range(6):
        forward[row, 2 * row : 2 * row + 2] = 0.5
    backward, stuck, even = forward.flip(0), torch.zeros(6, 12), torch.full((6, 12), 1 / 12)
    stuck[:, 3] = 1
    scores = alignment_score(from_weights(torch.stack([forward, backward, stuck, even]))["weights"])[0]
    assert scores[0] > 0.4
    assert scores[0] > 3 * scores[1:].max()
    sight = from_weights({"cross": torch.stack([forward, stuck])})
    assert sight.roles(list("abcdef")).largest("alignment", 1)[0][:2] == ("cross", 0)
    # Rows before the first that counts, and keys behind the last, change nothing.
    padded = torch.cat([torch.full((2, 12), 1 / 12), forward])
    padded = torch.cat([padded * 0.9, padded.new_full((8, 4), 0.1 / 4)], 1)
    (score,) = alignment_score(from_weights(padded)["weights"], first=2, keys=12)[0]
    assert math.isclose(score, 0.9 * scores[0], rel_tol=1e-5)


def test_what_fits_no_site_is_said() -> None:
    with pytest.raises(UserError, match="no site attends from 1 x 3 tokens"):
        from_weights(torch.eye(5)).roles([1, 2, 3])
    with pytest.raises(UserError, match="ids"):
        from_weights(torch.eye(5)).roles(torch.rand(1, 5))
