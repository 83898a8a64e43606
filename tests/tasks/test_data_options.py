"""What a training is validated on is from all over a text: files have an order, as the Brown corpus has its genres."""

import math

import pytest
from rich.console import Console

from foveate.data.text.labelled import LabelledText
from foveate.data.text.parallel_corpus import ParallelText
from foveate.data.tokens.tokenizers import TRAINERS
from foveate.errors import UserError
from foveate.forms.checks import without_too_long
from foveate.tasks.examples.data_options import subsample, unknown_note

WORDS = "abcdefghi"


@pytest.mark.parametrize(("total", "expected"), [(0, []), (3, [0, 1, 2]), (4, [0, 2]), (9, [0, 3, 6]), (10, [0, 4, 8])])
def test_at_most_so_many_from_all_over(total: int, expected: list[int]) -> None:
    assert subsample(iter(range(total)), total, 3) == expected


def test_labels_of_texts_from_all_over() -> None:
    text = LabelledText.from_pairs([("X", word) for word in WORDS])
    assert [example.text for example in text.some(3)] == ["a", "d", "g"]


def test_pairs_from_all_over() -> None:
    text = ParallelText.from_pairs([(word, word.upper()) for word in WORDS])
    assert text.some(3) == [("a", "A"), ("d", "D"), ("g", "G")]
    assert len(text) == 9


def test_examples_that_the_model_has_no_positions_for_are_left_out_of_validation(capsys: pytest.CaptureFixture) -> None:
    console = Console(width=200)
    assert without_too_long(7, ["a", "b", "c"], {"a": 7, "b": 8, "c": 3}.__getitem__, "dev", console) == ["a", "c"]
    assert capsys.readouterr().out == "dev: 1 of 3 left out of validation for more than 7 positions\n"
    assert without_too_long(math.inf, ["a", "b"], {"a": 7, "b": 10**9}.__getitem__, "dev", console) == ["a", "b"]
    with pytest.raises(UserError, match="dev: 2 of 2 left out of validation"):
        without_too_long(7, ["a", "b"], {"a": 8, "b": 9}.__getitem__, "dev", console)


def test_a_vocabulary_that_lacks_most_words_is_told() -> None:
    tokenizer = TRAINERS["words"](["小船航行", "小船航行", "a boat"], 50)
    (note,) = unknown_note("dev", tokenizer, ["小船很小", "小船航行"])
    assert note == (
        "dev: 50% of the tokens are unknown to the vocabulary, and the script has no spaces between words; "
        "try --tokens subwords or characters"
    )
    assert unknown_note("dev", tokenizer, ["小船航行"]) == []
