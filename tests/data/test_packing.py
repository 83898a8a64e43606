"""Prose in rows of one length."""

from foveate.data.dataset import Dataset
from foveate.data.text.documents import Passage
from foveate.data.text.packing import pack, rows_of_each
from foveate.data.tokens.tokenizers import train_characters
from foveate.special_tokens import LEARNED

START, END = LEARNED.start, LEARNED.end

LETTERS = train_characters(["abcdefgh " * 2] * 2, 14)

(SPACE, A, B), (_, D, E, F) = LETTERS.encode(["ab", "def"])


def passage(place: str, text: str) -> Passage:
    return Passage(place, "", (text,))


def test_a_row_has_one_document_and_ends_after_each_paragraph() -> None:
    """Passages of one place are of one paragraph; a character tokenizer begins each with a space."""
    passages = [
        passage("sea.txt, line 1", "ab"),
        passage("sea.txt, line 1", "d"),
        passage("sea.txt, line 3", "e"),
        passage("land.txt, line 1", "f"),
    ]
    packed = pack(Dataset("some", passages), LETTERS, 5)
    assert [(row.place, row.tokens.tolist()) for row in packed] == [
        ("sea.txt, line 1", [START, SPACE, A, B, SPACE]),
        ("sea.txt, line 1", [START, D, END, SPACE, E]),
        ("sea.txt, line 3", [START, END]),
        ("land.txt, line 1", [START, SPACE, F, END]),
    ]


def test_a_passage_by_itself() -> None:
    found = rows_of_each([passage("x", "abd"), passage("x", "e")], LETTERS, 4)
    assert [row.tokens.tolist() for row in found] == [[START, SPACE, A, B], [START, D, END], [START, SPACE, E, END]]
