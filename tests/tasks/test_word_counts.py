"""What counting words finds in labelled texts: naive Bayes by hand, and the least loss of the regression."""

import pytest
import torch
from torch import Tensor

from foveate.baselines import word_counts
from foveate.baselines.word_counts import (
    STRENGTH,
    CountsWithLabels,
    fit_regression,
    labels_by_counting,
    naive_bayes,
    regression,
)

KNOWN = CountsWithLabels(torch.tensor([[2.0, 0, 1], [1, 1, 0], [0, 3, 0]]).to_sparse(), torch.tensor([0, 0, 1]))
"""Three texts of three words: two of the first label, one of the second."""


def test_naive_bayes_by_hand() -> None:
    """With one added to each count, the words of the first label are 4, 2 and 2 of 8, of the second 1, 4 and 1 of 6."""
    asked = torch.tensor([[1.0, 0, 1], [0, 2, 0]])
    found = naive_bayes(KNOWN, asked.to_sparse(), 2).exp()
    expected = [[2 / 3 * 4 / 8 * 2 / 8, 1 / 3 / 6 / 6], [2 / 3 * (2 / 8) ** 2, 1 / 3 * (4 / 6) ** 2]]
    torch.testing.assert_close(found, torch.tensor(expected))


def gradients(weights: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Those of the loss that is written out."""
    weights, bias = weights.double().requires_grad_(), bias.double().requires_grad_()
    logits = KNOWN.counts.to_dense().double() @ weights + bias
    chosen = logits.log_softmax(1)[torch.arange(3), KNOWN.labels]
    (weights.square().sum() / 2 - STRENGTH * chosen.sum()).backward()
    return weights.grad, bias.grad


def test_the_regression_has_the_least_loss() -> None:
    """Whose gradient vanishes; it is convex."""
    for gradient in gradients(*fit_regression(KNOWN, 2)):
        assert gradient.abs().max() < 1e-2
    assert gradients(torch.zeros(3, 2), torch.zeros(2))[0].abs().max() > 1


def test_a_word_that_no_text_has_changes_nothing() -> None:
    nothing = torch.zeros(1, 3).to_sparse()
    assert regression(KNOWN, nothing, 2).argmax() == 0
    assert naive_bayes(KNOWN, nothing, 2).argmax() == 0


def test_pairs_of_words_tell_what_words_do_not() -> None:
    texts = ["dog bites man", "a dog bites a man", "man bites dog", "a man bites a dog"] * 5
    labels = [("none",), ("none",), ("news",), ("news",)] * 5
    for found in labels_by_counting(texts, labels, ["Dog bites, well", "he: man bites"]).values():
        assert found == [["none"], ["news"]]


@pytest.mark.parametrize(("most", "label"), [(2, "x"), (4, "y")])
def test_the_most_frequent_words_are_counted(monkeypatch: pytest.MonkeyPatch, most: int, label: str) -> None:
    """One or two words, where there are two labels: "b", which tells, is the second one."""
    monkeypatch.setattr(word_counts, "MOST_WEIGHTS", most)
    found = labels_by_counting(["a", "a", "a", "b", "b"], [("x",)] * 3 + [("y",)] * 2, ["b"])
    assert found["naive Bayes of words and pairs"] == [[label]]
