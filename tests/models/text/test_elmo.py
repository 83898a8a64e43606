"""ELMo beside a cell that is written out by hand, and the size of the paper."""

import math

import pytest
import torch
from torch import Tensor

import foveate
from foveate.models.text.elmo import Elmo, LayerMix
from foveate.nn.projected_lstm import ProjectedLSTM, reverse

LENGTHS = torch.tensor([5, 3])


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def cell_by_hand(lstm: ProjectedLSTM, vectors: list[list[float]]) -> list[list[float]]:
    """One text through one LSTM, number by number."""
    into, again, bias, out = (
        part.tolist() for part in (lstm.input.weight, lstm.state.weight, lstm.state.bias, lstm.project.weight)
    )
    count, clip = len(out[0]), lstm.clip
    cells, state, found = [0.0] * count, [0.0] * len(out), []
    for x in vectors:
        gates = [
            sum(w * v for w, v in zip(into[row], x, strict=True))
            + sum(w * v for w, v in zip(again[row], state, strict=True))
            + bias[row]
            for row in range(4 * count)
        ]
        for c in range(count):
            entry, forget, content = gates[c], gates[count + c], gates[2 * count + c]
            cells[c] = sigmoid(forget) * cells[c] + sigmoid(entry) * math.tanh(content)
            cells[c] = max(-clip, min(clip, cells[c]))
        shown = [sigmoid(gates[3 * count + c]) * math.tanh(cells[c]) for c in range(count)]
        state = [max(-clip, min(clip, sum(w * v for w, v in zip(row, shown, strict=True)))) for row in out]
        found.append(state)
    return found


@pytest.fixture(scope="module")
def model() -> Elmo:
    torch.manual_seed(11)
    sizes = {"filters": (3, 2, 5), "highways": 2, "cells": 7, "width": 4, "character_width": 3, "characters": 13}
    return foveate.create("elmo", vocabulary=17, clip=0.4, **sizes).double().eval()


@pytest.fixture(scope="module")
def characters() -> Tensor:
    return torch.randint(13, (2, 5, 6), generator=torch.Generator().manual_seed(2))


def test_the_cell(model: Elmo) -> None:
    """Clipped in some places and not in others."""
    lstm = model.forward_layers[0]
    x = torch.randn(2, 5, 4, dtype=torch.float64) * 3
    found = lstm(x)
    clipped = found.abs() == 0.4
    assert bool(clipped.any())
    assert not bool(clipped.all())
    for row in range(2):
        torch.testing.assert_close(found[row], torch.tensor(cell_by_hand(lstm, x[row].tolist()), dtype=torch.float64))


def test_layers_in_both_directions(model: Elmo, characters: Tensor) -> None:
    """Each text by hand, from both ends, without padding; the second LSTM's output is added to its input."""
    words = model.words(characters)
    layers = model.layers(characters, LENGTHS)
    assert layers.shape == (3, 2, 5, 8)
    for row, length in enumerate(LENGTHS.tolist()):
        text = words[row, :length].tolist()
        for part, lstms, order in ((0, model.forward_layers, 1), (1, model.backward_layers, -1)):
            first = cell_by_hand(lstms[0], text[::order])
            second = torch.tensor(cell_by_hand(lstms[1], first)) + torch.tensor(first)
            expected = torch.stack([torch.tensor(text[::order]), torch.tensor(first), second]).flip(1)
            expected = expected.flip(1) if order == 1 else expected
            found = layers[:, row, :length].chunk(2, -1)[part]
            torch.testing.assert_close(found, expected.double(), atol=1e-6, rtol=0)


def test_the_word_of_its_characters(model: Elmo, characters: Tensor) -> None:
    """The convolutions and the highway layers of one word by hand."""
    encoder = model.words
    vectors = encoder.embedding.weight[characters[1, 2]]
    found = []
    for kernel, convolution in enumerate(encoder.convolutions, start=1):
        windows = torch.stack([vectors[start : start + kernel].T for start in range(6 - kernel + 1)])
        values = torch.einsum("wck,fck->wf", windows, convolution.weight) + convolution.bias
        found.append(values.max(0).values.clamp(min=0))
    x = torch.cat(found)
    for highway in encoder.highways:
        gate = torch.sigmoid(highway.gate.weight @ x + highway.gate.bias)
        x = gate * x + (1 - gate) * (highway.layer.weight @ x + highway.layer.bias).clamp(min=0)
    torch.testing.assert_close(encoder(characters)[1, 2], encoder.project.weight @ x + encoder.project.bias)


def test_neighbours_are_predicted_without_being_seen(model: Elmo, characters: Tensor) -> None:
    """The logits of the next word depend on the words so far, those of the word before on the words from here on."""
    before = model(characters, LENGTHS).logits[0]
    other = characters.clone()
    other[0, 2] = 5
    changed = (model(other, LENGTHS).logits[0] - before).abs().amax(-1) > 1e-9
    assert changed.tolist() == [False, False, True, True, True, *[True, True, True, False, False]]


def test_mix() -> None:
    mix = LayerMix(3)
    layers = torch.randn(3, 2, 5, 7)
    torch.testing.assert_close(mix(layers), layers.mean(0))
    with torch.no_grad():
        mix.weights.copy_(torch.tensor([1.0, 2.0, 4.0]).log())
        mix.scale.fill_(1.5)
    torch.testing.assert_close(mix(layers), 1.5 * (layers[0] + 2 * layers[1] + 4 * layers[2]) / 7)


def test_reverse() -> None:
    x = torch.arange(10.0).view(2, 5, 1)
    assert reverse(x, LENGTHS)[..., 0].tolist() == [[4, 3, 2, 1, 0], [7, 6, 5, 8, 9]]
    assert torch.equal(reverse(reverse(x, LENGTHS), LENGTHS), x)


def test_the_size_of_the_paper() -> None:
    """93.6 million numbers make the vectors of words; predicting words takes a layer more."""
    filters = {1: 32, 2: 32, 3: 64, 4: 128, 5: 256, 6: 512, 7: 1024}
    total = sum(filters.values())
    characters = 262 * 16 + sum(kernel * 16 * count + count for kernel, count in filters.items())
    highways = 2 * 2 * (total * total + total)
    projection = total * 512 + 512
    lstm = 512 * 4 * 4096 + 512 * 4 * 4096 + 4 * 4096 + 4096 * 512
    counted = characters + highways + projection + 2 * 2 * lstm
    assert counted == 93_600_864

    def size(**values: object) -> int:
        model = foveate.create("elmo", device="meta", vocabulary=793_471, **values)
        return sum(parameter.numel() for parameter in model.parameters())

    assert size() == counted + 793_471 * 513
    assert size(head="none") == counted + 3 + 1


@pytest.mark.parametrize("head", ["words", "none"])
def test_the_gradient_reaches_every_parameter(characters: Tensor, head: str) -> None:
    sizes = {"filters": (3, 2, 5), "cells": 7, "width": 4, "character_width": 3, "characters": 13}
    model = foveate.create("elmo", vocabulary=17, head=head, **sizes).eval()
    model(characters, LENGTHS).logits.square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert bool(parameter.grad.any()), name


def test_a_word_from_both_sides(model: Elmo, characters: Tensor) -> None:
    both = model(characters, LENGTHS).logits.log_softmax(-1)
    found = model(characters, LENGTHS, torch.tensor([[2, 3], [1, 1]])).logits
    torch.testing.assert_close(found[0, 0], both[0, 1] + both[0, 5 + 3])
    torch.testing.assert_close(found[0, 1], both[0, 2] + both[0, 5 + 4])
    torch.testing.assert_close(found[1, 1], both[1, 0] + both[1, 5 + 2])
