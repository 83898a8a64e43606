"""Auto-encoders: what passes through the vector, and how paragraphs are read and written sentence by sentence."""

import math

import pytest
import torch
from torch import Tensor, nn

from foveate import create
from foveate.contracts import IGNORE, Batch, Generator
from foveate.data.text.prose_batches import paragraph_inputs
from foveate.decoding import greedy
from foveate.errors import UserError
from foveate.special_tokens import LEARNED
from foveate.training.objectives.objective import CrossEntropy

START, END = LEARNED.start, LEARNED.end

SMALL = {"vocabulary": 17, "embedding": 10, "width": 12, "dropout": 0.0}

SOURCE = torch.tensor([[4, 5, 6, 7, 2], [9, 16, 2, 0, 0], [2, 0, 0, 0, 0]])
LENGTHS = torch.tensor([5, 3, 1])
TARGET = torch.tensor([[START, 4, 5, 6, 7], [START, 9, 16, 0, 0], [START, 0, 0, 0, 0]])

PARAGRAPHS = [[[4, 5, 6], [7], []], [[8, 9], []]]
"""Two sentences and an empty one; one and an empty one."""

HIERARCHICAL = ["hierarchical-autoencoder", "hierarchical-autoencoder-attentive"]


def hierarchical(name: str, **values: object) -> nn.Module:
    return create(name, **{**SMALL, **values}).eval()


def written(paragraphs: list[list[list[int]]]) -> Tensor:
    """What a hierarchical model is given to write, one row for each sentence."""
    rows = [[START, *sentence] for paragraph in paragraphs for sentence in paragraph]
    return torch.tensor([row + [0] * (4 - len(row)) for row in rows])


@pytest.mark.parametrize("cell", ["lstm", "gru", "vanilla"])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_steps_equal_all_at_once(cell: str, bidirectional: bool) -> None:
    model = create("rnn-autoencoder", **SMALL, cell=cell, bidirectional=bidirectional, layers=2).eval()
    whole = model(SOURCE, LENGTHS, TARGET).logits
    assert isinstance(model, Generator)
    assert whole.shape == (3, 5, 17)
    state = model.start(SOURCE, LENGTHS)
    for place in range(2):
        torch.testing.assert_close(model.step(TARGET[:, place], state), whole[:, place], atol=1e-6, rtol=0)
    rows = torch.tensor([2, 0, 0, 1])
    state.reorder(rows)
    for place in range(2, 5):
        torch.testing.assert_close(model.step(TARGET[rows, place], state), whole[rows, place], atol=1e-6, rtol=0)


def test_all_that_the_writer_knows_is_the_vector() -> None:
    model = create("rnn-autoencoder", **SMALL).eval()
    vectors = model.vectors(SOURCE, LENGTHS)
    assert vectors.shape == (3, 12)
    assert torch.equal(model.writer(vectors, TARGET), model(SOURCE, LENGTHS, TARGET).logits)
    junk = torch.where(torch.arange(5) < LENGTHS[:, None], SOURCE, 11)
    torch.testing.assert_close(model.vectors(junk, LENGTHS), vectors)


def test_a_variational_vector_is_random_in_training_alone() -> None:
    """Its divergence is that of torch's distributions; without the field it is the same model as before."""
    torch.manual_seed(3)
    model = create("rnn-autoencoder", **SMALL, divergence=0.3)
    with torch.no_grad():
        for parameter in model.distribution.parameters():
            parameter.normal_(std=0.5)
    found = [model.train()(SOURCE, LENGTHS, TARGET) for _ in range(2)]
    assert not torch.equal(found[0].logits, found[1].logits)
    output = model.eval()(SOURCE, LENGTHS, TARGET)
    mean, log_variance = model.distribution(model.reader(SOURCE, LENGTHS)).chunk(2, -1)
    own = torch.distributions.Normal(mean, (log_variance / 2).exp())
    normal = torch.distributions.Normal(torch.zeros(12), torch.ones(12))
    expected = torch.distributions.kl_divergence(own, normal).sum(-1)
    torch.testing.assert_close(output.divergence, 0.3 * expected)
    assert torch.equal(model.vectors(SOURCE, LENGTHS), mean)
    assert torch.equal(output.logits, model.writer(mean, TARGET))
    torch.testing.assert_close(model.step(TARGET[:, 0], model.start(SOURCE, LENGTHS)), output.logits[:, 0])
    assert create("rnn-autoencoder", **SMALL)(SOURCE, LENGTHS, TARGET).divergence is None
    with pytest.raises(UserError, match=r"^divergence is -1.0, but must be at least 0$"):
        create("rnn-autoencoder", **SMALL, divergence=-1)


def test_the_divergence_is_learned_from() -> None:
    torch.manual_seed(3)
    model = create("rnn-autoencoder", **SMALL, divergence=1.0).train()
    labels = torch.tensor([[4, 5, 6, 7, 2], [9, 16, 2, IGNORE, IGNORE], [2, *[IGNORE] * 4]])
    batch = Batch({}, {"labels": labels}, torch.tensor([5, 3, 1]), "tokens")
    output = model(SOURCE, LENGTHS, TARGET)
    loss = CrossEntropy()(output, batch)
    torch.testing.assert_close(loss.total.detach(), loss.log["cross_entropy"] + output.divergence.detach().sum())
    assert loss.log["divergence"] == output.divergence.detach().sum()
    loss.total.backward()
    assert bool(model.distribution.weight.grad.abs().sum(1).gt(0).all())


@pytest.mark.parametrize("name", HIERARCHICAL)
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_planned_one_by_one_as_all_at_once(name: str, cell: str) -> None:
    """Each sentence's vector is planned from that of the one before; then the sentence is written from it."""
    model, inputs = hierarchical(name, cell=cell, layers=2), paragraph_inputs(PARAGRAPHS, LEARNED)
    target = written(PARAGRAPHS)
    whole = model(**inputs, target=target).logits
    assert whole.shape == (5, 4, 17)
    assert isinstance(model.writer, Generator)
    state, before = model.start(**inputs), torch.zeros(2, 12)
    read = model.reader(inputs["source"], inputs["source_lengths"])
    for rows in ([0, 3], [1, 4]):
        vectors = model.plan(before, state)
        torch.testing.assert_close(model.writer(vectors, target[rows]), whole[rows], atol=1e-6, rtol=0)
        before = read[rows]
    state.reorder(torch.tensor([0]))
    torch.testing.assert_close(model.writer(model.plan(before[:1], state), target[[2]]), whole[[2]], atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", HIERARCHICAL)
def test_each_paragraph_as_if_it_were_alone(name: str) -> None:
    model = hierarchical(name)
    whole = model(**paragraph_inputs(PARAGRAPHS, LEARNED), target=written(PARAGRAPHS)).logits
    vectors = model.vectors(**paragraph_inputs(PARAGRAPHS, LEARNED))
    for number, rows in enumerate((slice(0, 3), slice(3, 5))):
        alone = paragraph_inputs(PARAGRAPHS[number : number + 1], LEARNED)
        found = model(**alone, target=written(PARAGRAPHS)[rows]).logits
        torch.testing.assert_close(found, whole[rows], atol=1e-6, rtol=0)
        torch.testing.assert_close(model.vectors(**alone)[0], vectors[number], atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", HIERARCHICAL)
def test_a_later_sentence_to_write_changes_nothing_before_it(name: str) -> None:
    """What a sentence is written from is the paragraph as it was read, and the sentences before."""
    model, inputs = hierarchical(name), paragraph_inputs(PARAGRAPHS, LEARNED)
    target = written(PARAGRAPHS)
    other = target.clone()
    other[1, 1:] = 11
    changed = (model(**inputs, target=other).logits - model(**inputs, target=target).logits).abs().amax((1, 2)) > 1e-6
    assert changed.tolist() == [False, True, False, False, False]


def test_only_the_attentive_one_looks_back_at_sentences() -> None:
    """Without attention, nothing but the paragraph's vector and the sentence before reach a sentence."""
    for name, attends in zip(HIERARCHICAL, (False, True), strict=True):
        model = hierarchical(name)
        read = torch.randn(1, 3, 12)
        first = model.first(torch.randn(1, 12))
        one, other = (
            model.plan(torch.zeros(1, 12), model.planner.start(first, sentences, torch.tensor([3])))
            for sentences in (read, read.flip(2))
        )
        assert torch.equal(one, other) != attends


@pytest.mark.parametrize("name", ["rnn-autoencoder", *HIERARCHICAL])
def test_the_gradient_reaches_every_parameter(name: str) -> None:
    model = create(name, **SMALL).train()
    inputs = (
        (SOURCE, LENGTHS, TARGET)
        if name == "rnn-autoencoder"
        else (*paragraph_inputs(PARAGRAPHS, LEARNED).values(), written(PARAGRAPHS))
    )
    model(*inputs).logits.logsumexp(-1).sum().backward()
    for part, parameter in model.named_parameters():
        assert parameter.grad is not None, part
        assert bool(parameter.grad.any()), part


@pytest.mark.parametrize("name", ["rnn-autoencoder", *HIERARCHICAL])
def test_an_untrained_model_is_nearly_indifferent(name: str) -> None:
    model = create(name, vocabulary=997).eval()
    sentences = torch.randint(4, 997, (5, 7)).tolist()
    inputs = paragraph_inputs([sentences], LEARNED)
    inputs = {part: inputs[part] for part in ("source", "source_lengths")} if name == "rnn-autoencoder" else inputs
    with torch.no_grad():
        logits = model(**inputs, target=torch.randint(4, 997, (5, 8))).logits
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), torch.randint(4, 997, (40,)))
    assert math.log(997) - 0.1 < float(loss) < math.log(997) + 0.3


def test_it_can_learn_a_few_sentences_by_heart() -> None:
    torch.manual_seed(1)
    model = create("rnn-autoencoder", **SMALL)
    optimizer = torch.optim.Adam(model.parameters(), 0.05)
    labels = torch.where(torch.arange(5) < LENGTHS[:, None], SOURCE, -100)
    for _ in range(50):
        loss = nn.functional.cross_entropy(model(SOURCE, LENGTHS, TARGET).logits.flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    found = greedy(model.eval(), {"source": SOURCE, "source_lengths": LENGTHS}, LEARNED, 9)
    assert [[*one.tokens, END] for one in found] == [[4, 5, 6, 7, 2], [9, 16, 2], [2]]


@pytest.mark.parametrize(("cell", "states"), [("lstm", 2), ("gru", 1), ("vanilla", 1)])
def test_the_writers_first_state(cell: str, states: int) -> None:
    """A layer of the vector for each layer's state, through tanh: what a recurrent layer's state can be."""
    writer = create("rnn-autoencoder", **SMALL, cell=cell, layers=2).writer
    vectors = 3 * torch.randn(4, 12, generator=torch.Generator().manual_seed(5))
    found = writer.first(vectors)
    assert [tuple(state.shape) for state in found] == [(2, 4, 12)] * states
    layer = writer.first.linear
    expected = (vectors @ layer.weight.T + layer.bias).tanh()
    in_order = torch.cat([state[level] for state in found for level in range(2)], -1)
    torch.testing.assert_close(in_order, expected)


def test_words_are_hidden_from_the_writer_in_training_alone() -> None:
    """With all of them hidden, what the writer was told of the words before makes no difference."""
    model = create("rnn-autoencoder", **SMALL, word_dropout=1 - 1e-9).train()
    other = torch.where(TARGET == START, START, 11)
    assert torch.equal(model(SOURCE, LENGTHS, TARGET).logits, model(SOURCE, LENGTHS, other).logits)
    model.eval()
    assert not torch.equal(model(SOURCE, LENGTHS, TARGET).logits, model(SOURCE, LENGTHS, other).logits)
