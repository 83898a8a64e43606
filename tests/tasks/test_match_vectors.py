"""Vectors of texts by their words: TF-IDF by hand, and what latent semantic analysis puts near each other."""

import math

import pytest
import torch

from foveate.baselines.match_vectors import count_cosines, latent_cosines, latent_vectors, token_rarity


def test_rarity_by_hand() -> None:
    """Three texts; a token counts once in each."""
    found = token_rarity([[0, 0, 1], [1, 2], [1]], 4)
    expected = [math.log(4 / 2), math.log(4 / 4), math.log(4 / 2), math.log(4 / 1)]
    torch.testing.assert_close(found, torch.tensor(expected))


def test_cosines_of_counts_by_hand() -> None:
    rarity = torch.tensor([1.0, 2.0, 3.0])
    found = count_cosines([[0, 0, 1], [2], [], [0]], [[0, 1], [0, 1], [1], [0, 0]], rarity)
    first = (2 * 1 + 2 * 2) / (math.sqrt(4 + 4) * math.sqrt(1 + 4))
    assert found == pytest.approx([first, 0, 0, 1])


def test_words_of_the_same_pairs_get_near_each_other() -> None:
    """Token k of the sources stands in the same pairs as token k + 1 of the targets, among others at random."""
    drawn = torch.randint(7, (211, 3), generator=torch.Generator().manual_seed(1)).tolist()
    sources, targets = drawn, [[(token + 1) % 8 for token in reversed(text)] for text in drawn]
    first, second = latent_vectors(sources, targets, (7, 8))
    assert first.shape == (7, 4)
    assert second.shape == (8, 4)
    again = latent_vectors(sources, targets, (7, 8))
    assert torch.equal(first, again[0])
    own = latent_cosines([[token] for token in range(7)], [[token + 1] for token in range(7)], first, second)
    other = latent_cosines(
        [[token] for token in range(7)], [[(token + 3) % 7 + 1] for token in range(7)], first, second
    )
    assert min(own) > max(other)
    assert latent_cosines([[]], [[1]], first, second) == [0.0]
