"""Acceptors, Siamese networks and taggers beside the same networks built from `torch.nn` layers, text by text."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from foveate import create

TEXTS = [[4, 5, 6, 7, 8, 9, 2], [9, 16, 5, 2], [2]]
LENGTHS = torch.tensor([len(text) for text in TEXTS])
TOKENS = torch.tensor([text + [0] * (7 - len(text)) for text in TEXTS])

CELLS = {"lstm": nn.LSTM, "gru": nn.GRU, "vanilla": nn.RNN}


def random(name: str, **architecture: Any) -> Any:
    torch.manual_seed(1)
    model = create(name, **architecture).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.4)
    return model


def layer_of(recurrent: Any, config: Any) -> nn.RNNBase:
    """A recurrent layer of torch with the weights of ours."""
    width = config.width // 2 if config.bidirectional else config.width
    layer = CELLS[config.cell](config.embedding, width, config.layers, bidirectional=config.bidirectional).double()
    layer.load_state_dict(recurrent.layer.state_dict())
    return layer


def read(layer: nn.RNNBase, vectors: Tensor) -> tuple[Tensor, Tensor]:
    """The states (T, C) of one text, and the last one of all directions of the last layer."""
    states, end = layer(vectors)
    end = end[0] if isinstance(end, tuple) else end
    return states, torch.cat([*end[-2:]]) if layer.bidirectional else end[-1]


def attention(pooling: Any, states: Tensor, query: Tensor) -> Tensor:
    """Bahdanau's score by hand: u tanh(W2 query + b + W1 key)."""
    score = pooling.score
    weights = torch.tanh(score.query(query) + score.key(states)) @ score.direction
    return weights.softmax(0) @ states


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_acceptors(cell: str, layers: int, bidirectional: bool) -> None:
    sizes = {"vocabulary": 17, "classes": 3, "embedding": 5, "width": 8, "layers": layers}
    model = random("rnn-acceptor", cell=cell, bidirectional=bidirectional, **sizes)
    layer = layer_of(model.recurrent, model.config)
    found = model(TOKENS, LENGTHS).logits
    for text, logits in zip(TEXTS, found, strict=True):
        _, last = read(layer, model.embedding(torch.tensor(text)))
        torch.testing.assert_close(logits[0], model.output(last), rtol=0, atol=1e-10)


@pytest.mark.parametrize("query", ["learned", "last"])
def test_attentive_classifiers(query: str) -> None:
    sizes = {"vocabulary": 17, "classes": 3, "embedding": 5, "width": 8, "layers": 2}
    model = random("rnn-attentive-classifier", query=query, **sizes)
    layer, pooling = layer_of(model.recurrent, model.config), model.pooling
    for text, logits in zip(TEXTS, model(TOKENS, LENGTHS).logits, strict=True):
        states, last = read(layer, model.embedding(torch.tensor(text)))
        pooled = attention(pooling, states, last if query == "last" else pooling.query)
        torch.testing.assert_close(logits[0], model.output(pooled), rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", ["siamese-acceptor", "siamese-attentive"])
def test_siamese_networks(name: str) -> None:
    model = random(name, src_vocab=17, tgt_vocab=17, embedding=5, width=8)
    layer, reader = layer_of(model.source_encoder.recurrent, model.config), model.source_encoder
    vectors = []
    for text in TEXTS:
        states, last = read(layer, reader.embedding(torch.tensor(text)))
        vectors.append(last if name == "siamese-acceptor" else attention(reader.pooling, states, reader.pooling.query))
    first, second = torch.stack(vectors), torch.stack(vectors[::-1])
    features = torch.cat([first * second, (first - second).abs()], 1)
    expected = model.compare.outer(torch.relu(model.compare.inner(features)))
    found = model(TOKENS, LENGTHS, TOKENS.flip(0), LENGTHS.flip(0)).logits[:, 0]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", ["rnn-transducer", "birnn-tagger", "deep-birnn-tagger"])
def test_taggers(name: str) -> None:
    model = random(name, vocabulary=17, spellings=11, classes=3, embedding=5, width=8)
    layer = layer_of(model.recurrent, model.config)
    spellings = torch.randint(11, (3, 7, 9))
    found = model(TOKENS, LENGTHS, spellings).logits
    for row, text in enumerate(TEXTS):
        states, _ = read(layer, model.embedding(torch.tensor([text]), spellings[row : row + 1, : len(text)])[0])
        torch.testing.assert_close(found[row, : len(text)], model.output(states), rtol=0, atol=1e-10)
