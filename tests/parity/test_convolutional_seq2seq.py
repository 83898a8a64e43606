"""The convolutional translator against its paper's equations (Gehring et al. 2017), as plain loops over positions."""

import numpy as np
import pytest
import torch

from foveate import create

Vector = np.ndarray

SOURCES = [[4, 5, 6, 7, 8, 9, 2], [9, 16, 5, 2], [2]]
TARGETS = [[1, 4, 12, 6, 7], [1, 8, 4], [1, 9, 9, 4]]


class Equations:
    """A translator that reads its numbers from a model's parameters and shares none of its code."""

    def __init__(self, weights: dict[str, torch.Tensor], kernel: int, layers: tuple[int, int]) -> None:
        self.w = {name: value.double().numpy() for name, value in weights.items()}
        self.kernel, (self.encoder_layers, self.decoder_layers) = kernel, layers

    def linear(self, name: str, x: Vector) -> Vector:
        return self.w[f"{name}.weight"] @ x + self.w[f"{name}.bias"]

    def embedded(self, side: str, words: list[int]) -> list[Vector]:
        table, positions = self.w[f"{side}_embedding.weight"], self.w[f"{side}_positions.positions.table"]
        return [table[word] + positions[place] for place, word in enumerate(words)]

    def gated(self, name: str, x: list[Vector], first: int) -> list[Vector]:
        """`v([A B]) = A * sigmoid(B)` (section 3.2) of windows that begin `first` positions after each position."""
        found = []
        for place in range(len(x)):
            window = range(place + first, place + first + self.kernel)
            read = [x[other] if 0 <= other < len(x) else np.zeros_like(x[0]) for other in window]
            a, b = np.split(self.linear(f"{name}.convolution.linear", np.concatenate(read)), 2)
            found.append(a / (1 + np.exp(-b)))
        return found

    def encode(self, words: list[int]) -> tuple[list[Vector], list[Vector]]:
        """Keys `z` and values `z + e`, of which the sum is scaled like every other."""
        e = self.embedded("source", words)
        h = [self.linear("encoder_input", each) for each in e]
        for layer in range(self.encoder_layers):
            v = self.gated(f"encoder.{layer}", h, -((self.kernel - 1) // 2))
            h = [(new + old) * np.sqrt(0.5) for new, old in zip(v, h, strict=True)]
        z = [self.linear("encoder_output", each) for each in h]
        return z, [(key + word) * np.sqrt(0.5) for key, word in zip(z, e, strict=True)]

    def logits(self, source: list[int], target: list[int]) -> Vector:
        z, values = self.encode(source)
        g = self.embedded("target", target)
        h = [self.linear("decoder_input", each) for each in g]
        for layer in range(self.decoder_layers):
            name, v = f"decoder.{layer}", self.gated(f"decoder.{layer}", h, 1 - self.kernel)
            for place, state in enumerate(v):
                d = (self.linear(f"{name}.cross.query", state) + g[place]) * np.sqrt(0.5)
                weights = np.exp([d @ key for key in z])
                weights /= weights.sum()
                m = len(source)
                c = m * np.sqrt(1 / m) * sum(weight * value for weight, value in zip(weights, values, strict=True))
                v[place] = (self.linear(f"{name}.cross.answer", c) + state) * np.sqrt(0.5)
            h = [(new + old) * np.sqrt(0.5) for new, old in zip(v, h, strict=True)]
        return np.stack([self.linear("output", self.linear("decoder_output", each)) for each in h])


@pytest.mark.parametrize("kernel", [1, 2, 3, 5])
def test_logits(kernel: int) -> None:
    sizes = {"embedding": 11, "width": 7, "encoder_layers": 2, "decoder_layers": 3, "kernel": kernel, "max_length": 13}
    model = create("convolutional", src_vocab=17, tgt_vocab=13, **sizes).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)  # with zero biases and small embeddings, mistakes would hardly show
    equations = Equations(model.state_dict(), kernel, (2, 3))
    for source, target in zip(SOURCES, TARGETS, strict=True):
        found = model(torch.tensor([source]), torch.tensor([len(source)]), torch.tensor([target])).logits[0]
        np.testing.assert_allclose(found.detach().numpy(), equations.logits(source, target), rtol=1e-8, atol=1e-10)
