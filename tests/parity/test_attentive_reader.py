"""The Attentive Reader against the equations of Hermann et al. 2015, section 3.2, with PyTorch's cells."""

import pytest
import torch
from torch import Tensor

from foveate import create

TEXTS, QUESTIONS = [[4, 5, 6, 7, 8], [9, 16, 5], [3]], [[5, 4], [6, 7, 8], [9]]


def states(model: torch.nn.Module, reader: str, words: list[int]) -> tuple[Tensor, Tensor]:
    """y(t) of each word, forth and back, and u, the last state of each direction."""
    x = model.embedding.weight[words]
    outputs, end = getattr(model, reader).layer(x[None])
    last = end[0] if isinstance(end, tuple) else end
    return outputs[0], torch.cat([last[0, 0], last[1, 0]])


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_equations(cell: str) -> None:
    model = create("attentive-reader", vocabulary=17, classes=5, embedding=10, width=12, cell=cell).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.5)
        source, target = (
            torch.tensor([row + [0] * (max(map(len, side)) - len(row)) for row in side]) for side in (TEXTS, QUESTIONS)
        )
        lengths = [torch.tensor([len(row) for row in side]) for side in (TEXTS, QUESTIONS)]
        found = model(source, lengths[0], target, lengths[1]).logits[:, 0]
        for text, question, logits in zip(TEXTS, QUESTIONS, found, strict=True):
            y, _ = states(model, "text", text)
            _, u = states(model, "question", question)
            score = model.attention.score
            m = torch.tanh(y @ score.key.weight.T + score.query.weight @ u + score.query.bias)
            s = (m @ score.direction).softmax(0)
            g = torch.tanh(model.join.weight @ torch.cat([s @ y, u]) + model.join.bias)
            torch.testing.assert_close(logits, model.output.weight @ g + model.output.bias)
