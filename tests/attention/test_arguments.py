"""What `attend` says about arguments that do not fit, and how many functions a plain call passes."""

import sys

import pytest
import torch

from foveate.attention import (
    Dot,
    Hard,
    LinearDistance,
    Memory,
    RelativePosition,
    ScaledDot,
    Soft,
    attend,
    causal,
    padding,
)

Q, K, V = torch.zeros(2, 7, 5), torch.zeros(2, 11, 5), torch.zeros(2, 11, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: attend(torch.zeros(2, 7, 3), K, V),
            r"queries \(2, 7, 3\) and keys \(2, 11, 5\) differ in width, 3 and 5: project them",
        ),
        (
            lambda: attend(Q, torch.zeros(3, 11, 5), torch.zeros(3, 11, 5)),
            r"do not broadcast: \(2, 7, 5\), \(3, 11, 5\), \(3, 11, 5\); is a batch or head dimension missing\?",
        ),
        (lambda: attend(Q, K, torch.zeros(2, 13, 3)), r"11 keys \(2, 11, 5\) but 13 values \(2, 13, 3\)"),
        (lambda: attend(Q, K, V, dropout=1.0), "at least 0 and below 1, not 1.0"),
        (lambda: attend(Q, K, V, dropout=-0.1), "at least 0 and below 1, not -0.1"),
        (
            lambda: attend(Q, K, V, mask=torch.ones(7, 13, dtype=torch.bool)),
            r"a mask of shape \(7, 13\) does not broadcast to scores of shape \(2, 7, 11\)",
        ),
        (
            lambda: attend(Q, K, V, mask=torch.ones(2, 1, 7, 11, dtype=torch.bool)),
            r"a mask of shape \(2, 1, 7, 11\) .* \(2, 7, 11\); is a head dimension missing or too many\?",
        ),
        (
            lambda: attend(Q, K, V, mask=torch.ones(2, 11, dtype=torch.bool)),
            r"\(2, 11\) .* \(2, 7, 11\); .*mask=padding\(lengths\)",
        ),
        (lambda: attend(Q, K, V, mask=causal() & padding(torch.tensor([1, 2, 3]))), r"mask of shape \(3, 1, 1\)"),
        (lambda: attend(Q[0], K[0], V[0], mask=padding(torch.tensor([1, 2]))), r"mask of shape \(2, 1, 1\)"),
        (lambda: attend(Q, K, V, bias=torch.zeros(7, 13)), r"a bias of shape \(7, 13\) does not broadcast"),
        (lambda: attend(Q, K, V, bias=LinearDistance(torch.ones(3))), r"a bias of shape \(3, 1, 1\)"),
        (lambda: attend(Q, K, V, bias=RelativePosition(3, 5)), r"a bias of shape \(3, 1, 1\)"),
        (lambda: attend(Q, K, V, select=Soft(torch.zeros(3))), r"a table of sinks of shape \(3, 1, 1\) does not"),
        (lambda: attend(Q[0], K[0], V[0], select=Soft(torch.zeros(2))), r"a table of sinks of shape \(2, 1, 1\)"),
        (
            lambda: attend(Q, K, V, mask=padding(torch.tensor([1, 2])) & torch.ones(5, 7, 1, dtype=torch.bool)),
            r"masks of the shapes \(2, 1, 1\) and \(5, 7, 1\), joined by &, do not broadcast",
        ),
        (lambda: attend(Q, K, V, select=Hard(), dropout=0.5), "dropout of 0.5 makes no sense for a hard selection"),
    ],
)
def test_what_does_not_fit_is_told(call, message, unchecked):
    with pytest.raises(ValueError, match=message):
        call()


def test_values_are_needed(unchecked):
    with pytest.raises(TypeError, match=r"attend\(q, k, v\), or attend\(q, memory\)"):
        attend(Q, K)


@pytest.mark.parametrize("more", [{"v": V}, {"score": ScaledDot(0.5)}])
def test_a_memory_takes_no_values_and_score(more, unchecked):
    with pytest.raises(TypeError, match=r"values and a score of its own: attend\(q, memory\)"):
        attend(Q, Memory(K, V, Dot()), **more)


def test_a_score_without_block_says_so():
    class Unfinished(ScaledDot):
        def scale(self, width):
            return None

    with pytest.raises(NotImplementedError, match="Unfinished is not a dot product and must define `block`"):
        attend(Q, K, V, Unfinished())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"q": [[1.0]]}, "q must be a tensor, not list"),
        ({"k": [[1.0]]}, "k must be a tensor, not list"),
        ({"v": "values"}, "v must be a tensor, not str"),
        ({"score": "dot"}, r"score must be a Score, such as ScaledDot\(\), not str"),
        ({"score": [0.5, 0.5]}, r"score must be a Score, such as ScaledDot\(\), not list"),
        ({"score": Dot}, r"score=Dot is a class: make an instance, Dot\(\.\.\.\)"),
        ({"select": "hard"}, r"select must be a Selection, such as Soft\(\), not str"),
        ({"select": Hard}, r"select=Hard is a class: make an instance, Hard\(\.\.\.\)"),
        ({"mask": causal}, r"a mask must be called to be made: mask=causal\(\.\.\.\), not mask=causal"),
        ({"mask": [True, False]}, r"a mask holds booleans \(True: may look\), not list"),
        ({"bias": "relative"}, "a bias holds floating-point numbers, not str"),
    ],
    # Names of its own: a function as a string has its address, and parallel test processes must agree on the names.
    ids=[
        "q",
        "k",
        "v",
        "score: name",
        "score: list",
        "score: class",
        "select: name",
        "select: class",
        "mask: function",
        "mask: list",
        "bias: name",
    ],
)
def test_arguments_of_the_wrong_type(arguments, message, unchecked):
    with pytest.raises(TypeError, match=message):
        attend(**{"q": Q, "k": K, "v": V, **arguments})


@pytest.mark.parametrize("lengths", [[9, 3], torch.tensor([0.5, 1.0]), torch.tensor([True, False])], ids=str)
def test_padding_takes_a_tensor_of_lengths(lengths, unchecked):
    with pytest.raises(TypeError, match=r"padding takes a (tensor of lengths|length for each example), not"):
        padding(lengths)


@pytest.mark.parametrize("joined", [lambda mask: mask, lambda mask: mask & causal()])
def test_no_length_is_greater_than_the_number_of_keys(joined):
    mask = joined(padding(torch.tensor([12, 3])))
    with pytest.raises(ValueError, match="padding has a length of 12, but there are only 11 keys"):
        attend(Q, K, V, mask=mask)
    assert attend(Q, torch.zeros(2, 13, 5), torch.zeros(2, 13, 3), mask=mask).shape == (2, 7, 3)


def test_a_plain_call_passes_few_functions(unchecked):
    """Each costs a small model time at each step of decoding."""
    frames = []

    def note(frame, event, _):
        if event == "call" and "attention" in frame.f_code.co_filename.split("/"):
            frames.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        attend(Q, K, V)
    finally:
        sys.setprofile(None)
    assert len(frames) <= 23
