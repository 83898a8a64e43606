"""The recurrent translators: their parameters by hand, and what they cannot know.

Their numbers are compared with the papers' equations in `tests/parity`.
"""

import pytest
import torch
from torch import nn

from foveate import create

SMALL = {"src_vocab": 17, "tgt_vocab": 13, "embedding": 10, "width": 12, "dropout": 0.0}

N, M, E, C = 1009, 1013, 256, 256
"""Source and target vocabulary, width of embeddings and states."""


def parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def gates(number: int, inputs: int, width: int) -> int:
    """The parameters of a recurrent layer: input and state to each gate, with PyTorch's two biases."""
    return number * (inputs * width + width * width + 2 * width)


def shared(number: int) -> int:
    """What all presets have: embeddings, a both-ways encoder of half the width each, bridge, output layer."""
    return (N + M) * E + 2 * gates(number, E, C // 2) + (C * C + C) + (C * M + M)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rnn", shared(3) + gates(3, E, C)),
        ("rnn-bahdanau", shared(3) + gates(3, E + C, C) + (C * C + C) + C * C + C + (2 * C * C + C)),
        ("rnn-luong", shared(4) + gates(4, E + C, C) + C * C + (2 * C * C + C)),
        ("rnn-attentive", shared(3) + gates(3, E, C) + (2 * C * C + C)),
    ],
)
def test_parameters(name: str, expected: int) -> None:
    """Encoder, decoder, score (additive: W2 q + b, W1 k, u; biaffine: W), the layer that joins state and context."""
    assert parameters(create(name, device="meta", src_vocab=N, tgt_vocab=M)) == expected


def translate(model: nn.Module, source: list[int], target: list[int]) -> torch.Tensor:
    return model(torch.tensor([source]), torch.tensor([len(source)]), torch.tensor([target])).logits


def test_word_embeddings_have_no_order() -> None:
    """Attention to plain embeddings does not depend on their order; to the states of a reader it does."""
    for encoder, alike in [("embeddings", True), ("one-way", False), ("both-ways", False)]:
        model = create("rnn-bahdanau", encoder=encoder, **SMALL).eval()
        one, other = translate(model, [4, 5, 6, 7, 2], [1, 8, 9]), translate(model, [6, 4, 2, 7, 5], [1, 8, 9])
        assert torch.allclose(one, other, atol=1e-6) == alike


def test_a_one_way_reader_keeps_only_the_past() -> None:
    """The encoding of the first word knows the last only where the source is read both ways."""
    for encoder, knows in [("one-way", False), ("both-ways", True)]:
        model = create("rnn-luong", encoder=encoder, **SMALL).eval()
        states = [model.start(torch.tensor([[4, 5, last]]), torch.tensor([3])) for last in (6, 7)]
        first, second = (state.source.values[0, 0] for state in states)
        assert torch.equal(first, second) != knows


def test_the_fixed_vector_is_all_that_the_decoder_has() -> None:
    """Its state after START is as wide however long the source is; nothing else of the source is kept."""
    model = create("rnn", **SMALL).eval()
    for length in (1, 3, 11):
        state = model.start(torch.randint(4, 17, (1, length)), torch.tensor([length]))
        assert [part.shape for part in state.hidden] == [(1, 1, 12)]
        assert not hasattr(state, "source")


def test_dropout_of_embeddings_and_outputs() -> None:
    model, dropped = create("rnn-bahdanau", **{**SMALL, "dropout": 0.5}), {}
    for name in ("encoder", "decoder", "output"):
        part = getattr(model, name)
        part.register_forward_pre_hook(
            lambda _, given, name=name: dropped.update({name: float((given[0] == 0).mean(dtype=float))})
        )
    with torch.no_grad():
        model(torch.randint(4, 13, (31, 7)), torch.full((31,), 7), torch.randint(4, 13, (31, 5)))
    assert dropped == pytest.approx(dict.fromkeys(("encoder", "decoder", "output"), 0.5), abs=0.1)


def test_hard_attention_samples_in_training_and_takes_the_likeliest_after() -> None:
    model = create("rnn-luong", select="hard", **SMALL)
    inputs = (torch.tensor([[4, 5, 6, 7, 2]]).expand(31, -1), torch.full((31,), 5), torch.ones(31, 1, dtype=torch.long))
    assert len(model(*inputs).log_prob.unique()) > 1
    model.eval()
    assert len(model(*inputs).log_prob.round(decimals=5).unique()) == 1


def test_hard_attention_learns_by_reinforcement() -> None:
    """The logits say nothing to the score; the log-probabilities of the choices do."""
    model = create("rnn-luong", select="hard", **SMALL)
    output = model(torch.tensor([[4, 5, 6, 2]]), torch.tensor([4]), torch.tensor([[1, 8, 9]]))
    (by_logits,) = torch.autograd.grad(
        output.logits.sum(), model.decoder.score.weight, retain_graph=True, materialize_grads=True
    )
    (by_choices,) = torch.autograd.grad(output.log_prob.sum(), model.decoder.score.weight)
    assert not by_logits.any()
    assert by_choices.any()
