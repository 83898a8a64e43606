"""Blocks: residuals and norms by hand, what may mix positions, and steps against all at once."""

from functools import partial

import pytest
import torch
from torch import Tensor, nn

from foveate.attention import causal, padding
from foveate.errors import UserError
from foveate.nn import DecoderBlock, FeedForward, MultiHeadAttention, Residual, TransformerBlock

B, T, S, C = 2, 5, 7, 6
NORMS = ["post", "pre"]


def scramble(module: nn.Module) -> nn.Module:
    """Random numbers for all parameters: norms that start at 1 and biases at 0 would hide mistakes."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(std=0.5)
    return module


def residual(norm: str, dropout: float) -> partial[Residual]:
    return partial(Residual, C, norm, dropout)


def encoder_block(norm: str, dropout: float = 0.0) -> TransformerBlock:
    return scramble(TransformerBlock(MultiHeadAttention(C, 2), FeedForward(C, 11), residual(norm, dropout)))


def decoder_block(norm: str, dropout: float = 0.0) -> DecoderBlock:
    attention, cross = MultiHeadAttention(C, 2), MultiHeadAttention(C, 3, source_width=5)
    return scramble(DecoderBlock(attention, cross, FeedForward(C, 11), residual(norm, dropout)))


def test_the_norm_divides_by_the_biased_deviation() -> None:
    """(1, 2, 3, 6): mean 3, and variance (4 + 1 + 0 + 9) / 4, not / 3."""
    residual = Residual(4, "pre", dropout=0.0)
    x = torch.tensor([[[1.0, 2, 3, 6]]])
    normed = torch.tensor([[[-2.0, -1, 0, 3]]]) / 3.5**0.5
    torch.testing.assert_close(residual(x, lambda y: 10 * y), x + 10 * normed, atol=1e-4, rtol=0)


def test_the_norm_stands_before_the_layer_or_after_the_sum() -> None:
    x = torch.randn(B, T, C)
    for norm in NORMS:
        residual = scramble(Residual(C, norm, dropout=0.0))
        expected = x + residual.norm(x).sin() if norm == "pre" else residual.norm(x + x.sin())
        torch.testing.assert_close(residual(x, torch.sin), expected)


def test_dropout_spares_the_residual_path() -> None:
    residual, x = Residual(C, "pre", dropout=0.5), torch.randn(B, 101, C)
    change = residual(x, torch.ones_like) - x
    assert change.unique().numel() > 1
    torch.testing.assert_close(change.round(decimals=3).unique(), torch.tensor([0.0, 2.0]))
    residual = Residual(C, "post", dropout=0.5)
    torch.testing.assert_close(residual(x, torch.zeros_like), residual.norm(x))


@pytest.mark.parametrize("norm", NORMS)
def test_an_encoder_block_by_hand(norm: str) -> None:
    block, x, mask = encoder_block(norm), torch.randn(B, T, C), padding(torch.tensor([5, 2]))
    norm_1, norm_2 = block.around_self.norm, block.around_feedforward.norm
    if norm == "post":
        y = norm_1(x + block.self(x, mask=mask))
        expected = norm_2(y + block.feedforward(y))
    else:
        y = x + block.self(norm_1(x), mask=mask)
        expected = y + block.feedforward(norm_2(y))
    torch.testing.assert_close(block(x, mask=mask), expected)


@pytest.mark.parametrize("norm", NORMS)
def test_a_decoder_block_by_hand(norm: str) -> None:
    block, x, source = decoder_block(norm), torch.randn(B, T, C), torch.randn(B, S, 5)
    mask = padding(torch.tensor([3, 7]))
    norms = [part.norm for part in (block.around_self, block.around_cross, block.around_feedforward)]
    layers = [
        lambda y: block.self(y, mask=causal()),
        lambda y: block.cross(y, source, mask=mask),
        block.feedforward,
    ]
    y = x
    for normalise, layer in zip(norms, layers, strict=True):
        y = normalise(y + layer(y)) if norm == "post" else y + layer(normalise(y))
    torch.testing.assert_close(block(x, source, mask=causal(), source_mask=mask), y)


@pytest.mark.parametrize("norm", NORMS)
def test_a_decoder_block_step_by_step(norm: str) -> None:
    block, x, source = decoder_block(norm), torch.randn(B, T, C), torch.randn(B, S, 5)
    whole = block(x, source, mask=causal())
    past, encoded = block.self.memory(x[:, :0]), block.cross.memory(source)
    steps = [block(one, encoded, past=past) for one in x.split(1, 1)]
    torch.testing.assert_close(torch.cat(steps, 1), whole)


def mixing(block: nn.Module, x: Tensor, *rest: Tensor, **named: object) -> Tensor:
    """(T, T): how much each output position depends on each input position, from the Jacobian."""
    jacobian = torch.autograd.functional.jacobian(lambda y: block(y, *rest, **named), x)
    return jacobian[0, :, :, 0].abs().sum((1, 3))


@pytest.mark.parametrize("norm", NORMS)
def test_nothing_but_attention_mixes_positions(norm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, source = torch.randn(1, T, C), torch.randn(1, S, 5)
    encoder, decoder = encoder_block(norm), decoder_block(norm)
    everywhere = torch.ones(T, T, dtype=torch.bool)
    assert torch.equal(mixing(encoder, x) > 0, everywhere)
    assert torch.equal(mixing(decoder, x, source, mask=causal()) > 0, everywhere.tril())

    def attend_to_nothing(q: Tensor, memory: object, **_: object) -> Tensor:
        return q

    monkeypatch.setattr("foveate.nn.attention.attend", attend_to_nothing)
    for alone in (mixing(encoder, x), mixing(decoder, x, source, mask=causal())):
        assert torch.equal(alone > 0, torch.eye(T, dtype=torch.bool))


@pytest.mark.parametrize(("activation", "function"), [("relu", torch.relu), ("gelu", nn.GELU()), ("silu", nn.SiLU())])
def test_feed_forward_by_hand(activation: str, function: nn.Module) -> None:
    layer, x = scramble(FeedForward(C, 11, activation)), torch.randn(B, T, C)
    inner = function(x @ layer.inner.weight.T + layer.inner.bias)
    torch.testing.assert_close(layer(x), inner @ layer.outer.weight.T + layer.outer.bias)


def test_feed_forward_drops_inner_values_in_training_only() -> None:
    """After the activation: each is 0, or twice what it is without dropout."""
    layer, x = FeedForward(C, C, "gelu", dropout=0.5), torch.randn(B, T, C)
    with torch.no_grad():
        layer.outer.weight.copy_(torch.eye(C))
        layer.outer.bias.zero_()
    dropped, whole = layer(x), layer.eval()(x)
    torch.testing.assert_close(dropped, torch.where(dropped == 0, 0, 2 * whole))
    assert bool((dropped == 0).any())
    assert bool((dropped != 0).any())


@pytest.mark.parametrize("norm", ["Pre", "none", ""])
def test_no_block_has_a_norm_of_an_unknown_name(norm: str) -> None:
    with pytest.raises(UserError, match=f"unknown norm '{norm}'"):
        encoder_block(norm)


def test_no_feed_forward_layer_has_an_unknown_activation() -> None:
    with pytest.raises(UserError, match=r"unknown activation 'gelu_new'; did you mean gelu or gelu-tanh or relu\?"):
        FeedForward(6, 7, "gelu_new")
