"""Alignments that are known, and error rates and entropies by hand."""

import math

import pytest
import torch
from torch import Tensor, nn

from foveate.attention import attend
from foveate.data.text.parallel_corpus import ParallelText
from foveate.data.tokens.tokenizers import train_bpe
from foveate.experiments.alignment_error import TokenizedMessage, alignment_quality, diagonal, messages

TWO = TokenizedMessage(source=[4, 5, 6], target=[7, 8], source_names=[0, 0, 1], target_names=[0, 1])
ONE = TokenizedMessage(source=[4], target=[7, 8, 9], source_names=[0], target_names=[0, 0, 0])


class Decoder(nn.Module):
    """Looks as it is told, at as many keys as there are."""

    def __init__(self, weights: Tensor) -> None:
        super().__init__()
        self.weights = weights

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        batch, queries, keys = len(source), target.shape[1], source.shape[1]
        q, values = torch.zeros(batch, queries, 1), torch.zeros(batch, keys, 1)
        return attend(q, values, values, bias=self.weights[:batch, :queries, :keys].log())


class Model(nn.Module):
    def __init__(self, weights: Tensor) -> None:
        super().__init__()
        self.decoder = Decoder(weights)

    def forward(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor:
        return self.decoder(source, target)


def looking(*rows: list[list[float]]) -> Model:
    """Of each message the weights of each target token, END included, on each source token, END included."""
    return Model(torch.tensor(rows))


def test_figures_by_hand() -> None:
    """The first target token looks at its own name with 0.25 + 0.5, the second most at another's."""
    found = alignment_quality(looking([[0.25, 0.5, 0.25, 0.0], [0.5, 0.0, 0.25, 0.25], [1.0, 0.0, 0.0, 0.0]]), [TWO])
    assert found.error_rate == pytest.approx(1 / 2)
    assert found.own_name == pytest.approx((0.75 + 0.25) / 2)
    assert found.entropy == pytest.approx(1.5 * math.log(2))


def test_padding_counts_nothing() -> None:
    """Of two messages of other lengths: the shorter one's rows and columns end where it does."""
    own = [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0]]
    end = [[0.0, 1.0, 0.0, 0.0]] * 4
    found = alignment_quality(looking(own, end), [TWO, ONE])
    assert found.error_rate == pytest.approx(3 / 5)
    assert found.own_name == pytest.approx(2 / 5)
    assert found.entropy == pytest.approx(0, abs=1e-6)


def test_who_looks_nowhere_is_in_error() -> None:
    nowhere = [[0.0] * 4] * 3
    found = alignment_quality(looking(nowhere), [TWO])
    assert (found.error_rate, found.own_name) == (1.0, 0.0)


def test_who_does_not_attend_has_no_alignment() -> None:
    class Silent(nn.Module):
        def forward(self, **inputs: Tensor) -> Tensor:
            return inputs["source"]

    assert alignment_quality(Silent(), [TWO]) is None


def test_the_diagonal_by_hand() -> None:
    """Of TWO the diagonal looks at the first and the third source token, which is right; ONE has but one name."""
    assert diagonal([TWO, ONE]) == 0
    crossed = TokenizedMessage(source=[4, 5, 6, 7], target=[7, 8, 9], source_names=[0, 1, 1, 1], target_names=[0, 0, 1])
    assert diagonal([crossed]) == pytest.approx(1 / 3)


def test_tokens_of_names() -> None:
    """Names are numbered on both sides; the tokens are those of the whole message."""
    pairs = [("red cat, dog", "chat rouge, chien"), ("dog", "chien"), ("salt, and pepper, dog", "sel, chien")]
    text = ParallelText.from_pairs(pairs, "three", ["🐈 🐕", "🐕", "🧂 🐕"])
    source, target = train_bpe(text.sources(), 60), train_bpe(text.targets(), 60)
    (found,) = messages(text, source, target)
    assert [found.source] == source.encode(["red cat, dog"])
    assert [found.target] == target.encode(["chat rouge, chien"])
    boundary = len(source.encode(["red cat,"])[0])
    assert found.source_names == [0] * boundary + [1] * (len(found.source) - boundary)
    assert set(found.target_names) == {0, 1}
