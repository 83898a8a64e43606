"""Tokens in a random order, and each word from both sides."""

from pathlib import Path

import numpy as np
import pytest
import torch

from foveate.contracts import IGNORE
from foveate.data.dataset import Dataset
from foveate.data.text.documents import Passage
from foveate.data.text.masking import MASK
from foveate.data.text.neighbours import BothWays
from foveate.data.text.packing import stream_rows
from foveate.data.text.permutation import Permuted
from foveate.data.tokens.characters import (
    BEGIN_TEXT,
    BEGIN_WORD,
    END_TEXT,
    END_WORD,
    FILL,
    LONGEST,
    OpenVocabulary,
    spell,
)
from foveate.data.tokens.tokenizers import train_words
from foveate.forms.blanks import FilledBlanks, ReadBlanks
from foveate.forms.processor import Processor, load_processor
from foveate.special_tokens import LEARNED, SpecialTokens

START, END, UNKNOWN = LEARNED.start, LEARNED.end, LEARNED.unknown

SPECIAL = SpecialTokens({**LEARNED.ids, "mask": 4})
ROWS = [np.array([START, 7, 5, 9, 6, 8, 11, END], np.int32), np.array([START, 9, 10, 6], np.int32)]


@pytest.mark.parametrize("generator", [None, np.random.default_rng(3)])
def test_the_last_of_an_order_are_predicted(generator: np.random.Generator | None) -> None:
    batch = Permuted(SPECIAL, 0.5).hide(ROWS, generator)
    assert batch.inputs["tokens"].tolist() == [ROWS[0].tolist(), [*ROWS[1].tolist(), 0, 0, 0, 0]]
    assert batch.inputs["lengths"].tolist() == [8, 4]
    for row, count in enumerate([3, 2]):
        places = batch.inputs["places"][row, :count]
        assert torch.equal(batch.labels[row, :count], batch.inputs["tokens"][row, places])
        assert batch.inputs["ranks"][row, places].tolist() == list(range(1, count + 1))
        assert int((batch.inputs["ranks"][row] > 0).sum()) == count
    assert batch.labels[1, 2:].tolist() == [IGNORE]
    assert batch.weight.tolist() == [3, 2]


def test_what_is_measured_is_always_the_same() -> None:
    way = Permuted(SPECIAL, 0.5)
    first, second = way.hide(ROWS, None), way.hide(ROWS[::-1], None)
    assert torch.equal(first.inputs["places"][0], second.inputs["places"][1])
    assert first.inputs["places"][0, :3].tolist() == way.predicted(ROWS[0]).tolist()
    drawn = [way.hide(ROWS[:1], np.random.default_rng(seed)).inputs["places"].tolist() for seed in range(9)]
    assert len({str(places) for places in drawn}) > 5


def test_questions_are_answered_without_one_another() -> None:
    inputs = Permuted(SPECIAL, 0.5).ask(ROWS[:1], [np.array([2, 5])])
    assert inputs["ranks"].tolist() == [[0, 0, 1, 0, 0, 1, 0, 0]]
    assert inputs["places"].tolist() == [[2, 5]]


@pytest.fixture(scope="module")
def vocabulary() -> OpenVocabulary:
    return OpenVocabulary(train_words(["a cat, a dog", "a dog, a cat"], 20, special=[MASK]))


def test_spelling() -> None:
    cat, long = spell(["cät", "x" * 60]).tolist()
    assert cat == [BEGIN_WORD, 100, 0xC3 + 1, 0xA4 + 1, 117, END_WORD] + [FILL] * (LONGEST - 6)
    assert long == [BEGIN_WORD, *[ord("x") + 1] * 48, END_WORD]


def test_no_word_that_is_read_is_unknown(vocabulary: OpenVocabulary) -> None:
    ((a, dog, comma, zebra, again),) = vocabulary.encode(["A dog, zebra zebra".lower()])
    assert max(a, dog, comma) < len(vocabulary) <= zebra == again
    assert vocabulary.decode([[a, dog, comma, zebra]]) == ["a dog, zebra"]
    assert vocabulary.pieces([dog, zebra]) == ["dog", "zebra"]
    tokens = np.array([[START, zebra, END, 0]])
    assert vocabulary.closed(tokens).tolist() == [[START, UNKNOWN, END, 0]]
    found = vocabulary.characters(tokens)
    assert found.shape == (1, 4, 7 + 7)
    fill = [FILL] * 11
    assert found[0, 0].tolist() == [BEGIN_WORD, BEGIN_TEXT, END_WORD, *fill]
    assert found[0, 1].tolist() == [BEGIN_WORD, *(ord(letter) + 1 for letter in "zebra"), END_WORD, *[FILL] * 7]
    assert found[0, 2].tolist() == [BEGIN_WORD, END_TEXT, END_WORD, *fill]
    assert found[0, 3].tolist() == [0] * 14


def test_neighbours(vocabulary: OpenVocabulary) -> None:
    a, dog, zebra, cat = vocabulary.encode(["a dog zebra cat"])[0]
    rows = [np.array([START, a, dog, zebra, cat]), np.array([START, dog])]
    batch = BothWays(vocabulary).hide(rows, None)
    after, before = batch.labels.chunk(2, 1)
    assert after.tolist() == [[a, dog, UNKNOWN, cat, IGNORE], [dog] + [IGNORE] * 4]
    assert before.tolist() == [[IGNORE, IGNORE, a, dog, UNKNOWN], [IGNORE] * 5]
    assert batch.inputs["characters"].shape[:2] == (2, 5)
    assert BothWays(vocabulary).predicted(rows[0]).tolist() == [1, 2, 3, 4]
    assert BothWays(vocabulary).ask(rows[:1], [np.array([2])])["places"].tolist() == [[2]]


def test_rows_keep_the_words_that_are_unknown(vocabulary: OpenVocabulary) -> None:
    """Numbers of other words hold for one object, so rows that are kept have the words."""
    text = Dataset("some", [Passage("x", "", ("a dog⁇ zebra ⁇ cat",))])
    (row,) = stream_rows(text, vocabulary, 20)
    a, dog, cat = vocabulary.encode(["a dog cat"])[0]
    assert row.words == ("⁇", "▁zebra", "▁⁇")
    assert row.tokens.tolist() == [START, a, dog, UNKNOWN, UNKNOWN, UNKNOWN, cat, END]
    other = vocabulary.anew()
    opened = other.opened(row.tokens, row.words)
    assert other.closed(opened).tolist() == row.tokens.tolist()
    assert other.pieces(opened[2:-1].tolist()) == ["dog", "⁇", "zebra", "⁇", "cat"]
    assert vocabulary.decode(vocabulary.encode(["a dog⁇ zebra ⁇ cat"])) == ["a dog⁇ zebra ⁇ cat"]


def test_the_processor_is_saved_and_loaded(vocabulary: OpenVocabulary, tmp_path: Path) -> None:
    tokenizer = train_words(["a cat, a dog", "a dog, a cat"], 20, special=[MASK])
    saved = Processor(ReadBlanks(tokenizer=tokenizer, hiding="both ways"), FilledBlanks(tokenizer, "both ways"))
    for name, write in saved.files().items():
        write(tmp_path / name)
    loaded = load_processor(ReadBlanks, FilledBlanks, tmp_path, lambda folder: {}).reads
    assert loaded.hiding == "both ways"
    (row,) = stream_rows([Passage("x", "", ("a zebra",))], loaded.tokenizer, 9)
    assert row.tokens[1:].tolist() == [*vocabulary.encode(["a"])[0], UNKNOWN, END]
    assert loaded.sizes() == {"vocabulary": len(vocabulary)}
