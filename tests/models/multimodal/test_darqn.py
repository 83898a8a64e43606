"""DARQN, beside its equations written out for one world and one step at a time."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from foveate import models
from foveate.contracts import Actor
from foveate.errors import UserError
from foveate.models.multimodal.darqn import DARQN, DARQNConfig
from foveate.models.multimodal.mdarqn import MDARQN, MDARQNConfig

TOKENS = torch.tensor([[4, 5, 6], [9, 3, 0], [0, 0, 0]])
LENGTHS = torch.tensor([3, 2, 0])
PIXELS = torch.randn(3, 4, 2, 13, 17, generator=torch.Generator().manual_seed(3))


@pytest.fixture(
    scope="module",
    params=[
        *((False, "additive", 1, None), (True, "additive", 1, None), (True, "biaffine", 1, None)),
        *((True, "biaffine", 3, None), (True, "biaffine", 2, 2), (False, "additive", 1, 1)),
    ],
    ids=["plain", "coordinates", "biaffine", "three glimpses", "two fixed glimpses", "fixed, without coordinates"],
)
def model(request) -> DARQN:
    torch.manual_seed(7)
    coordinates, score, glimpses, fixed = request.param
    config = DARQNConfig(11, 5, 2, (5, 3), (2, 1), (7, 19), coordinates, 23, score=score, glimpses=glimpses)
    config.fixed_glimpses = fixed
    return DARQN(config).eval()


def naive_logits(model: DARQN, tokens: Tensor, images: Tensor) -> Tensor:
    """Section 3 of the paper with a soft glimpse, (T, A); the instruction is the mean of its words."""
    instruction = model.embedding(tokens).mean(0) if len(tokens) else torch.zeros(23)
    layers = nn.Sequential(*(layer for convolution in model.convolutions for layer in (convolution, nn.ReLU())))
    cell = nn.LSTMCell(model.recurrent.layer.input_size, 23)
    weights = {name.removesuffix("_l0"): part for name, part in model.recurrent.layer.named_parameters()}
    h = c = torch.zeros(23)
    logits = []
    for image in images:
        grid = layers(image[None])[0]  # (19, 3, 5)
        if model.config.coordinates:
            columns, rows = torch.tensor([-1, -0.5, 0, 0.5, 1]), torch.tensor([-1.0, 0, 1])
            grid = torch.cat([grid, columns.expand(1, 3, 5), rows[:, None].expand(1, 3, 5)])
        vectors = grid.flatten(1).T
        query = torch.cat([h, instruction])
        queries = [query] if model.queries is None else model.queries(query).split(46)
        glimpses = []
        for one in queries:
            if model.config.score == "biaffine":
                scores = vectors @ model.score.weight @ one
            else:
                scores = torch.tanh(model.score.key(vectors) + model.score.query(one)) @ model.score.direction
            glimpses.append(scores.softmax(0) @ vectors)
        for number in range(model.fixed):
            x, y = model.windows.centres[number]
            distances = [(x - (column - 2) / 2) ** 2 + (y - (row - 1)) ** 2 for row in range(3) for column in range(5)]
            sharpness = model.windows.log_sharpness[number].exp()
            glimpses.append((-sharpness * torch.stack(distances)).softmax(0) @ vectors)
        glimpse = torch.cat(glimpses)
        state = torch.func.functional_call(cell, weights, (torch.cat([glimpse, instruction])[None], (h[None], c[None])))
        h, c = state[0][0], state[1][0]
        logits.append(model.output(h))
    return torch.stack(logits)


def test_equals_the_equations_with_gradients(model) -> None:
    output = model(TOKENS, LENGTHS, PIXELS).logits
    assert output.shape == (3, 4, 5)
    naive = torch.stack([naive_logits(model, TOKENS[row, :length], PIXELS[row]) for row, length in enumerate(LENGTHS)])
    torch.testing.assert_close(output, naive, atol=2e-5, rtol=0)
    parameters = [*model.parameters()]
    found, expected = (torch.autograd.grad(logits.square().sum(), parameters) for logits in (output, naive))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=2e-5, rtol=2e-4)


def test_a_fixed_glimpse_sees_its_place_alone_when_it_is_sharp() -> None:
    """Products with coordinates cannot: they are largest at an edge."""
    torch.manual_seed(7)
    model = DARQN(DARQNConfig(11, 5, 20, (1,), (1,), (3,), fixed_glimpses=1))
    with torch.no_grad():
        model.windows.centres.copy_(torch.tensor([[0.0, 2 / 3]]))  # right ahead of who stands in the middle below
        model.windows.log_sharpness.fill_(6.0)
        pixels = torch.randn(1, 20, 7, 7)
        seen = model._flat_grid(pixels)[0, 0]
    torch.testing.assert_close(seen, model.grid(pixels)[0, :, 5, 3], atol=1e-5, rtol=0)


def test_streams_are_agents_whose_outputs_are_averaged() -> None:
    torch.manual_seed(7)
    config = MDARQNConfig(11, 5, 3, (5, 3), (2, 1), (7, 19), False, 23, streams=(1, 2))
    model, pixels = MDARQN(config).eval(), torch.randn(3, 4, 3, 13, 17)
    output = model(TOKENS, LENGTHS, pixels).logits
    naive = torch.stack(
        [
            (
                naive_logits(model.streams[0], TOKENS[row, :length], pixels[row, :, :1])
                + naive_logits(model.streams[1], TOKENS[row, :length], pixels[row, :, 1:])
            )
            / 2
            for row, length in enumerate(LENGTHS)
        ]
    )
    torch.testing.assert_close(output, naive, atol=2e-5, rtol=0)
    parameters = [*model.parameters()]
    found, expected = (torch.autograd.grad(logits.square().sum(), parameters) for logits in (output, naive))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=2e-5, rtol=2e-4)
    assert isinstance(model, Actor)
    with torch.no_grad():
        state = model.start(TOKENS, LENGTHS)
        model.step({"pixels": pixels[:, 0]}, state)
        state.reorder(rows := torch.tensor([2, 0, 0, 1]))
        step = model.step({"pixels": pixels[rows, 1]}, state)
    torch.testing.assert_close(step, output[rows, 1], atol=1e-5, rtol=0)
    with pytest.raises(UserError, match=r"streams of 1 and 2 channels need observations of 3, not 4: learn with"):
        MDARQN(replace(config, channels=4))


def test_steps_after_rows_changed_places(model) -> None:
    assert isinstance(model, Actor)
    whole = model(TOKENS, LENGTHS, PIXELS).logits
    with torch.no_grad():
        state = model.start(TOKENS, LENGTHS)
        model.step({"pixels": PIXELS[:, 0]}, state)
        rows = torch.tensor([2, 0, 0, 1])
        state.reorder(rows)
        found = model.step({"pixels": PIXELS[rows, 1]}, state)
    torch.testing.assert_close(found, whole[rows, 1], atol=1e-5, rtol=0)


def test_presets_and_sizes() -> None:
    paper = models.create("darqn", vocabulary=11, actions=5, device="meta")
    assert paper.grid(torch.empty(1, 1, 84, 84, device="meta")).shape == (1, 256, 7, 7)
    tiny = models.create("darqn-tiny", vocabulary=11, actions=5, device="meta")
    assert (tiny.seen_size(84, 61), paper.seen_size(84, 87)) == ((80, 56), (84, 84))
    assert tiny.grid(torch.empty(1, 3, 56, 56, device="meta")).shape == (1, 64, 7, 7)
    with pytest.raises(UserError, match="images of 7 x 9 pixels are too small for this model"):
        tiny.grid(torch.empty(1, 3, 7, 9, device="meta"))
