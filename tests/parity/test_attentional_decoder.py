"""The speller of Listen, Attend and Spell beside speechbrain's attentional decoder, with the same weights."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from speechbrain_decoder import INSTALLED, attentional_decoder
from torch import Tensor

from foveate import create

pytestmark = pytest.mark.skipif(
    not INSTALLED, reason="speechbrain is not installed (pip install --no-deps speechbrain)"
)

WIDTH, EMBEDDING, VOCABULARY, LAYERS = 12, 10, 17, 2


def pairs(speller: Any, other: Any) -> Iterator[tuple[Tensor, Tensor]]:
    """Each parameter of the speller and speechbrain's. The latter's last layer reads the context first."""
    for layer, cell in enumerate(other.rnn.rnn_cells):
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            yield getattr(speller.recurrent.layer, f"{name}_l{layer}"), getattr(cell, name)
    yield speller.score.query.weight, other.attn.mlp_dec.weight
    yield speller.score.query.bias, other.attn.mlp_dec.bias
    yield speller.score.key.weight, other.attn.mlp_enc.weight
    yield speller.score.direction, other.attn.mlp_attn.weight[0]
    yield speller.combine.weight[:, :WIDTH], other.proj.weight[:, WIDTH:]
    yield speller.combine.weight[:, WIDTH:], other.proj.weight[:, :WIDTH]
    yield speller.combine.bias, other.proj.bias


def test_the_speller_as_speechbrain() -> None:
    """speechbrain projects the context, which does nothing here, and has no tanh behind the last layer."""
    sizes = {"hidden_size": WIDTH, "attn_dim": WIDTH, "enc_dim": WIDTH, "input_size": EMBEDDING, "num_layers": LAYERS}
    decoder = attentional_decoder()("lstm", "content", **sizes).double().eval()
    sizes = {"bands": 7, "vocabulary": VOCABULARY, "width": WIDTH, "embedding": EMBEDDING, "layers": LAYERS}
    model: Any = create("las", **sizes, score="additive").double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-0.4, 0.4)
        decoder.attn.mlp_out.weight.copy_(torch.eye(WIDTH))
        decoder.attn.mlp_out.bias.zero_()
        decoder.attn.mlp_enc.bias.zero_()
        for own, other in pairs(model.speller, decoder):
            other.copy_(own)
    encoded = torch.randn(3, 20, WIDTH, dtype=torch.float64, requires_grad=True)
    lengths, tokens = torch.tensor([20, 13, 5]), torch.randint(4, VOCABULARY, (3, 5))
    found, _ = model._advance(tokens, model._start(encoded, lengths))
    expected, attention = decoder(model.embedding(tokens), encoded, lengths / 20)
    torch.testing.assert_close(found, expected.tanh(), atol=1e-9, rtol=0)
    assert attention[2, :, 5:].abs().max() == 0
    weights = torch.randn_like(found)
    shared = [encoded, model.embedding.weight]
    own, others = (
        torch.autograd.grad((output * weights).sum(), [*shared, *module.parameters()], allow_unused=True)
        for output, module in ((found, model.speller), (expected.tanh(), decoder))
    )
    for one, other in zip(own[:2], others[:2], strict=True):
        torch.testing.assert_close(one, other, atol=1e-9, rtol=0)
    for module, gradients in ((model.speller, own[2:]), (decoder, others[2:])):
        for parameter, gradient in zip(module.parameters(), gradients, strict=True):
            parameter.data = gradient
    for one, other in pairs(model.speller, decoder):
        torch.testing.assert_close(one, other, atol=1e-9, rtol=0)
