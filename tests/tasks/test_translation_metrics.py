"""BLEU and chrF: sacreBLEU's own numbers, and groups of lengths by hand."""

import pytest
import sacrebleu

from foveate.errors import UserError
from foveate.metrics.translation import quality, quality_by_length

FOUND = ["the cat sat on the mat .", "a dog ran home over the hills .", "no", "Where are the two birds ?"]
RIGHT = ["the cat sat on the mat .", "the dog ran home over the hill .", "yes", "where are the two big birds ?"]


@pytest.mark.parametrize("lowercase", [False, True])
def test_the_numbers_are_sacrebleus(lowercase: bool) -> None:
    found = quality(FOUND, RIGHT, lowercase)
    assert found.bleu == sacrebleu.corpus_bleu(FOUND, [RIGHT], lowercase=lowercase, force=True).score
    if not lowercase:
        assert found.chrf == sacrebleu.corpus_chrf(FOUND, [RIGHT]).score
    assert found.sentences == 4
    assert found.bleu > 30


def test_signatures_say_how_it_was_computed() -> None:
    found = quality(FOUND, RIGHT)
    version = sacrebleu.__version__
    assert found.bleu_signature == f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{version}"
    assert found.chrf_signature == f"nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:{version}"
    lowered = quality(FOUND, RIGHT, lowercase=True)
    assert "case:lc" in lowered.bleu_signature
    assert "case:lc" in lowered.chrf_signature


def test_moses_parts_words_that_13a_leaves_together() -> None:
    """Of "l'eau de l'île", 13a counts 3 words and Moses 5, of which "l'eau de l'or" has 4 right in their places."""
    found, right = ["l'eau de l'or"], ["l'eau de l'île"]
    assert quality(found, right, tokenize="moses-fr").bleu == pytest.approx(
        100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25
    )
    signature = quality(found, right, tokenize="moses-fr").bleu_signature
    assert "tok:moses-fr" in signature
    assert "eff:no" in signature
    assert "eff:yes" in quality(found, right).bleu_signature


@pytest.mark.parametrize("name", ["moses-xx", "moses", "13b"])
def test_an_unknown_way_to_tokenize_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="unknown way to tokenize"):
        quality(FOUND, RIGHT, tokenize=name)


def test_bounds() -> None:
    assert quality(RIGHT, RIGHT).bleu == pytest.approx(100)
    assert quality(RIGHT, RIGHT).chrf == pytest.approx(100)
    assert quality(["", ""], ["a b c d", "e"]).bleu == 0


def test_texts_of_fewer_than_four_words_are_not_all_worth_nothing() -> None:
    """Where BLEU has no four words in a row to count, it counts what there is, and says so."""
    right = ["red cat", "big house", "sea"]
    found = quality(right, right)
    assert found.bleu == pytest.approx(100)
    assert "eff:yes" in found.bleu_signature
    # of 5 words 4 are right, of 2 pairs 1: the square root of 4/5 * 1/2
    assert quality(["red cat", "big home", "sea"], right).bleu == pytest.approx(100 * 0.4**0.5)
    # short answers to long references are no such case: nothing of four words is right
    assert quality(["the cat", "a"], ["the cat sat on the mat", "a dog ran"]).bleu == 0


def test_lower_case_counts_no_letter_cases() -> None:
    shouted = [text.upper() for text in RIGHT]
    assert quality(shouted, RIGHT, lowercase=True).bleu == pytest.approx(100)
    assert quality(shouted, RIGHT, lowercase=True).chrf == pytest.approx(100)
    assert quality(shouted, RIGHT).chrf < 20


def sentence(words: int) -> str:
    return " ".join("abcdefghijk"[:words])


def test_groups_are_about_equally_large_and_never_part_a_length() -> None:
    """Lengths 3 1 1 2 5 1 8 6 in three groups: after 3 of 8 sentences, after 5, after 8."""
    lengths = [3, 1, 1, 2, 5, 1, 8, 6]
    sources = [sentence(length) for length in lengths]
    found = [f"{length} x y z" for length in lengths]
    right = [f"{length} x y {'z' if length < 5 else 'q'}" for length in lengths]
    groups = quality_by_length(sources, found, right, groups=3)
    assert [(group.name, group.quality.sentences) for group in groups] == [("1", 3), ("2-3", 2), ("5-8", 3)]
    for group in groups:
        places = [place for place, length in enumerate(lengths) if group.shortest <= length <= group.longest]
        assert group.quality == quality([found[place] for place in places], [right[place] for place in places])
    assert groups[0].quality.bleu == pytest.approx(100)
    assert groups[2].quality.bleu < 90


@pytest.mark.parametrize(
    ("lengths", "groups", "expected"),
    [
        ([2, 2, 2, 2, 2], 4, [("2", 5)]),
        ([1, 2, 2, 2, 2, 9], 3, [("1-2", 5), ("9", 1)]),
        ([4, 3], 7, [("3", 1), ("4", 1)]),
        ([4, 3], 10**15, [("3", 1), ("4", 1)]),
        ([4, 3, 2], 1, [("2-4", 3)]),
    ],
)
def test_fewer_groups_where_lengths_are_alike(lengths: list[int], groups: int, expected: list) -> None:
    texts = [sentence(length) for length in lengths]
    found = quality_by_length(texts, texts, texts, groups)
    assert [(group.name, group.quality.sentences) for group in found] == expected


@pytest.mark.parametrize(
    ("found", "right", "way"),
    [
        ("小船向岛航行。", "小船向海岛航行。", "zh"),
        ("ボートは島へ行く", "ボートは島に行く", "char"),
        ("le bateau va à l'île", "le bateau va vers l'île", "13a"),
    ],
)
def test_words_are_parted_as_the_script_of_the_references_needs(found: str, right: str, way: str) -> None:
    measured = quality([found], [right])
    assert f"tok:{way}" in measured.bleu_signature
    assert measured.bleu == quality([found], [right], tokenize=way).bleu
    assert way == "13a" or measured.bleu > quality([found], [right], tokenize="13a").bleu
