"""What a lexicon learns of words, how it spells them, and that it comes back from its file as it was."""

import json
from zlib import crc32

import pytest

from foveate.data.text.lexicon import SPELLINGS, Lexicon, _features, load_lexicon, spelling
from foveate.data.text.tagged import Tagged
from foveate.errors import UserError
from foveate.special_tokens import LEARNED

UNKNOWN = LEARNED.unknown

SENTENCES = [
    [("the", "DET"), ("run", "NOUN"), ("the", "DET"), ("race", "VERB")],
    [("run", "VERB"), ("run", "VERB"), ("the", "DET"), ("cup", "NOUN"), ("tea", "NOUN")],
]


def tagged(sentences: list) -> list[Tagged]:
    return [Tagged.of_pairs(line, pairs) for line, pairs in enumerate(sentences, 1)]


@pytest.fixture
def lexicon() -> Lexicon:
    return Lexicon.learn(tagged(SENTENCES))


def test_each_word_with_its_most_frequent_tag(lexicon):
    assert list(lexicon.words.items()) == [
        ("the", "DET"),
        ("run", "VERB"),
        ("race", "VERB"),
        ("cup", "NOUN"),
        ("tea", "NOUN"),
    ]
    assert lexicon.repeated == 2
    assert lexicon.tags == ("DET", "NOUN", "VERB")  # all three occur three times: in the order of the text


def test_a_word_is_known_in_either_form_of_unicode():
    lexicon = Lexicon.learn(tagged([[("caf\u00e9", "NOUN"), ("caf\u00e9", "NOUN")]]))
    composed, separated = lexicon.rows(["caf\u00e9", "cafe\u0301"])
    assert composed == separated
    assert composed[0] != UNKNOWN


def test_an_unknown_word_is_tagged_as_those_that_occur_once(lexicon):
    assert lexicon.tag_of_unknown == "NOUN"
    common = Lexicon.learn(tagged([[("a", "X"), ("a", "X"), ("b", "Y"), ("b", "Y"), ("a", "X")]]))
    assert common.tag_of_unknown == "X"


def test_numbers_are_of_words_that_occur_again(lexicon):
    numbers = [row[0] for row in lexicon.rows(["the", "run", "race", "zebra"])]
    assert numbers == [4, 5, UNKNOWN, UNKNOWN]
    assert lexicon.vocabulary == 6


def test_features_of_spelling():
    assert list(_features("Walking")) == [
        *("1 last g", "2 last ng", "3 last ing", "4 last king"),
        *("1 first w", "2 first wa", "3 first wal"),
        "shape Xx",
    ]
    assert [list(_features(word))[-1] for word in ("3-year", "1961", "NATO", "U.S.", "d'Été", "''")] == [
        *("shape d-x", "shape d", "shape X", "shape X.X.", "shape x'Xx", "shape '")
    ]


def test_spelling_is_the_same_in_each_process_and_shared_by_like_words():
    assert spelling("Walking")[0] == crc32(b"1 last g") % SPELLINGS == 15213
    walking, talking, boat = map(spelling, ("walking", "talking", "boat"))
    assert [first == second for first, second in zip(walking, talking, strict=True)] == [
        *(True, True, True, True),
        *(False, False, False),
        True,
    ]
    assert all(0 <= number < SPELLINGS for number in walking + boat + spelling(""))
    assert len(walking) == len(spelling("a")) == len(spelling(""))


def test_a_lexicon_comes_back_from_its_file(lexicon, tmp_path):
    lexicon.save(tmp_path / "lexicon.json")
    found = load_lexicon(tmp_path / "lexicon.json")
    assert found == lexicon
    assert list(found.words) == list(lexicon.words)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "is damaged: Expecting property name"),
        (json.dumps({"words": {}, "repeated": 0}), 'missing value for field "tags"'),
        (json.dumps({"words": {}, "repeated": "2", "tags": []}), "repeated is '2', but must be a whole number"),
    ],
)
def test_damaged_files(tmp_path, content, complaint):
    path = tmp_path / "lexicon.json"
    path.write_text(content)
    with pytest.raises(UserError) as caught:
        load_lexicon(path)
    assert str(path) in str(caught.value)
    assert complaint in str(caught.value)


def test_a_missing_file(tmp_path):
    with pytest.raises(UserError, match=r"has no lexicon\.json"):
        load_lexicon(tmp_path / "lexicon.json")
