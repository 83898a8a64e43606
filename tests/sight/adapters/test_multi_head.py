"""`nn.MultiheadAttention` in all its variants and torch's Transformer layers, and the weights that torch computes."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foveate import look

B, T, S, C, H = 2, 5, 7, 12, 3

PADDING = torch.arange(S) >= torch.tensor([S, 4])[:, None]
HIDDEN = torch.rand(T, S, generator=torch.Generator().manual_seed(3)) > 0.6
HIDDEN[:, 0] = False
NUMBERS = torch.randn(B * H, T, S, generator=torch.Generator().manual_seed(3))

LAYERS: dict[str, dict[str, Any]] = {
    "plain": {},
    "without bias": {"bias": False},
    "other widths": {"kdim": 5, "vdim": 11},
    "keys of its own": {"add_bias_kv": True},
    "an empty key": {"add_zero_attn": True},
    "both": {"add_bias_kv": True, "add_zero_attn": True},
}

MASKS: dict[str, dict[str, Tensor]] = {
    "no mask": {},
    "padding": {"key_padding_mask": PADDING},
    "mask": {"attn_mask": HIDDEN},
    "numbers": {"attn_mask": NUMBERS},
    "mask and padding": {"attn_mask": HIDDEN, "key_padding_mask": PADDING},
    "numbers and padding": {"attn_mask": NUMBERS, "key_padding_mask": PADDING.float() * -3.0},
}


def layer_of(**options: Any) -> nn.MultiheadAttention:
    """A layer that looks decidedly."""
    layer = nn.MultiheadAttention(C, H, **options)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_(std=0.6)
    return layer


def sources(options: dict[str, Any]) -> list[Tensor]:
    """Queries, keys and values, examples first."""
    return [torch.randn(B, T, C), torch.randn(B, S, options.get("kdim", C)), torch.randn(B, S, options.get("vdim", C))]


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("grad", [True, False])
def test_weights(name: str, mask: str, need_weights: bool, grad: bool) -> None:
    """Also where torch itself would take a fast path."""
    layer = layer_of(batch_first=True, **LAYERS[name]).eval()
    inputs = sources(LAYERS[name])
    with torch.set_grad_enabled(grad):
        expected = layer(*inputs, **MASKS[mask], average_attn_weights=False)
        with look(layer) as sight:
            output, weights = layer(*inputs, **MASKS[mask], need_weights=need_weights, average_attn_weights=False)
    assert (weights is not None) == need_weights
    torch.testing.assert_close(output, expected[0], atol=1e-5, rtol=1e-5)
    assert sight.sites == [""]
    torch.testing.assert_close(sight[""].weights(), expected[1].detach(), atol=1e-6, rtol=0)
    assert sight[""].output_error() < 5e-6


def test_examples_second_and_no_examples() -> None:
    layer = layer_of()
    inputs = sources({})
    expected = layer(*(part.transpose(0, 1) for part in inputs), average_attn_weights=False)[1].detach()
    with look(layer) as sight:
        layer(*(part.transpose(0, 1) for part in inputs), need_weights=False)
    torch.testing.assert_close(sight[""].weights(), expected, atol=1e-6, rtol=0)
    with look(layer) as sight:
        layer(*(part[1] for part in inputs), need_weights=False, attn_mask=NUMBERS[:H])
    expected = layer(*(part[1] for part in inputs), attn_mask=NUMBERS[:H], average_attn_weights=False)[1].detach()
    torch.testing.assert_close(sight[""].weights(), expected[None], atol=1e-6, rtol=0)


def test_causality_given_as_a_hint() -> None:
    layer, x = layer_of(batch_first=True), torch.randn(B, T, C)
    future = nn.Transformer.generate_square_subsequent_mask(T)
    with look(layer) as sight:
        layer(x, x, x, attn_mask=future, is_causal=True, need_weights=False)
    assert not sight[""].weights().triu(1).any()
    expected = layer(x, x, x, attn_mask=future, average_attn_weights=False)[1].detach()
    torch.testing.assert_close(sight[""].weights(), expected, atol=1e-6, rtol=0)


def test_dropout_and_gradients() -> None:
    layer, x = layer_of(batch_first=True, dropout=0.5), torch.randn(B, T, C)

    def run() -> list[Tensor]:
        torch.manual_seed(3)
        output = layer(x, x, x, need_weights=False)[0]
        return [output, *torch.autograd.grad(output.square().sum(), list(layer.parameters()))]

    expected = run()
    with look(layer) as sight:
        found = run()
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))
    plain = layer.eval()(x, x, x, average_attn_weights=False)[1].detach()
    torch.testing.assert_close(sight[""].weights(), plain, atol=1e-6, rtol=0)


def test_autocast() -> None:
    layer, x = layer_of(batch_first=True), torch.randn(B, T, C)
    with look(layer) as sight, torch.autocast("cpu", torch.bfloat16):
        _, expected = layer(x, x, x, average_attn_weights=False)
    torch.testing.assert_close(sight[""].weights(), expected.float().detach(), atol=1e-2, rtol=0)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_an_encoder_leaves_its_fast_path_and_says_so() -> None:
    """At padding the fast path gives zeros; at real positions the outputs agree. It wants an even number of heads."""
    layer = nn.TransformerEncoderLayer(C, 4, 17, batch_first=True)
    model, x = nn.TransformerEncoder(layer, 2).eval(), torch.randn(B, S, C)
    with torch.no_grad():
        expected = model(x, src_key_padding_mask=PADDING)
        with look(model) as sight:
            output = model(x, src_key_padding_mask=PADDING)
    assert sight.sites == ["layers.0.self_attn", "layers.1.self_attn"]
    torch.testing.assert_close(output[~PADDING], expected[~PADDING], atol=1e-6, rtol=0)
    (note,) = sight.notes
    assert note.startswith("layers.0.self_attn and similar modules ran without torch's native fast path")
    found = sight["layers.0.self_attn"].weights()
    attention = model.layers[0].self_attn
    weights = F.multi_head_attention_forward(
        *(x.transpose(0, 1),) * 3,
        *(C, 4, attention.in_proj_weight, attention.in_proj_bias, None, None, False, 0.0),
        *(attention.out_proj.weight, attention.out_proj.bias),
        key_padding_mask=PADDING,
        average_attn_weights=False,
    )[1]
    torch.testing.assert_close(found, weights.detach(), atol=1e-6, rtol=0)


def test_a_decoder_has_two_sites_for_each_layer() -> None:
    layer = nn.TransformerDecoderLayer(C, H, 17, batch_first=True)
    model, x, memory = nn.TransformerDecoder(layer, 2).eval(), torch.randn(B, T, C), torch.randn(B, S, C)
    future = nn.Transformer.generate_square_subsequent_mask(T)
    arguments = {"tgt_mask": future, "memory_key_padding_mask": PADDING}
    expected = model(x, memory, **arguments)
    with look(model) as sight:
        output = model(x, memory, **arguments)
    assert torch.equal(output, expected)
    assert sight.notes == []
    assert sight.sites == [f"layers.{n}.{part}" for n in range(2) for part in ("self_attn", "multihead_attn")]
    for site in sight.sites:
        found = sight[site].weights()
        assert found.shape == (B, H, T, T if site.endswith("self_attn") else S)
        torch.testing.assert_close(found.sum(-1), torch.ones(B, H, T))
    assert not sight["layers.1.self_attn"].weights().triu(1).any()
    assert not sight["layers.1.multihead_attn"].weights()[1, ..., 4:].any()


@pytest.mark.parametrize("options", [{"batch_first": False}, {"batch_first": True, "train": True}])
def test_a_layer_that_has_no_fast_path_leaves_none(options: dict) -> None:
    train = options.pop("train", False)
    layer, x = nn.MultiheadAttention(C, 4, **options).train(train), torch.randn(B, S, C)
    with torch.no_grad(), look(layer) as sight:
        layer(x, x, x)
    assert sight.notes == []
