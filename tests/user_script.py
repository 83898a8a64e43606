"""A user's script on the public surface: `make check` reads it with mypy --strict, and nothing runs it."""

from pathlib import Path

import torch

import foveate
from foveate.attention import Additive, Memory, ScaledDot, attend, attend_full, causal, padding, window
from foveate.nn import MultiHeadAttention


def main() -> None:
    q = torch.randn(2, 8, 5, 64)
    y: torch.Tensor = attend(q, q, q, mask=causal() & padding(torch.tensor([5, 3])))
    y = attend(q, q, q, score=Additive(64, 64, 128))
    found = attend_full(q, q, q)
    print(found.output.shape, y.shape, window(3))
    memory = Memory(q, q, ScaledDot())
    memory.append(q, q)
    model = foveate.create("transformer-tiny", src_vocab=50, tgt_vocab=50)
    attention = MultiHeadAttention(64, 8)
    with foveate.look(attention) as sight:
        attention(torch.randn(1, 5, 64))
    for site in sight:
        print(site.shape)
    print(sight.sites, len(sight), sight[sight.sites[0]].weights(heads=[0]).shape, sight.rollout())
    sight.save("look.html")
    recipe = foveate.recipe("translate", data=(Path("a.en"), Path("a.fr")), model="rnn", out=Path("runs/x"))
    trained = foveate.train(recipe)
    task = foveate.load("runs/x")
    print(task.run("A man in a hat.", width=4), task.model, trained.run("A hat."), model, foveate.__version__)
