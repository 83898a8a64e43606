"""SAR beside mmocr's, with the same weights."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from mmocr_sar import INSTALLED, mmocr_sar
from torch import Tensor, nn

from foveate import create

pytestmark = pytest.mark.skipif(not INSTALLED, reason="mmocr is not installed (pip install --no-deps mmocr)")

WIDTH, CHANNELS, VOCABULARY = 6, 17, 13

PIXELS = torch.randn(3, 1, 24, 44, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
TARGET = torch.tensor([[1, 4, 12, 6, 7], [1, 8, 4, 2, 3], [1, 9, 9, 4, 5]])


def randomized(model: nn.Module) -> nn.Module:
    """Random numbers for all parameters: biases of 0 would hide mistakes."""
    with torch.no_grad():
        for parameter in model.double().parameters():
            parameter.uniform_(-0.4, 0.4)
    return model.eval()


def pairs(model: Any, encoder: Any, decoder: Any) -> Iterator[tuple[Tensor, Tensor]]:
    """Each parameter of SAR's behind the backbone, and the part of mmocr's that is the same."""
    for own, other in ((model.encoder.layer, encoder.rnn_encoder), (model.decoder.layer, decoder.rnn_decoder)):
        yield from ((part, getattr(other, name)) for name, part in own.named_parameters())
    for own, other in ((model.holistic, encoder.linear), (model.score.query, decoder.conv1x1_1)):
        yield from ((own.weight, other.weight), (own.bias, other.bias))
    yield model.embedding.weight, decoder.embedding.weight
    yield model.neighbours.weight, decoder.conv3x3_1.weight
    yield model.score.direction, decoder.conv1x1_2.weight[0]
    yield model.output.weight, decoder.prediction.weight[:, : WIDTH + CHANNELS]
    yield model.output.bias, decoder.prediction.bias


def test_sar_as_mmocr() -> None:
    """The last layer of mmocr's reads the vector of the whole word too, which the paper's does not: its weights are 0
    here, and so are the biases that mmocr's convolutions have."""
    model: Any = randomized(create("sar", channels=1, widths=(7, 11, 13, CHANNELS), width=WIDTH, vocabulary=VOCABULARY))
    words = SimpleNamespace(num_classes=VOCABULARY, start_idx=1, padding_idx=0)
    sizes = {"d_model": CHANNELS, "d_enc": WIDTH, "d_k": WIDTH}
    with mmocr_sar() as (read, write):
        encoder = read(**sizes).double().eval()
        decoder = write(words, pred_concat=True, **sizes).double().eval()
    with torch.no_grad():
        for part in (decoder.conv3x3_1.bias, decoder.conv1x1_2.bias, decoder.prediction.weight):
            part.zero_()
        for own, other in pairs(model, encoder, decoder):
            other.copy_(own)
    columns = torch.tensor([11, 7, 1])  # of the grid; the images are four times as wide
    samples = [{"valid_ratio": (int(count) - 0.5) / 11} for count in columns]
    grid = model.backbone.grid(PIXELS).detach()
    holistic = encoder(grid, samples)
    inputs = torch.cat([holistic[:, None], decoder.embedding(TARGET)], 1)
    expected = decoder._2d_attention(inputs, grid, holistic[:, None], [one["valid_ratio"] for one in samples])[:, 1:]
    found = model(PIXELS, columns * 4 - 1, TARGET).logits
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=0)
    weights = torch.randn_like(expected)
    (found * weights).sum().backward()
    names = {id(part): part for part in (*encoder.parameters(), *decoder.parameters())}
    gradients = torch.autograd.grad((expected * weights).sum(), [*names.values()], allow_unused=True)
    for part, gradient in zip(names.values(), gradients, strict=True):
        part.grad = gradient
    for own, other in pairs(model, GradientsOf(encoder), GradientsOf(decoder)):
        torch.testing.assert_close(own.grad, other, atol=1e-9, rtol=0)


class GradientsOf:
    """The gradients of a module's parameters in their places."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.module, name)
        return found.grad if isinstance(found, nn.Parameter) else GradientsOf(found)
