"""The pyramidal encoder against torch's LSTMs on each sequence alone."""

import torch
from torch import Tensor, nn

from foveate.nn import PyramidalEncoder
from foveate.nn.pyramid import halve_time


def test_pairs_of_steps() -> None:
    x = torch.arange(1.0, 11).view(1, 5, 2)
    found, lengths = halve_time(x, torch.tensor([5]))
    assert found.tolist() == [[[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 0, 0]]]
    assert lengths.tolist() == [3]


def test_lengths_of_even_and_odd_sequences() -> None:
    _, lengths = halve_time(torch.zeros(4, 7, 1), torch.tensor([7, 6, 5, 1]))
    assert lengths.tolist() == [4, 3, 3, 1]


def reference(layers: list[nn.LSTM], x: Tensor) -> Tensor:
    """One sequence (S, F) through bidirectional LSTMs, in a plain loop over the pairs."""
    x, _ = layers[0](x)
    for layer in layers[1:]:
        steps = [*x, *[torch.zeros_like(x[0])] * (len(x) % 2)]
        x = torch.stack([torch.cat(steps[place : place + 2]) for place in range(0, len(steps), 2)])
        x, _ = layer(x)
    return x


def test_as_lstms_over_pairs() -> None:
    encoder = PyramidalEncoder(5, 14, 3).double()
    layers = [encoder.base.layer, *(layer.layer for layer in encoder.pyramids)]
    lengths = [23, 16, 9, 1]
    sounds = [torch.randn(length, 5, dtype=torch.float64) for length in lengths]
    ours = nn.utils.rnn.pad_sequence(sounds, batch_first=True).requires_grad_()
    found, ends = encoder(ours, torch.tensor(lengths))
    assert ends.tolist() == [3, 2, 2, 1]
    weights = torch.randn_like(found)
    for layer in layers:
        layer.batch_first = True
    for row, (sound, end) in enumerate(zip(sounds, ends.tolist(), strict=True)):
        other = sound.clone().requires_grad_()
        expected = reference(layers, other)
        torch.testing.assert_close(found[row, :end], expected, atol=1e-9, rtol=0)
        gradient = torch.autograd.grad((found[row, :end] * weights[row, :end]).sum(), ours, retain_graph=True)[0]
        (expected * weights[row, :end]).sum().backward()
        torch.testing.assert_close(gradient[row, : len(sound)], other.grad, atol=1e-9, rtol=0)
