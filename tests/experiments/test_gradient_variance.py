"""The variance of REINFORCE's gradient: what a baseline takes off it, and who has none."""

import torch

from foveate import create
from foveate.contracts import label_batch
from foveate.experiments.gradient_variance import gradient_variance

WORDS = torch.randint(4, 11, (5, 7), generator=torch.Generator().manual_seed(1))
BATCH = label_batch(
    {"source": WORDS, "source_lengths": torch.full((5,), 7), "target": WORDS.roll(1, 1)}, WORDS.flip(1), "five"
)
SIZES = {"src_vocab": 11, "tgt_vocab": 11, "embedding": 8, "width": 8}


def test_the_right_expectation_lowers_the_variance() -> None:
    """Before training every label has a log-probability near -log 11; a baseline that says so leaves little."""
    model = create("rnn-hard", mean_share=0.0, dropout=0.5, **SIZES)
    for expected, most in ((0.0, 1.001), (-torch.tensor(11.0).log(), 0.1)):
        with torch.no_grad():
            model.decoder.expected_reward.weight.zero_()
            model.decoder.expected_reward.bias.fill_(expected)
        found = gradient_variance(model, BATCH, seed=1)
        assert found.without > 0
        assert found.learned < most * found.without
    assert found.learned > 0
    assert not any(module.training for module in model.modules())


def test_draws_repeat_with_their_seed() -> None:
    """Whatever was drawn before, and without a trace in what is drawn later."""
    model, before = create("rnn-hard", mean_share=0.0, **SIZES), torch.random.get_rng_state()
    first = gradient_variance(model, BATCH, seed=3)
    assert torch.random.get_rng_state().equal(before)
    torch.rand(1)
    assert first == gradient_variance(model, BATCH, seed=3) != gradient_variance(model, BATCH, seed=4)


def test_who_chooses_nothing_has_none() -> None:
    assert gradient_variance(create("rnn-attentive", **SIZES), BATCH, seed=1) is None
