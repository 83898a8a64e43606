"""The convolutional translator: its parameters by hand, its windows, its gradients. Its numbers: see `tests/parity`."""

import pytest
import torch

from foveate import create
from foveate.errors import UserError

SMALL = {
    "src_vocab": 17,
    "tgt_vocab": 13,
    "embedding": 11,
    "width": 7,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "dropout": 0.0,
}


def test_the_papers_size() -> None:
    """20 and 20 layers of width 512 and kernel 3; 40,000 subwords a side, as for English-Romanian."""
    model = create("convolutional", device="meta", src_vocab=40_000, tgt_vocab=40_000)
    convolution = 3 * 512 * 1024 + 1024
    linear = 512 * 512 + 512
    tables = 2 * (40_000 + 1024) * 512 + 40_000 * 512 + 40_000
    expected = tables + 40 * convolution + (20 * 2 + 4) * linear
    assert sum(parameter.numel() for parameter in model.parameters()) == expected


def test_a_step_keeps_a_window_and_no_more() -> None:
    model = create("convolutional", kernel=5, **SMALL).eval()
    state = model.start(torch.tensor([[4, 5, 2]]), torch.tensor([3]))
    with torch.no_grad():
        for step in range(9):
            model.step(torch.tensor([4 + step % 3]), state)
            assert [tuple(past.shape) for past in state.past] == [(1, 4, 7)] * 3
    assert state.length == 9
    assert state.source.keys.shape == state.source.values.shape == (1, 3, 11)


def test_words_are_seen_as_far_as_the_windows_reach() -> None:
    """Three layers of kernel 3 reach back six tokens."""
    model = create("convolutional", **SMALL).eval()
    target = torch.tensor([[1, 4, 5, 6, 7, 8, 9, 10, 11]])
    with torch.no_grad():
        source = torch.tensor([[2]]), torch.tensor([1])  # one place: its weight is 1, whatever asks
        logits = model(*source, target).logits
        for place, expected in ((1, False), (2, True)):
            other = target.clone()
            other[:, place] = 12
            changed = (model(*source, other).logits - logits)[0, 8].abs().amax() > 1e-7
            assert bool(changed) == expected


def test_the_encoders_gradient_is_shared_among_the_decoders_layers() -> None:
    """The encoder's last bias is in the values of both positions, times sqrt(1/2); three layers will look there."""
    model = create("convolutional", **SMALL)
    state = model.start(torch.tensor([[4, 2]]), torch.tensor([2]))
    state.source.values.sum().backward()
    expected = torch.full((11,), 2 * 0.5**0.5 / 6)
    torch.testing.assert_close(model.encoder_output.bias.grad, expected)


def test_a_text_longer_than_the_learned_positions() -> None:
    model = create("convolutional", max_length=5, **SMALL)
    with pytest.raises(UserError, match="a sequence has 6 positions, but only 5 were learned"):
        model(torch.tensor([[4, 5, 6, 7, 8, 2]]), torch.tensor([6]), torch.tensor([[1]]))


def test_the_first_weights_keep_the_variance() -> None:
    """Section 3.5 of the paper: N(0, p/n) for what a share p of is kept of n inputs, N(0, 4p/n) before a gate, 0.1 for
    embeddings."""
    sizes = {
        "embedding": 211,
        "width": 97,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "src_vocab": 301,
        "tgt_vocab": 307,
    }
    torch.manual_seed(3)
    model = create("convolutional-tiny", **sizes, dropout=0.5)
    gates = [layer.convolution.linear for part in (model.encoder, model.decoder) for layer in part]
    plain = [module for module in model.modules() if isinstance(module, torch.nn.Linear) and module not in gates]
    for linears, variance in ((gates, 4 * 0.5), (plain, 0.5)):
        assert linears
        for linear in linears:
            assert float(linear.weight.detach().std()) == pytest.approx(
                (variance / linear.in_features) ** 0.5, rel=0.05
            )
            assert not linear.bias.detach().any()
    for embedding in (model.source_embedding, model.target_embedding):
        assert float(embedding.weight.detach().std()) == pytest.approx(0.1, rel=0.05)
