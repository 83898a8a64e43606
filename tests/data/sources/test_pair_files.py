"""Large text in the cache: split, shuffled, streamed."""

import pytest

from foveate.data.sources.pair_files import read_parts, write_parts
from foveate.data.text.parallel_corpus import ParallelText
from foveate.errors import UserError

PAIRS = [(f"élève {number}", f"{number % 701} pupils") for number in range(997)]


def test_every_pair_is_in_one_part_and_no_sentence_in_two(tmp_path):
    pairs = ParallelText("fish", lambda: [*PAIRS, ("", "x")], left_out=lambda: {"lost": 3})
    write_parts(pairs, 0.1, tmp_path)
    splits = read_parts(tmp_path, "fish")
    texts = [splits.train, splits.dev, splits.test]
    assert sorted(pair for text in texts for pair in text) == sorted(PAIRS)
    assert all(text.check().kept > 50 for text in texts)
    for side in (0, 1):
        train, dev, test = ({pair[side] for pair in text} for text in texts)
        assert not train & dev
        assert not train & test
        assert not dev & test
    assert splits.dev.name == "fish.dev"
    told = "fish: 997 pairs, 1 left out for an empty side (first on line 998); left out: 3 lost\n"
    assert (tmp_path / "report.txt").read_text() == told
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dev.tsv", "report.txt", "test.tsv", "train.tsv"]


def test_the_order_is_random_and_always_the_same(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_parts(ParallelText.from_pairs(PAIRS), 0.1, tmp_path / name)
    first = (tmp_path / "one/train.tsv").read_bytes()
    assert first == (tmp_path / "two/train.tsv").read_bytes()
    numbers = [int(source.split()[1]) for source in read_parts(tmp_path / "one", "fish").train.sources()]
    halves = numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]
    # means of about 400 of 997 numbers: 498 expected, deviation about 14
    assert all(440 < sum(half) / len(half) < 560 for half in halves)


def test_too_few_pairs(tmp_path):
    with pytest.raises(UserError, match=r"^fish: 3 pairs are too few to hold some out to validate and to test on$"):
        write_parts(ParallelText.from_pairs(PAIRS[:3], "fish"), 0.01, tmp_path)
