"""The walker, beside its equations written out for one instruction and one step at a time."""

import pytest
import torch
from torch import Tensor

from foveate import models
from foveate.contracts import Actor
from foveate.models.multimodal.walker import Walker, WalkerConfig

TOKENS = torch.tensor([[4, 5, 6, 7, 8], [9, 16, 5, 0, 0], [2, 0, 0, 0, 0]])
LENGTHS = torch.tensor([5, 3, 1])
FEATURES = torch.randn(3, 4, 11, generator=torch.Generator().manual_seed(3))


def walker(aligner: str) -> Walker:
    torch.manual_seed(7)
    return Walker(WalkerConfig(17, 11, 3, embedding=7, width=5, aligner=aligner)).eval()


def naive_logits(model: Walker, tokens: Tensor, features: Tensor) -> Tensor:
    """Equations 2 to 6 of the paper, (T, A): the LSTMs as torch's own cells."""
    words = model.embedding(tokens)
    outputs, (h, c) = model.encoder.layer(words[None])
    levels = {"multi-level": [words, outputs[0]], "high-level": [outputs[0]], "none": []}[model.config.aligner]
    cell = torch.nn.LSTMCell(model.decoder.layer.input_size, model.config.width)
    state = [torch.tanh(model.bridge(part.flatten())) for part in (h, c)]
    logits = []
    weights = {name.removesuffix("_l0"): part for name, part in model.decoder.layer.named_parameters()}
    for seen in features:
        y = model.observation.weight @ seen
        z = h.flatten()
        if levels:
            x = torch.cat(levels, 1)
            query = model.score.query(state[0])
            beta = torch.stack([model.score.direction @ torch.tanh(query + model.score.key(one)) for one in x])
            z = beta.softmax(0) @ x
        before = tuple(part[None] for part in state)
        after = torch.func.functional_call(cell, weights, (torch.cat([y, z])[None], before))
        state = [part[0] for part in after]
        logits.append(model.output(y + model.combine_state(state[0]) + model.combine_context(z)))
    return torch.stack(logits)


@pytest.mark.parametrize("aligner", ["multi-level", "high-level", "none"])
def test_equals_the_equations_with_gradients(aligner) -> None:
    model = walker(aligner)
    output = model(TOKENS, LENGTHS, FEATURES).logits
    assert output.shape == (3, 4, 3)
    naive = torch.stack(
        [naive_logits(model, TOKENS[row, :length], FEATURES[row]) for row, length in enumerate(LENGTHS)]
    )
    torch.testing.assert_close(output, naive, atol=2e-5, rtol=0)
    parameters = [*model.parameters()]
    found, expected = (torch.autograd.grad(logits.square().sum(), parameters) for logits in (output, naive))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=2e-5, rtol=2e-4)


def test_later_observations_change_nothing_before_them() -> None:
    model = walker("multi-level")
    other = FEATURES.clone()
    other[:, 2:] += 1
    changed = (model(TOKENS, LENGTHS, other).logits - model(TOKENS, LENGTHS, FEATURES).logits).abs().amax((0, 2)) > 1e-6
    assert changed.tolist() == [False, False, True, True]


@pytest.mark.parametrize("aligner", ["multi-level", "none"])
def test_steps_after_rows_changed_places(aligner) -> None:
    model = walker(aligner)
    assert isinstance(model, Actor)
    whole = model(TOKENS, LENGTHS, FEATURES).logits
    with torch.no_grad():
        state = model.start(TOKENS, LENGTHS)
        model.step({"features": FEATURES[:, 0]}, state)
        rows = torch.tensor([2, 0, 0, 1])
        state.reorder(rows)
        found = model.step({"features": FEATURES[rows, 1]}, state)
    torch.testing.assert_close(found, whole[rows, 1], atol=1e-5, rtol=0)


def test_presets() -> None:
    paper = models.create("walker", vocabulary=501, features=78, actions=4, device="meta")
    assert [paper.config.width, paper.encoder.width, paper.score.key.in_features] == [100, 200, 300]
    tiny = models.create("walker-tiny", vocabulary=501, features=78, actions=4, device="meta")
    assert tiny.score.key.in_features == 3 * 48
