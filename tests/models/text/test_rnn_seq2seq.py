"""The recurrent translators: their parameters by hand, and what they cannot know.

Their numbers are compared with the papers' equations in `tests/parity`.
"""

import math
from typing import Any

import pytest
import torch
from torch import nn

from foveate import create, look
from foveate.attention import Additive, Biaffine, Dot, ScaledDot
from foveate.contracts import IGNORE, Batch, Choices, Output, label_batch
from foveate.errors import UserError
from foveate.special_tokens import LEARNED
from foveate.training import CrossEntropy
from foveate.training.objectives.objective import reinforce

START = LEARNED.start

SMALL = {"src_vocab": 17, "tgt_vocab": 13, "embedding": 10, "width": 12, "dropout": 0.0}

N, M, E, C = 1009, 1013, 256, 256
"""Source and target vocabulary, width of embeddings and states."""


def parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def gates(number: int, inputs: int, width: int) -> int:
    """The parameters of a recurrent layer: input and state to each gate, with PyTorch's two biases."""
    return number * (inputs * width + width * width + 2 * width)


def shared(number: int) -> int:
    """What all presets have: embeddings, a bidirectional encoder of half the width each, bridge, output layer."""
    return (N + M) * E + 2 * gates(number, E, C // 2) + (C * C + C) + (C * M + M)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rnn", shared(3) + gates(3, E, C)),
        ("rnn-bahdanau", shared(3) + gates(3, E + C, C) + (C * C + C) + C * C + C + (2 * C * C + C)),
        ("rnn-luong", shared(4) + gates(4, E + C, C) + C * C + (2 * C * C + C)),
        ("rnn-attentive", shared(3) + gates(3, E, C) + (2 * C * C + C)),
        ("rnn-local", shared(4) + gates(4, E + C, C) + C * C + (2 * C * C + C) + (C * C + C)),
        ("rnn-hard", shared(3) + gates(3, E, C) + (C * C + C) + C * C + C + (2 * C * C + C) + (C + 1)),
        ("rnn-monotonic", shared(3) + gates(3, E, C) + (C * C + C) + C * C + C + (2 * C * C + C) + 1),
    ],
)
def test_parameters(name: str, expected: int) -> None:
    """Encoder, decoder, score (additive: W2 q + b, W1 k, u; biaffine: W), the layer that joins state and context; then
    what predicts the place (W, v), the reward (a row and a bias), and the offset of monotonic attention."""
    assert parameters(create(name, device="meta", src_vocab=N, tgt_vocab=M)) == expected


def test_the_sizes_of_the_papers() -> None:
    """With the papers' vocabularies: 384 M of Sutskever et al., 64 M of them recurrent (PyTorch has a second bias)."""
    sutskever = create("sutskever-2014", device="meta", src_vocab=160_000, tgt_vocab=80_000)
    recurrent = 2 * 4 * gates(4, 1000, 1000)
    assert parameters(sutskever) == 240_000_000 + recurrent + 1001 * 80_000 == 384_144_000
    bahdanau = create("bahdanau-2015", device="meta", src_vocab=30_000, tgt_vocab=30_000)
    reader, writer = 2 * gates(3, 620, 1000), gates(3, 620 + 2000, 1000)
    score, bridge, maxout = 1000 * 1000 + 1000 + 2000 * 1000 + 1000, 2001 * 1000, (1000 + 2000 + 620 + 1) * 1000
    rest = reader + writer + score + bridge + maxout
    assert parameters(bahdanau) == 60_000 * 620 + rest + 501 * 30_000 == 81_452_000
    luong = create("luong-2015", device="meta", src_vocab=50_000, tgt_vocab=50_000)
    recurrent = 7 * gates(4, 1000, 1000) + gates(4, 2000, 1000)
    assert parameters(luong) == 100_000_000 + recurrent + 1000**2 + 2001 * 1000 + 1001 * 50_000 == 221_115_000


def test_what_does_not_go_together() -> None:
    with pytest.raises(UserError, match='maxout needs score_from "before"'):
        create("rnn-luong", maxout=5, **SMALL)
    with pytest.raises(UserError, match="widths are 12 and 14"):
        create("rnn-luong", bridge=False, encoder_width=14, **SMALL)


@pytest.mark.parametrize(("tie", "tables"), [("none", 3), ("output", 2), ("all", 1)])
def test_what_is_tied(tie: str, tables: int) -> None:
    model = create("rnn-attentive", tie=tie, **{**SMALL, "tgt_vocab": 17, "embedding": 12})
    assert sum(parameter.shape == (17, 12) for parameter in model.parameters()) == tables
    shared = (model.output.weight is model.target_embedding.weight, model.source_embedding is model.target_embedding)
    assert shared == (tie != "none", tie == "all")


def test_what_cannot_be_tied() -> None:
    with pytest.raises(UserError, match="one embedding, but the vocabularies have 17 and 13 entries"):
        create("rnn-attentive", tie="all", **{**SMALL, "embedding": 12})
    with pytest.raises(UserError, match="embeddings of width 10 cannot be the output weights of states of"):
        create("rnn-attentive", tie="output", **SMALL)


def translate(model: nn.Module, source: list[int], target: list[int]) -> torch.Tensor:
    return model(torch.tensor([source]), torch.tensor([len(source)]), torch.tensor([target])).logits


def test_word_embeddings_have_no_order() -> None:
    """Attention to plain embeddings does not depend on their order; to the states of a reader it does."""
    for encoder, alike in [("embeddings", True), ("unidirectional", False), ("bidirectional", False)]:
        model = create("rnn-bahdanau", encoder=encoder, **SMALL).eval()
        one, other = translate(model, [4, 5, 6, 7, 2], [1, 8, 9]), translate(model, [6, 4, 2, 7, 5], [1, 8, 9])
        assert torch.allclose(one, other, atol=1e-6) == alike


def test_a_one_way_reader_keeps_only_the_past() -> None:
    """The encoding of the first word knows the last only where the source is read both ways."""
    for encoder, knows in [("unidirectional", False), ("bidirectional", True)]:
        model = create("rnn-luong", encoder=encoder, **SMALL).eval()
        states = [model.start(torch.tensor([[4, 5, last]]), torch.tensor([3])) for last in (6, 7)]
        first, second = (state.source.values[0, 0] for state in states)
        assert torch.equal(first, second) != knows


def test_the_fixed_vector_is_all_that_the_decoder_has() -> None:
    """Its state after START is as wide however long the source is; nothing else of the source is kept."""
    model = create("rnn", **SMALL).eval()
    for length in (1, 3, 11):
        state = model.start(torch.randint(4, 17, (1, length)), torch.tensor([length]))
        assert [part.shape for part in state.hidden] == [(1, 1, 12)]
        assert not hasattr(state, "source")


def test_dropout_of_embeddings_and_outputs() -> None:
    model, dropped = create("rnn-bahdanau", **{**SMALL, "dropout": 0.5}), {}
    for name in ("encoder", "decoder", "output"):
        part = getattr(model, name)
        part.register_forward_pre_hook(
            lambda _, given, name=name: dropped.update({name: float((given[0] == 0).mean(dtype=float))})
        )
    with torch.no_grad():
        model(torch.randint(4, 13, (31, 7)), torch.full((31,), 7), torch.randint(4, 13, (31, 5)))
    assert dropped == pytest.approx(dict.fromkeys(("encoder", "decoder", "output"), 0.5), abs=0.1)


def test_hard_attention_samples_in_training_and_takes_the_likeliest_after() -> None:
    model = create("rnn-luong", select="hard", mean_share=0.0, **SMALL)
    inputs = (torch.tensor([[4, 5, 6, 7, 2]]).expand(31, -1), torch.full((31,), 5), torch.ones(31, 1, dtype=torch.long))
    assert len(model(*inputs).choices.log_prob.unique()) > 1
    model.eval()
    assert len(model(*inputs).choices.log_prob.round(decimals=5).unique()) == 1


@pytest.mark.parametrize("mean_share", [0.0, 0.5])
def test_hard_attention_learns_by_reinforcement(mean_share: float) -> None:
    """The logits say something to the score only where the mean was taken; the choices' log-probabilities always do."""
    model = create("rnn-hard", mean_share=mean_share, **SMALL)
    output = model(torch.tensor([[4, 5, 6, 2]]), torch.tensor([4]), torch.tensor([[1, 8, 9, 7, 6]]))
    (by_logits,) = torch.autograd.grad(
        output.logits.sum(), model.decoder.score.direction, retain_graph=True, materialize_grads=True
    )
    (by_choices,) = torch.autograd.grad(output.choices.log_prob.sum(), model.decoder.score.direction)
    assert bool(by_logits.any()) == (mean_share > 0)
    assert by_choices.any()


@pytest.mark.parametrize("share", [-0.1, 1.5])
def test_a_share_that_cannot_be(share: float) -> None:
    with pytest.raises(UserError, match=f"^mean_share is {share}, but must be from 0 to 1$"):
        create("rnn-hard", mean_share=share, **SMALL)


LONG = 11
"""Words of a sentence to copy: too many for one small vector, after a moment of training."""

WAYS = {
    "additive": ("rnn-attentive", {"score": "additive"}),
    "dot": ("rnn-attentive", {"score": "dot"}),
    "scaled-dot": ("rnn-attentive", {}),
    "biaffine": ("rnn-attentive", {"score": "biaffine"}),
    "before": ("rnn-bahdanau", {}),
    "fed": ("rnn-luong", {}),
    "local-m": ("rnn-bahdanau", {"window": "local-m", "window_radius": 2}),
    "local-p": ("rnn-local", {"window_radius": 2}),
    "hard": ("rnn-hard", {}),
    "monotonic": ("rnn-monotonic", {}),
}


STEPS = {"monotonic": 500}
"""Of those that take longer: whoever passes a word by, once trained, never sees it again."""


def copying(preset: str, steps: int = 250, **fields: Any) -> tuple[nn.Module, Batch, float]:
    """A model that learned to copy sentences, others to copy, and the share of their words it gets right."""
    torch.manual_seed(0)
    model = create(preset, src_vocab=11, tgt_vocab=11, embedding=32, width=32, dropout=0.0, **fields)
    optimizer, objective = torch.optim.Adam(model.parameters(), 0.015), CrossEntropy()
    for _ in range(steps):
        batch = _sentences(32)
        loss = objective(model(**batch.inputs), batch).total / batch.total_weight
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    unseen = _sentences(64)
    with torch.no_grad():
        found = model.eval()(**unseen.inputs).logits.argmax(-1)
    return model, unseen, float((found == unseen.labels).float().mean())


def _sentences(count: int) -> Batch:
    words = torch.randint(4, 11, (count, LONG))
    before = torch.cat([torch.full((count, 1), START), words[:, :-1]], 1)
    return label_batch({"source": words, "source_lengths": torch.full((count,), LONG), "target": before}, words, "copy")


def test_one_fixed_vector_is_too_small() -> None:
    assert copying("rnn")[2] < 0.68


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_every_way_learns_where_to_look(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unseen sentences are copied as no fixed vector can, by looking at the word itself: more than chance would, and
    more than if all queries were the same, which leaves a window its place."""
    preset, fields = WAYS[way]
    model, unseen, right = copying(preset, STEPS.get(way, 250), **fields)
    assert right > 0.7
    knowing = _looks_at_the_word(model, unseen)
    assert knowing > 1.5 / LONG
    for score in (Additive, Dot, ScaledDot, Biaffine):
        monkeypatch.setattr(score, "queries", lambda self, q, own=score.queries: 0 * own(self, q))
    assert knowing > 1.25 * _looks_at_the_word(model, unseen)


def _looks_at_the_word(model: nn.Module, unseen: Batch) -> float:
    """The mean weight of the word that is to be copied."""
    with look(model) as sight, torch.no_grad():
        model(**unseen.inputs)
    (site,) = sight.sites
    return float(sight[site].weights().diagonal(dim1=-2, dim2=-1).mean())


def test_several_samples_of_each_step() -> None:
    """In training each step chooses three places; afterwards one, as without samples."""
    model = create("rnn-hard", mean_share=0.0, samples=3, **SMALL).train()
    inputs = torch.tensor([[4, 5, 6, 7, 2]]), torch.tensor([5]), torch.tensor([[1, 8, 9, 4]])
    output = model(*inputs)
    assert output.logits.shape == (1, 12, 13)
    assert output.choices.log_prob.shape == (1, 12)
    assert output.choices.samples == 3
    entropy = output.choices.entropy.view(3, 4)
    torch.testing.assert_close(entropy, entropy[:1].expand(3, -1))  # the same chances, drawn anew
    model.eval()
    assert model(*inputs).logits.shape == (1, 4, 13)
    with pytest.raises(UserError, match="several samples of a step need steps that do not depend on others"):
        create("rnn-luong", select="hard", samples=2, **SMALL)


def test_the_others_are_the_baseline_of_a_sample() -> None:
    """Rewards of -1, -2 and -6 for the only step: advantages of 3, 1.5 and -4.5."""
    rewards = torch.tensor([[-1.0, -2.0, -6.0]])
    log_prob = torch.zeros(1, 3, requires_grad=True)
    choices = Choices(log_prob, torch.zeros(1, 3), torch.zeros(1, 3), affects_later_steps=False, samples=3)
    loss = reinforce(choices, rewards, torch.ones(1, 3, dtype=torch.bool), weight=1.0, entropy_bonus=0.0)
    loss.total.backward()
    assert (-log_prob.grad).tolist() == [[3.0, 1.5, -4.5]]
    labels = torch.tensor([[4, IGNORE]])
    output = Output(torch.zeros(1, 6, 13), Choices(*(torch.zeros(1, 6),) * 3, affects_later_steps=False, samples=3))
    found = CrossEntropy()(output, label_batch({}, labels, "one label"))
    assert float(found.total) == pytest.approx(math.log(13))  # the mean of three
