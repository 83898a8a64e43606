"""Sides: nothing held out is seen in training."""

import random

import pytest

from foveate.data import splits as module
from foveate.data.splits import draws, one_in, sides, together
from foveate.data.text.documents import Paragraph, Prose
from foveate.data.text.labelled import LabelledText
from foveate.data.text.parallel_corpus import ParallelText
from foveate.errors import UserError

PAIRS = [(f"name {number}", f"nom {number}") for number in range(2003)]


def test_shares():
    parts = sides(PAIRS, held_out=0.1)
    # 2,003 draws at 0.1: 200 expected, deviation 13.4
    assert 150 < parts.count("dev") < 250
    assert 150 < parts.count("test") < 250


def test_pairs_that_share_a_text_are_on_one_side():
    # a chain: each pair shares a text with the next, in another letter case
    chain = [("a0", "b0"), ("A0", "b1"), ("a1", "B1"), ("a1", "b2"), ("a2", "b2")]
    for shift in range(50):
        links = [(f"{shift} {source}", f"{shift} {target}") for source, target in chain]
        assert len(set(sides(links, held_out=0.3))) == 1


def test_the_same_texts_are_hold_out_groups():
    texts = [f"text {number % 90}" if number % 3 else f"Text {number % 90}" for number in range(200)]
    held = together(texts, 20)
    found = {}
    for number, text in enumerate(texts, 1):
        found.setdefault(text.casefold(), set()).add(held(number))
    assert all(len(sides) == 1 for sides in found.values())
    assert 3 <= sum(held(number) for number in range(1, 201)) <= 25
    unlike = together([f"text {number}" for number in range(200)], 20)
    assert [unlike(number) for number in range(1, 201)] == [one_in(20)(number) for number in range(1, 201)]
    often = together(["again"] * 200, 20)
    assert [often(number) for number in range(1, 201)] == [one_in(20)(number) for number in range(1, 201)]


TEXTS = [f"text {number}" for number in range(97)]


def prose(texts: list[str]) -> Prose:
    return Prose.from_paragraphs([Paragraph("here", "it", text) for text in texts])


@pytest.mark.parametrize(
    "text",
    [
        ParallelText.from_pairs([(text, f"texte {text}") for text in TEXTS]),
        LabelledText.from_pairs([("it", text) for text in TEXTS]),
        prose(TEXTS),
    ],
    ids=["parallel", "labelled", "prose"],
)
def test_what_was_held_out_once_does_not_come_back(text):
    learn, test = text.held_out(10)
    learn, dev = learn.held_out(10)
    parts = [set(learn), set(dev), set(test)]
    assert all(parts)
    assert set().union(*parts) == set(text)
    assert sum(map(len, parts)) == len(TEXTS)


@pytest.mark.parametrize(("make", "unit"), [(prose, "paragraphs")])
def test_a_held_out_part_is_not_empty(make, unit):
    texts = TEXTS[:40]
    texts[12], texts[24] = texts[:2]  # those that would be drawn
    with pytest.raises(UserError, match=f"its {unit} repeat, so that none can be held out; give text to validate"):
        make(texts).held_out(20)


def test_a_word_of_one_language_is_no_link_to_the_same_word_of_the_other():
    crossed = [(f"x{number}", f"x{number + 1}") for number in range(97)]
    assert set(sides(crossed, held_out=0.3)) == {"train", "dev", "test"}


def test_the_side_depends_on_no_order_and_on_no_other_pair():
    before = dict(zip(PAIRS, sides(PAIRS, 0.1), strict=True))
    shuffled = random.Random(5).sample(PAIRS, 1009)
    assert sides(shuffled, 0.1) == [before[pair] for pair in shuffled]


def test_sides_stay_over_versions():
    letters = "".join(side[0] for side in sides(PAIRS[:11], 0.2))
    assert letters == "ttttdtttttt"


def test_pairs_are_read_and_not_held():
    passes = []

    class Streamed:
        def __iter__(self):
            passes.append(len(passes))
            return iter(PAIRS)

    assert sides(Streamed(), 0.1) == sides(PAIRS, 0.1)
    assert passes == [0, 1]


def test_a_large_group_is_never_held_out(monkeypatch):
    monkeypatch.setattr(module, "LARGEST_GROUP", 7)
    group = [(f"a{number}", "b") for number in range(7)]
    assert set(draws(group)) == {draws([("a0", "x")])[0]}
    assert draws([*group, ("A0", "c")]).tolist() == [1.0] * 8
    assert set(sides([*group, ("A0", "c")], 0.5)) == {"train"}


@pytest.mark.parametrize("pairs", [[], [("a", "b")]])
def test_few_pairs(pairs):
    assert len(draws(pairs)) == len(sides(pairs, 0.1)) == len(pairs)
