"""Tagged text: what a file says, in order, and what is told about one that does not fit."""

import gzip

import pytest

from foveate.data.text.tagged import Tagged, tagged_text
from foveate.errors import UserError

FILE = "The\tDET\ndog\tNOUN\n\n\nIt\tPRON\n barks \t VERB \n.\tPUNCT\n"


def write(path, content):
    path.write_text(content, encoding="utf-8")
    return path


def test_sentences_with_the_lines_they_begin_on(tmp_path):
    text = tagged_text([write(tmp_path / "dog.tsv", FILE)])
    expected = [
        Tagged(1, ("The", "dog"), ("DET", "NOUN")),
        Tagged(5, ("It", "barks", "."), ("PRON", "VERB", "PUNCT")),
    ]
    assert list(text) == expected
    assert list(text) == expected
    assert text.report == "dog.tsv: 2 sentences (5 words; 5 tags)"
    assert [sentence.place for sentence in text] == ["line 1", "line 5"]


def test_packed_files_and_one_form_of_unicode(tmp_path):
    path = tmp_path / "dog.tsv.gz"
    path.write_bytes(gzip.compress("cafe\N{COMBINING ACUTE ACCENT}\tNOUN\n".encode()))
    assert list(tagged_text([path])) == [Tagged(1, ("caf\N{LATIN SMALL LETTER E WITH ACUTE}",), ("NOUN",))]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("The\tDET\ndog NOUN\n", "{path}, line 2: 0 tabs, but one tab must separate a word from its tag"),
        ("The\tDET\tx\n", "{path}, line 1: 2 tabs"),
        ("The\tDET\n\n\tNOUN\n", "{path}, line 3: 0 tabs"),
        ("dog\t\n", "{path}, line 1: 0 tabs"),
        ("\n\n", "dog.tsv: there is no sentence in it"),
        ("", "{path} is empty"),
    ],
)
def test_files_that_do_not_fit(tmp_path, content, complaint):
    path = write(tmp_path / "dog.tsv", content)
    with pytest.raises(UserError) as caught:
        tagged_text([path])
    assert str(caught.value).startswith(complaint.format(path=path))
    assert "\n" not in str(caught.value)


def test_two_files_are_no_tagged_text(tmp_path):
    with pytest.raises(UserError, match="one file of word<TAB>tag lines; 2 files were given"):
        tagged_text([tmp_path / "a", tmp_path / "b"])


def test_swapped_columns_are_questioned(tmp_path):
    path = tmp_path / "swapped.tsv"
    path.write_text("".join(f"{('NOUN', 'VERB', 'ADJ')[number % 3]}\tword{number}\n" for number in range(300)))
    with pytest.raises(UserError, match=r"swapped.tsv has 300 different tags and only 3 different words: are its col"):
        tagged_text(path)
