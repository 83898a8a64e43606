"""The recurrent language model: its parameters by hand, its steps, its prompts and its conditions."""

import math

import pytest
import torch
from torch import nn

from foveate import create
from foveate.contracts import Generator
from foveate.decoding import beam, greedy, sample
from foveate.errors import UserError
from foveate.special_tokens import LEARNED

START = LEARNED.start

SMALL = {"vocabulary": 17, "embedding": 10, "width": 12, "tie": False, "dropout": 0.0}

TEXTS = torch.tensor([[START, 4, 5, 6, 7], [START, 8, 4, 16, 9], [START, 9, 9, 4, 2]])


def small(name: str = "rnn-language", **values: object) -> nn.Module:
    conditions = {"conditions": 4, "condition": 7} if name == "rnn-conditioned" else {}
    return create(name, **{**SMALL, **conditions, **values}).eval()


def parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(
    ("name", "width", "layers", "further"),
    [
        ("rnn-language-medium", 650, 2, 650 * 10_000),
        ("rnn-language-large", 1500, 2, 1500 * 10_000),
        ("rnn-language", 320, 1, 0),
    ],
)
def test_parameters(name: str, width: int, layers: int, further: int) -> None:
    """Embeddings (once more as output weights, where they are not tied), LSTM layers with two biases, output bias.

    With its vocabulary of 10,000 the paper's large model has 66 million.
    """
    lstm = layers * 4 * (2 * width * width + 2 * width)
    expected = 10_000 * width + further + lstm + 10_000
    assert parameters(create(name, device="meta", vocabulary=10_000)) == expected
    assert name != "rnn-language-large" or round(expected / 1e6) == 66


def test_a_condition_widens_the_input_alone() -> None:
    """A vector of 32 for each of 25 conditions, and its weights into 4 gates of 320."""
    plain, told = (
        create(name, device="meta", vocabulary=997, **further)
        for name, further in (("rnn-language", {}), ("rnn-conditioned", {"conditions": 25}))
    )
    assert parameters(told) - parameters(plain) == 25 * 32 + 4 * 320 * 32


@pytest.mark.parametrize("cell", ["lstm", "gru", "vanilla"])
@pytest.mark.parametrize("name", ["rnn-language", "rnn-conditioned"])
def test_steps_equal_all_at_once(name: str, cell: str) -> None:
    """Also after rows changed places, as in beam search."""
    model = small(name, cell=cell, layers=2)
    told = {"condition": torch.tensor([1, 3, 0])} if name == "rnn-conditioned" else {}
    whole = model(TEXTS, **told).logits
    assert isinstance(model, Generator)
    assert whole.shape == (3, 5, 17)
    with torch.no_grad():
        logits, state = model.prefill(TEXTS[:, :1], torch.ones(3, dtype=torch.long), **told)
        torch.testing.assert_close(logits, whole[:, 0], atol=1e-6, rtol=0)
        for place in (1, 2):
            torch.testing.assert_close(model.step(TEXTS[:, place], state), whole[:, place], atol=1e-6, rtol=0)
        rows = torch.tensor([2, 0, 0, 1])
        state.reorder(rows)
        for place in (3, 4):
            torch.testing.assert_close(model.step(TEXTS[rows, place], state), whole[rows, place], atol=1e-6, rtol=0)


def test_a_prompt_is_read_to_its_end_and_no_further() -> None:
    """Rows may change places before the first step."""
    model = small("rnn-conditioned")
    condition, lengths = torch.tensor([1, 2, 3]), torch.tensor([3, 1, 4])
    whole = model(TEXTS, condition=condition).logits
    logits, state = model.prefill(torch.where(torch.arange(5) < lengths[:, None], TEXTS, 11), lengths, condition)
    rows = torch.tensor([2, 0, 1, 2])
    state.reorder(rows)
    torch.testing.assert_close(logits[rows], whole[rows, lengths[rows] - 1], atol=1e-6, rtol=0)
    following = TEXTS[rows, lengths[rows]]
    torch.testing.assert_close(model.step(following, state), whole[rows, lengths[rows]], atol=1e-6, rtol=0)


def test_a_later_token_changes_nothing_before_it() -> None:
    model, other = small(), TEXTS.clone()
    other[:, 3:] = 11
    changed = (model(other).logits - model(TEXTS).logits).abs().amax((0, 2)) > 1e-6
    assert changed.tolist() == [False, False, False, True, True]


def test_the_condition_is_fed_at_every_step() -> None:
    """It decides the first token already, and no condition is condition 0."""
    model = small("rnn-conditioned")
    one, other = (model(TEXTS, condition=torch.full((3,), number)).logits for number in (1, 2))
    assert bool(((one - other).abs().amax(2) > 1e-6).all())
    assert torch.equal(model(TEXTS).logits, model(TEXTS, condition=torch.zeros(3, dtype=torch.long)).logits)


def test_some_conditions_are_hidden_in_training() -> None:
    model = small("rnn-conditioned", condition_dropout=0.5).train()
    texts, condition = TEXTS[:1].expand(1000, -1), torch.full((1000,), 3)
    with torch.no_grad():
        found = model(texts, condition=condition).logits[:, 0]
        model.eval()
        hidden = model(texts[:1]).logits[0, 0]
    share = torch.isclose(found, hidden, atol=1e-6).all(1).float().mean()
    assert 0.44 < float(share) < 0.56
    assert condition.unique().tolist() == [3]


@torch.no_grad()
def test_every_way_of_decoding() -> None:
    model = small("rnn-conditioned")
    inputs = {"tokens": TEXTS[:2, :3], "lengths": torch.tensor([3, 2]), "condition": torch.tensor([1, 2])}
    for found in (greedy(model, inputs, LEARNED, 7), [each[0] for each in beam(model, inputs, LEARNED, 7, width=3)]):
        for row, one in enumerate(found):
            tokens = [
                *TEXTS[row, : int(inputs["lengths"][row])].tolist(),
                *one.tokens,
                *([2] if one.ended else []),
            ]
            logits = model(torch.tensor([tokens[:-1]]), condition=inputs["condition"][row : row + 1]).logits
            log_probs = logits.log_softmax(-1)[0].gather(1, torch.tensor(tokens[1:])[:, None])[:, 0]
            assert float(log_probs[int(inputs["lengths"][row]) - 1 :].sum()) == pytest.approx(one.log_prob, abs=1e-5)
    assert [len(each) for each in sample(model, inputs, LEARNED, 5, samples=3)] == [3, 3]


@pytest.mark.parametrize("name", ["rnn-language", "rnn-conditioned"])
def test_an_untrained_model_is_nearly_indifferent(name: str) -> None:
    model = create(name, vocabulary=997).eval()
    tokens = torch.randint(4, 997, (7, 13))
    with torch.no_grad():
        loss = nn.functional.cross_entropy(model(tokens).logits.flatten(0, 1), torch.randint(4, 997, (91,)))
    assert math.log(997) - 0.1 < float(loss) < math.log(997) + 0.1


def test_the_gradient_reaches_every_parameter() -> None:
    model = small("rnn-conditioned").train()
    model(TEXTS, condition=torch.tensor([1, 2, 3])).logits.logsumexp(-1).sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert bool(parameter.grad.any()), name


def test_tied_weights_need_one_width() -> None:
    with pytest.raises(UserError, match="embeddings of width 10 cannot be the output weights of states of width 12"):
        small(tie=True)
    model = small(tie=True, embedding=12)
    assert model.output.weight is model.embedding.weight
