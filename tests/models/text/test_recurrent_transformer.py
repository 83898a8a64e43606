"""Encoders that read the output of a bidirectional LSTM: it sees both ways, and nothing of the padding."""

import pytest
import torch
from torch import Tensor

from foveate import create

SMALL = {"vocabulary": 17, "width": 12, "heads": 3, "feedforward": 11, "recurrent_layers": 2, "layers": 1}
WORDS, LENGTHS = torch.tensor([[4, 5, 6, 7, 8], [9, 16, 5, 0, 0]]), torch.tensor([5, 3])


@pytest.mark.parametrize("name", ["transformer-tagger", "transformer-classifier"])
def test_padding_is_not_read(name: str) -> None:
    model = create(name, **SMALL, spellings=23, classes=5).eval()

    def logits(words: Tensor, lengths: Tensor) -> Tensor:
        spellings = (torch.arange(words.numel() * 2).view(*words.shape, 2) % 23,) if name.endswith("tagger") else ()
        return model(words, lengths, *spellings).logits

    other = WORDS.clone()
    other[1, 3:] = 11
    found, changed = logits(WORDS, LENGTHS)[1, :3], logits(other, LENGTHS)[1, :3]
    torch.testing.assert_close(found, changed)


def test_the_encoder_reads_both_directions() -> None:
    """With a window of 1 only the LSTM tells the first word of the last."""
    for layers, knows in ((None, False), (1, True)):
        given = {**SMALL, "recurrent_layers": layers, "spellings": 23, "classes": 5, "window": 1, "layers": 1}
        model = create("transformer-tagger", **given).eval()
        spellings = torch.zeros(1, 5, 2, dtype=torch.long)
        words = WORDS[:1], torch.tensor([[4, 5, 6, 7, 9]])
        first, second = (model(each, LENGTHS[:1], spellings).logits[0, 0] for each in words)
        assert torch.equal(first, second) != knows
