"""Classifiers: the sizes of their papers, what decides, and what is not built where it is not needed."""

import pytest
import torch

import foveate
from foveate import models
from foveate.attention import padding

TOKENS, LENGTHS = torch.tensor([[1, 5, 6, 7, 8], [1, 9, 4, 0, 0]]), torch.tensor([5, 3])


def parameters(name: str, **sizes: int) -> int:
    model = foveate.create(name, device="meta", **sizes)
    return sum(parameter.numel() for parameter in model.parameters())


def test_sizes_of_the_papers() -> None:
    """Yang et al. 2016: GRUs of 50 each way on embeddings of 200, and a context vector of 100. By hand, one by one.

    The encoder of Vaswani et al. 2017, base: 6 blocks of 3,152,384 parameters.
    """
    gru = 2 * 3 * (50 * 200 + 50 * 50 + 2 * 50)
    attention = 100 + (100 * 100 + 100) + 100 * 100 + 100
    assert parameters("rnn-attentive-classifier", vocabulary=1009, classes=5) == 1009 * 200 + gru + attention + 505
    lstm = 4 * (1024 * 512 + 1024 * 1024 + 2 * 1024)
    assert parameters("rnn-acceptor-large", vocabulary=1009, classes=5) == 1009 * 512 + lstm + 1025 * 5
    block = 4 * (512 * 512 + 512) + 2 * 512 * 2048 + 2048 + 512 + 4 * 512
    base = parameters("transformer-classifier-base", vocabulary=1009, classes=5)
    assert base == 1009 * 512 + 6 * block + 513 * 5


def test_the_acceptor_decides_by_the_state_after_the_last_word() -> None:
    model = foveate.create("rnn-acceptor", vocabulary=11, classes=3, embedding=6, width=10).eval()
    outputs, _ = model.recurrent(model.embedding(TOKENS), lengths=LENGTHS)
    expected = model.output(torch.stack([outputs[0, 4], outputs[1, 2]]))
    torch.testing.assert_close(model(TOKENS, LENGTHS).logits, expected[:, None])


def test_a_text_asked_with_its_own_last_state() -> None:
    model = foveate.create("rnn-own-query-classifier", vocabulary=11, classes=3, embedding=6, width=10).eval()
    assert model.pooling.query is None
    outputs, (last,) = model.recurrent(model.embedding(TOKENS), lengths=LENGTHS)
    expected = model.output(model.pooling(outputs, LENGTHS, last[-1]))
    torch.testing.assert_close(model(TOKENS, LENGTHS).logits, expected[:, None])


def test_the_first_place_decides_for_a_transformer() -> None:
    sizes = {"width": 12, "heads": 3, "feedforward": 7, "layers": 2}
    model = foveate.create("transformer-classifier-base", vocabulary=11, classes=3, **sizes).eval()
    encoded = model.encoder(model.embedding(TOKENS) * 12**0.5, padding(LENGTHS))
    torch.testing.assert_close(model(TOKENS, LENGTHS).logits[:, 0], model.output(encoded[:, 0]))


@pytest.mark.parametrize(
    ("name", "sites"),
    [
        ("rnn-acceptor", []),
        ("rnn-attentive-classifier", ["pooling"]),
        ("transformer-classifier", ["encoder.blocks.0.self", "encoder.blocks.1.self", "pooling"]),
    ],
)
def test_where_they_attend(name: str, sites: list[str]) -> None:
    model = foveate.create(name, vocabulary=11, classes=3).eval()
    with foveate.look(model) as sight:
        model(TOKENS, LENGTHS)
    assert sight.sites == sites


def test_an_untrained_classifier_is_nearly_indifferent() -> None:
    for name in models.presets(("rnn-encoder", "transformer-encoder"), "text"):
        if not name.endswith(("-large", "-base")):
            model = foveate.create(name, vocabulary=997, classes=7).eval()
            tokens = torch.randint(4, 997, (31, 11))
            shares = model(tokens, torch.full((31,), 11)).logits.softmax(-1)
            assert float(shares.detach().max()) < 0.75, name
