"""Sides: nothing held out is seen in training."""

import random

import pytest

from foveate.data import splits as module
from foveate.data.splits import COPY, draws, hold_out, sides
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


def test_examples_with_the_same_content_are_on_one_side():
    texts = [f"text {number % 90}" for number in range(200)]
    held, copies, notes = hold_out(({COPY: text} for text in texts), 20)
    sides = {text: {bool(side) for side, own in zip(held, texts, strict=True) if own == text} for text in texts}
    assert all(len(side) == 1 for side in sides.values())
    assert 5 <= held.sum() <= 20
    assert (copies, notes) == (110, ())


def test_a_content_that_is_most_of_the_examples_stays_in_training():
    held, copies, _ = hold_out(({COPY: "again" if number % 2 else number} for number in range(100)), 10)
    assert copies == 49
    assert 5 <= held.sum() <= 10
    assert not held[1::2].any()
    assert not hold_out([{COPY: "again"}] * 40, 10).held.any()


@pytest.mark.parametrize("name", ["text", "document", "speaker"])
def test_what_shares_something_is_on_one_side_where_there_is_enough_of_it(name):
    held, copies, notes = hold_out(({COPY: number, name: number % 6} for number in range(120)), 20)
    assert [len(set(held[number::6])) for number in range(6)] == [1] * 6
    assert held.sum() == 20
    assert (copies, notes) == (0, (f"6 {name}s, each on one side",))


def test_two_large_documents_are_taken_apart_but_for_copies():
    ties = [{COPY: number % 50, "document": number // 60} for number in range(120)]
    held, copies, notes = hold_out(ties, 20)
    assert 3 <= held.sum() <= 24
    assert all(len(set(held[number::50])) == 1 for number in range(50))
    assert (copies, notes) == (70, ("2 of 2 documents are on both sides: give --validation for others",))


def test_ties_of_several_kinds_are_followed():
    """A copy of a part of one document in another joins the documents."""
    ties = [{COPY: number % 13, "document": number} for number in range(26)]
    ties += [{COPY: 100 + number, "document": number % 13} for number in range(26)]
    held = hold_out(ties, 5).held
    parts = [held[number::13] for number in range(13)]
    assert all(len(set(part)) == 1 for part in parts)
    assert 0 < held.sum() <= 11


def test_the_last_example_of_a_kind_is_never_held_out():
    for rare in range(40):
        kinds = [("rare" if number == rare else "often",) for number in range(40)]
        held = hold_out(({} for _ in kinds), 5, kinds).held
        assert not held[rare]
        assert 4 <= held.sum() <= 8
    alone = [(number,) for number in range(40)]
    assert not hold_out(({} for _ in alone), 5, alone).held.any()
    assert hold_out(({} for _ in alone), 5, alone, rare=True).held.sum() == 8


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
    texts = [TEXTS[0]] * 40
    with pytest.raises(UserError, match=f"too few different {unit} to hold some out; give text to validate"):
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
