"""Projected relative positions, against the formula written out, and step by step."""

import torch

import foveate
from foveate.attention import causal
from foveate.nn.relative_attention import RelativeAttention
from foveate.nn.two_stream import distance_waves


def random(module: torch.nn.Module) -> torch.nn.Module:
    torch.manual_seed(3)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return module.eval()


def test_the_formula_of_transformer_xl() -> None:
    layer = random(RelativeAttention(6, 2, bias=False))
    x = torch.randn(1, 5, 6)
    waves = layer.distance(distance_waves(5, 6, x))
    expected = []
    for head in range(2):
        part = slice(3 * head, 3 * head + 3)
        q, k, v = (project(x)[0, :, part] for project in (layer.query, layer.key, layer.value))
        rows = []
        for i in range(5):
            content = [(q[i] + layer.content_offset[head, 0]) @ k[j] for j in range(i + 1)]
            distance = [(q[i] + layer.distance_offset[head, 0]) @ waves[4 + j - i, part] for j in range(i + 1)]
            scores = (torch.stack(content) + torch.stack(distance)) / 3**0.5
            rows.append(scores.softmax(0) @ v[: i + 1])
        expected.append(torch.stack(rows))
    torch.testing.assert_close(layer(x, mask=causal())[0], layer.output(torch.cat(expected, -1)))


def test_step_by_step() -> None:
    sizes = {"vocabulary": 50, "width": 24, "heads": 3, "feedforward": 32, "layers": 2}
    model = random(foveate.create("gpt-tiny", **sizes, positions="relative-projected", dropout=0.0))
    tokens = torch.randint(4, 50, (2, 11))
    whole = model(tokens).logits
    logits, state = model.prefill(tokens[:, :5], torch.tensor([5, 5]))
    torch.testing.assert_close(logits, whole[:, 4])
    for place in range(5, 11):
        torch.testing.assert_close(model.step(tokens[:, place], state), whole[:, place])
