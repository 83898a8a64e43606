"""What is hidden of rows of tokens, and texts in which users hide words."""

import numpy as np
import pytest
import torch

from foveate.data.text.masking import MASK, Masked, encode_question
from foveate.data.tokens.tokenizers import train_bpe, train_characters, train_words
from foveate.special_tokens import LEARNED, SpecialTokens

START, END = LEARNED.start, LEARNED.end
MASK_ID = 4
SPECIAL = SpecialTokens({**LEARNED.ids, "mask": MASK_ID, "separator": END})

ROW = np.array([START, 7, 8, END, *range(9, 26), END], np.int32)


def test_a_share_of_the_words_is_hidden() -> None:
    """20 words, of which 15 % are 3; a short row has at least one."""
    short = np.array([START, 6, END], np.int32)
    batch = Masked(SPECIAL, 31).hide([ROW, short], np.random.default_rng(1))
    places, labels = batch.inputs["places"], batch.labels
    assert places.shape == labels.shape == (2, 3)
    assert batch.weight.tolist() == [3, 1]
    assert labels[0].tolist() == ROW[places[0]].tolist()
    assert labels[1].tolist() == [6, -100, -100]
    assert batch.inputs["lengths"].tolist() == [22, 3]
    untouched = np.setdiff1d(np.arange(22), places[0])
    assert batch.inputs["tokens"][0, untouched].tolist() == ROW[untouched].tolist()


def test_most_become_masks_some_another_word_some_stay() -> None:
    hiding, generator = Masked(SPECIAL, 1000, 0.5), np.random.default_rng(1)
    row = np.full(4002, 99, np.int32)
    batch = hiding.hide([row], generator)
    given = batch.inputs["tokens"][0, batch.inputs["places"][0]]
    shares = [float((given == token).float().mean()) for token in (MASK_ID, 99)]
    assert shares == pytest.approx([0.8, 0.1], abs=0.02)
    others = given[(given != MASK_ID) & (given != 99)]
    assert 100 < len(others.unique()) < len(others)
    assert int(others.min()) >= 5


def test_what_is_measured_depends_on_the_row_alone() -> None:
    hiding, other = Masked(SPECIAL, 31), np.flip(ROW).copy()
    first, second = hiding.hide([ROW, other], None), hiding.hide([ROW], None)
    assert torch.equal(first.inputs["tokens"][:1], second.inputs["tokens"])
    assert (second.inputs["tokens"][0, second.inputs["places"][0]] == MASK_ID).all()
    assert not torch.equal(first.inputs["places"][0], first.inputs["places"][1])


def test_a_row_without_words() -> None:
    batch = Masked(SPECIAL, 31).hide([np.array([START, END], np.int32), ROW], np.random.default_rng(1))
    assert batch.weight.tolist() == [0, 3]


@pytest.mark.parametrize("train", [train_bpe, train_words, train_characters])
def test_texts_with_masks(train) -> None:
    text = "a good cat, a good dog. It was good! A cat, a dog. It was"
    tokenizer = train([text, text], 60, special=[MASK])
    assert tokenizer.encode([MASK])[0] != [MASK_ID], "what a user learns from has no masks"
    whole = tokenizer.encode(["a good cat, It was good!"])[0]
    tokens, places = encode_question(f"a {MASK} cat, It was {MASK}!", tokenizer)
    good = tokenizer.encode(["a good"])[0][len(tokenizer.encode(["a"])[0]) :]
    expected = [START, *whole, END]
    if len(good) == 1:  # the same tokens but for the masks
        assert [MASK_ID if at in places else token for at, token in enumerate(expected)] == tokens
    assert [tokens[place] for place in places] == [MASK_ID, MASK_ID]
    assert encode_question(f"{MASK} [SEP] a", tokenizer)[0] == [START, MASK_ID, END, *tokenizer.encode(["a"])[0], END]
    assert encode_question("", tokenizer) == ([START, END], [])
