"""The difference of two looks: how tokens are aligned, which numbers it has, and its page."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from foveate.errors import UserError
from foveate.sight import from_weights
from foveate.viewer import Image, page
from foveate.viewer.difference import align, subtract
from foveate.viewer.protocol import LookResult
from foveate.viewer.sides import Side

FIRST = ["the", "old", "dog", "chased", "a", "tired", "cat"]
SECOND = ["the", "old", "tired", "girl", "chased", "a", "cat"]


def looked(words: list[str], seed: int, heads: int = 2) -> LookResult:
    random = torch.Generator().manual_seed(seed)
    maps = torch.randn(heads, len(words), len(words), generator=random).softmax(-1)
    return LookResult(from_weights({"h.0.attn": maps}), {"*": words}, " ".join(words), ["a model"])


def test_equal_tokens_and_what_is_between_them_stand_for_each_other() -> None:
    pairs = align(Side(7, FIRST), Side(7, SECOND))
    assert pairs == [(0, 0), (1, 1), (2, 2), (None, 3), (3, 4), (4, 5), (5, None), (6, 6)]
    assert align(Side(3), Side(3)) == [(0, 0), (1, 1), (2, 2)]
    assert align(Side(3), Side(4)) is None
    assert align(Side(2, ["a", "b"]), Side(3, ["a", "a", "b"])) == [(None, 0), (0, 1), (1, 2)]


def test_numbers_are_those_of_the_second_less_those_of_the_first() -> None:
    first, second = looked(FIRST, 1), looked(SECOND, 2)
    (site,) = subtract(first, second).sight
    one, other = (look.sight["h.0.attn"].weights()[0] for look in (first, second))
    found = site.weights()[0]
    assert found.shape == (2, 6, 8), "two queries that only one has are left out"
    torch.testing.assert_close(found[:, 3, 5], other[:, 4, 5] - one[:, 3, 4])
    torch.testing.assert_close(found[:, 3, 3], other[:, 4, 3], msg="+ girl")
    torch.testing.assert_close(found[:, 3, 6], -one[:, 3, 5], msg="− tired")
    torch.testing.assert_close(found.sum(-1), torch.zeros(2, 6), atol=1e-6, rtol=0)
    torch.testing.assert_close(site.weights(heads=[1], queries=[4, 2], keys=[0, 6])[0, 0], found[1][[4, 2]][:, [0, 6]])
    top = site.top(3)
    torch.testing.assert_close(top.weights.abs(), site.weights().abs().topk(3).values)
    torch.testing.assert_close(site.max(), site.weights().amax(-1))


def test_names_tell_what_was_aligned() -> None:
    found = subtract(looked(FIRST, 1), looked(SECOND, 2))
    assert found.tokens["h.0.attn"] == (
        ["the", "old", "dog → tired", "chased", "a", "cat"],
        ["the", "old", "dog → tired", "+ girl", "chased", "a", "− tired", "cat"],
    )
    assert found.title == f"A: {' '.join(FIRST)} · B: {' '.join(SECOND)}"
    assert found.notes[0] == "a model"
    assert found.notes[1].endswith("2 queries that only one has are left out.")


@pytest.mark.parametrize("count", [7, 150])
def test_a_page_keeps_the_signs(tmp_path: Path, count: int) -> None:
    """Of short maps, which are whole, and of long ones, which have the largest differences of each query."""
    words = [f"w{number % 5}" for number in range(count)]
    found = subtract(looked(words, 1), looked(words, 2))
    document = found.document()
    page.save(tmp_path / "page.html", document)
    (panel,) = page.read(tmp_path / "page.html").sites
    (wanted,) = document.sites
    assert panel.shows == "difference"
    assert panel.unit == pytest.approx(abs(wanted.rows.weights).max(), rel=1e-5)
    assert (panel.rows.weights < 0).any()
    assert (panel.rows.keys.shape[2] == count) == (count == 7)
    large = abs(wanted.rows.weights) > 1e-5
    np.testing.assert_array_equal(panel.rows.keys, wanted.rows.keys)
    np.testing.assert_allclose(panel.rows.weights[large], wanted.rows.weights[large], rtol=4e-3)
    certain = abs(wanted.maps) > 1e-4
    np.testing.assert_array_equal(np.sign(panel.maps[certain]), np.sign(wanted.maps[certain]))


def test_pictures_are_compared_place_by_place() -> None:
    picture = Image.of(np.zeros((8, 8, 3), np.uint8), 2, 2)
    both: list[Any] = [looked(["a"] * 4, seed) for seed in (1, 2)]
    for one in both:
        one.tokens = {"*": picture}
    found = subtract(*both)
    assert found.tokens["h.0.attn"] == (picture, picture)
    assert found.document().sites[0].keys.picture is not None


def test_looks_that_share_nothing() -> None:
    other = LookResult(from_weights({"other": torch.ones(2, 1, 1)}), {}, "x")
    with pytest.raises(UserError, match="no site in common"):
        subtract(looked(FIRST, 1), other)
    with pytest.raises(UserError, match="no site in common"):
        subtract(looked(FIRST, 1), looked(SECOND, 2, heads=3))
