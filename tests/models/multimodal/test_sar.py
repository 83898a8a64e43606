"""SAR, beside its equations written out for one image, one place and one step at a time."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foveate import models
from foveate.contracts import Generator, GridEncoder
from foveate.decoding import beam, greedy
from foveate.models.multimodal.sar import SAR, SARConfig
from foveate.special_tokens import LEARNED

START = LEARNED.start

PIXELS = torch.randn(3, 2, 24, 44, generator=torch.Generator().manual_seed(3))
WIDTHS = torch.tensor([44, 27, 4])
TARGET = torch.tensor([[1, 4, 12, 6, 7], [1, 8, 4, 0, 0], [1, 9, 9, 4, 0]])


@pytest.fixture(scope="module")
def model() -> SAR:
    torch.manual_seed(7)
    return SAR(SARConfig(13, 2, (3, 5), (1, 2, 1, 1), (7, 11, 13, 17), 19, 2)).eval()


def naive_logits(model: SAR, pixels: Tensor, width: int, target: Tensor) -> Tensor:
    """Equations 1 to 3 of the paper for one image, (T, N)."""
    x = model.backbone.stem(pixels[None])
    for stage, window in zip(model.backbone.stages, ((2, 2), (2, 2), (2, 1), (1, 1)), strict=True):
        x = stage(nn.MaxPool2d(window)(x))
    rows, columns = x.shape[2], -(-width // 4)
    whole, grid = x[0], x[0, :, :, :columns]
    _, (last, _) = model.encoder.layer(grid.amax(1).T[None])
    words = torch.cat([model.holistic(last[-1])[None], model.embedding(target)[None]], 1)
    states = model.decoder.layer(words)[0][0, 1:]
    neighbours = F.pad(whole, (1, 1, 1, 1))
    logits = []
    for state in states:
        scores = torch.empty(rows, columns)
        for i in range(rows):
            for j in range(columns):
                key = (model.neighbours.weight * neighbours[:, i : i + 3, j : j + 3]).sum((1, 2, 3))
                scores[i, j] = torch.tanh(key + model.score.query(state)) @ model.score.direction
        weights = scores.flatten().softmax(0).view(rows, columns)
        glimpse = (weights * grid).sum((1, 2))
        logits.append(model.output(torch.cat([state, glimpse])))
    return torch.stack(logits)


def test_equals_the_equations(model) -> None:
    output = model(PIXELS, WIDTHS, TARGET).logits
    assert output.shape == (3, 5, 13)
    for row in range(3):
        expected = naive_logits(model, PIXELS[row], int(WIDTHS[row]), TARGET[row])
        torch.testing.assert_close(output[row], expected, atol=2e-5, rtol=0)


def test_gradients_equal_those_of_the_equations(model) -> None:
    def gradients(logits: Tensor) -> list[Tensor]:
        return torch.autograd.grad(logits.square().sum(), [*model.parameters()])

    whole = gradients(model(PIXELS[1:2], WIDTHS[1:2], TARGET[1:2]).logits)
    naive = gradients(naive_logits(model, PIXELS[1], 27, TARGET[1]))
    for (name, _), found, expected in zip(model.named_parameters(), whole, naive, strict=True):
        torch.testing.assert_close(found, expected, atol=2e-5, rtol=2e-4, msg=lambda text, name=name: f"{name}: {text}")


def test_steps_equal_all_at_once_after_rows_changed_places(model) -> None:
    whole = model(PIXELS, WIDTHS, TARGET).logits
    with torch.no_grad():
        state = model.start(PIXELS, WIDTHS)
        for step in range(2):
            torch.testing.assert_close(model.step(TARGET[:, step], state), whole[:, step], atol=1e-5, rtol=0)
        rows = torch.tensor([2, 0, 0, 1])
        state.reorder(rows)
        torch.testing.assert_close(model.step(TARGET[rows, 2], state), whole[rows, 2], atol=1e-5, rtol=0)


def test_columns_of_padding_are_never_seen(model) -> None:
    """Behind the place that sees the last pixel, what the padding's own features are is no matter."""
    state = model.start(PIXELS, WIDTHS)
    assert state.places.sum(-1).flatten().tolist() == [3 * 11, 3 * 7, 3 * 1]
    state.grid.values[2, ~state.places[2, 0]] = 1e6
    found = model.step(torch.full((3,), START), state)
    assert found.abs().max() < 1e3


def test_decodes(model) -> None:
    assert isinstance(model, Generator)
    assert isinstance(model.backbone, GridEncoder)
    inputs = {"pixels": PIXELS, "widths": WIDTHS}
    assert [found.tokens for found in greedy(model, inputs, LEARNED, 6)] == [
        best[0].tokens for best in beam(model, inputs, LEARNED, 6, width=1, patience=1.0)
    ]


def test_presets() -> None:
    paper = models.create("sar", vocabulary=97, device="meta")
    assert paper.backbone.grid(torch.empty(1, 3, 48, 160, device="meta")).shape == (1, 512, 6, 40)
    layers = [module for module in paper.backbone.modules() if isinstance(module, nn.Conv2d)]
    shortcuts, poolings = 2, 3
    assert len(layers) - shortcuts + poolings == 31
    tiny = models.create("sar-tiny", vocabulary=5, device="meta")
    assert sum(part.numel() for part in tiny.parameters()) < 10**6
