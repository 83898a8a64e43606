"""The language model and the auto-encoder against plain compositions of torch's own layers with the same weights."""

import pytest
import torch
from torch import nn

from foveate import create

TEXTS = torch.tensor([[1, 4, 5, 6, 7], [1, 8, 4, 16, 9], [1, 9, 9, 4, 2]])


@pytest.mark.parametrize(("cell", "layer"), [("lstm", nn.LSTM), ("gru", nn.GRU), ("vanilla", nn.RNN)])
def test_language_model(cell: str, layer: type[nn.RNNBase]) -> None:
    """Embeddings, a recurrent layer that reads [t_j; c], a linear layer."""
    sizes = {"vocabulary": 17, "conditions": 3, "embedding": 10, "width": 12, "tie": False, "layers": 2}
    model = create("rnn-conditioned", condition=7, cell=cell, **sizes).eval()
    condition = torch.tensor([2, 0, 1])
    embedding, kinds, recurrent, output = nn.Embedding(17, 10), nn.Embedding(3, 7), layer(17, 12, 2), nn.Linear(12, 17)
    for mine, theirs in (
        (embedding, model.embedding),
        (kinds, model.condition),
        (recurrent, model.recurrent.layer),
        (output, model.output),
    ):
        mine.load_state_dict(theirs.state_dict())
    fed = torch.cat([embedding(TEXTS), kinds(condition)[:, None].repeat(1, 5, 1)], -1)
    expected = output(recurrent(fed.transpose(0, 1))[0].transpose(0, 1))
    torch.testing.assert_close(model(TEXTS, condition=condition).logits, expected, atol=1e-6, rtol=0)


def test_autoencoder() -> None:
    """Both ways over each sentence alone; the last states side by side; a first state and an input for the writer."""
    model = create("rnn-autoencoder", vocabulary=17, embedding=10, width=12).eval()
    lengths = torch.tensor([5, 3, 1])
    embedding, reader, writer = nn.Embedding(17, 10), nn.GRU(10, 6, bidirectional=True), nn.GRU(22, 12)
    first, output = nn.Linear(12, 12), nn.Linear(12, 17)
    for mine, theirs in (
        (embedding, model.reader.embedding),
        (reader, model.reader.recurrent.layer),
        (writer, model.writer.recurrent.layer),
        (first, model.writer.first.linear),
        (output, model.writer.output),
    ):
        mine.load_state_dict(theirs.state_dict())
    found = model(TEXTS, lengths, TEXTS).logits
    for row, length in enumerate(lengths.tolist()):
        _, last = reader(embedding(TEXTS[row, :length]))
        vector = torch.cat([last[0], last[1]])
        torch.testing.assert_close(model.vectors(TEXTS, lengths)[row], vector, atol=1e-6, rtol=0)
        fed = torch.cat([embedding(TEXTS[row]), vector.repeat(5, 1)], -1)
        expected = output(writer(fed, torch.tanh(first(vector))[None])[0])
        torch.testing.assert_close(found[row], expected, atol=1e-6, rtol=0)
