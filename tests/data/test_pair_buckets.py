"""Batches: exact contents by hand, and what holds for every epoch of a larger text."""

import random
import re
from operator import length_hint

import pytest
import torch

from foveate.contracts import IGNORE
from foveate.data.buckets import BucketedBatches
from foveate.data.text import pair_buckets
from foveate.data.text.pair_buckets import PairBuckets, SideTokenizer
from foveate.data.text.parallel_corpus import ParallelText
from foveate.errors import UserError
from foveate.forms.processor import Processor, RowProcessor
from foveate.forms.translation import SourceText, Translation, split_pair
from foveate.special_tokens import LEARNED

PAD, START, END = LEARNED.pad, LEARNED.start, LEARNED.end


class Letters:
    """A tokenizer whose tokens are the letters: 'a' is 4, 'b' is 5, ..."""

    special = LEARNED

    def __init__(self):
        self.read = 0

    def __len__(self):
        return 30

    def encode(self, texts):
        self.read += len(texts)
        return [[ord(letter) - ord("a") + 4 for letter in text] for text in texts]

    def decode(self, tokens):
        return ["".join(self.pieces(sentence)) for sentence in tokens]

    def pieces(self, tokens):
        return [chr(token - 4 + ord("a")) for token in tokens]

    def save(self, path):
        raise AssertionError("batches save nothing")


def batches_of(pairs, tokens=23, max_length=11, seed=7, bucket=100_000, tokenizers=None):
    text = pairs if isinstance(pairs, ParallelText) else ParallelText.from_pairs(pairs, "talk")
    source, target = tokenizers or (Letters(), Letters())
    forms = Processor(SourceText(tokenizer=source), Translation(tokenizer=target))
    sides = SideTokenizer(source, (), (END,)), SideTokenizer(target, (START,), (END,))
    return BucketedBatches(PairBuckets(text, RowProcessor(forms, split_pair), sides, max_length, bucket), tokens, seed)


def padding(batches):
    """The share of places that are padding, over both sides of an epoch."""
    places = real = 0
    for batch in batches.epoch(0):
        for side in ("source", "target"):
            places += batch.inputs[side].numel()
            real += int(batch.inputs[f"{side}_lengths"].sum())
    return 1 - real / places


def many_pairs(count=499, seed=3):
    """Lengths as in a translation: the target about as long as the source."""
    generator = random.Random(seed)
    pairs = []
    for _ in range(count):
        length = generator.randint(1, 19)
        pairs.append(("a" * length, "b" * max(1, length + generator.randint(-2, 3))))
    return pairs


def names(batches, number=0, **options):
    return [batch.source for batch in batches.epoch(number, **options)]


def test_one_batch_by_hand():
    (batch,) = batches_of([("abc", "de"), ("f", "ghi")]).epoch(0)
    rows = torch.argsort(batch.inputs["source_lengths"], descending=True)
    expected = {
        "source": [[4, 5, 6, END], [9, END, PAD, PAD]],
        "source_lengths": [4, 2],
        "target": [[START, 7, 8, PAD], [START, 10, 11, 12]],
        "target_lengths": [3, 4],
    }
    assert {key: value[rows].tolist() for key, value in batch.inputs.items()} == expected
    assert batch.labels[rows].tolist() == [[7, 8, END, IGNORE], [10, 11, 12, END]]
    assert batch.total_weight == 7
    assert {value.dtype for value in batch.inputs.values()} == {torch.int64}


@pytest.mark.parametrize(
    ("count", "name"),
    [
        (1, r"line 1 of talk"),
        (2, r"line [12], line [12] of talk"),
        (3, r"line [1-3], line [1-3], line [1-3] of talk"),
        (5, r"line [1-5], line [1-5], line [1-5] and 2 more of talk"),
    ],
)
def test_a_batch_names_its_lines(count, name):
    (batch,) = batches_of([("a", "b")] * count, seed=0).epoch(0)
    assert re.fullmatch(name, batch.source)


def test_three_lines_are_all_named():
    (batch,) = batches_of([("a", "b")] * 3).epoch(0)
    assert sorted(re.findall(r"\d", batch.source)) == ["1", "2", "3"]


def test_line_numbers_count_the_lines_that_were_left_out():
    batches = batches_of([("", ""), ("abc", "d"), ("a" * 12, "e"), ("f", "gh")], tokens=12)
    assert names(batches) in (["line 2, line 4 of talk"], ["line 4, line 2 of talk"])


def test_an_epoch_holds_every_pair_once():
    pairs = [("ab" * (number % 5 + 1), "c" * (number % 7 + 1)) for number in range(211)]
    batches = batches_of(pairs, tokens=97)
    seen = []
    for batch in batches.epoch(0):
        for source, target, labels in zip(batch.inputs["source"], batch.inputs["target"], batch.labels, strict=True):
            seen.append((int((source != PAD).sum()) - 1, int((target != PAD).sum()) - 1))
            assert labels[: seen[-1][1]].tolist() == target[1 : seen[-1][1] + 1].tolist()
    assert sorted(seen) == sorted((len(source), len(target)) for source, target in pairs)


def test_the_budget_holds_on_both_sides_and_padding_is_small():
    batches = batches_of(many_pairs(2003), tokens=311, max_length=29)
    for batch in batches.epoch(0):
        assert batch.inputs["source"].numel() <= 311
        assert batch.inputs["target"].numel() <= 311
    assert 0 < padding(batches) < 0.1


def test_padding_by_hand():
    # places: source 2 x 4, target 2 x 4; real: 4 + 2 and 3 + 4
    assert padding(batches_of([("abc", "de"), ("f", "ghi")])) == pytest.approx(3 / 16)


def test_the_order_depends_on_seed_and_epoch_alone():
    first, again, other = (batches_of(many_pairs(), max_length=23, tokens=97, seed=seed) for seed in (7, 7, 8))
    assert names(first, 5) == names(again, 5) == names(first, 5)
    assert names(first, 5) != names(first, 6)
    assert names(first, 5) != names(other, 5)
    lengths = [batch.inputs["source"].shape[1] for batch in first.epoch(5)]
    assert lengths != sorted(lengths)


@pytest.mark.parametrize("bucket", [1000, 101])
def test_skip_goes_on_in_the_middle(bucket):
    batches = batches_of(many_pairs(), max_length=23, tokens=97, bucket=bucket)
    whole = list(batches.epoch(2))
    for skip in (0, 1, 17, len(whole) - 1, len(whole)):
        rest = list(batches.epoch(2, skip=skip))
        assert [batch.source for batch in rest] == [batch.source for batch in whole[skip:]]
        assert all(torch.equal(a.labels, b.labels) for a, b in zip(rest, whole[skip:], strict=True))


def test_a_text_of_one_bucket_is_tokenised_once():
    sources, targets = Letters(), Letters()
    batches = batches_of(many_pairs(), 97, 23, tokenizers=(sources, targets))
    for number in range(3):
        names(batches, number)
    assert sources.read == targets.read == 499


def test_a_text_of_many_buckets_is_tokenised_once():
    sources, targets = Letters(), Letters()
    batches = batches_of(many_pairs(), 97, 23, bucket=101, tokenizers=(sources, targets))
    assert sources.read == 101
    whole = [names(batches, number) for number in range(3)]
    assert sources.read == targets.read == 499
    again = batches_of(many_pairs(), 97, 23, bucket=101, tokenizers=(sources, targets))
    assert names(again, 2, skip=29) == whole[2][29:]
    assert names(again, 0) == whole[0]
    assert sources.read == 2 * 499


@pytest.mark.parametrize("kept", [0, 2515, 4933])
def test_a_text_of_too_many_tokens_streams(monkeypatch, kept):
    """The first two buckets have 2,515 and 2,419 tokens: none or one of them is kept."""
    monkeypatch.setattr(pair_buckets, "KEPT_TOKENS", kept)
    monkeypatch.setattr(pair_buckets, "PIECE", 17)
    pairs, read = many_pairs(), []

    def lines():
        for pair in pairs:
            read.append(pair)
            yield pair

    batches = batches_of(ParallelText("talk", lines), max_length=23, tokens=97, bucket=101)
    assert len(read) == 101
    for number in range(2):
        read.clear()
        epoch = batches.epoch(number)
        lengths = next(epoch).inputs["source_lengths"].tolist()
        assert len(read) == (0 if kept else 101)
        lengths += [length for batch in epoch for length in batch.inputs["source_lengths"].tolist()]
        assert sorted(lengths) == sorted(len(source) + 1 for source, _ in pairs)


def test_over_long_pairs_are_left_out_counted_and_reported():
    pairs = [("a" * 5, "b"), ("a" * 6, "b"), ("a", "b" * 6), ("a", "b" * 5)]
    batches = batches_of(pairs, max_length=5)
    assert batches.report == "talk: 2 of 4 pairs left out for more than 5 tokens on a side"
    assert sum(len(batch.labels) for batch in batches.epoch(0)) == 2


def test_over_long_pairs_of_a_streamed_text_are_counted_as_they_are_read():
    batches = batches_of(
        [("a", "b"), ("a", "b" * 6), ("a" * 6, "b"), ("c", "d"), ("e" * 7, "f")], max_length=5, bucket=2
    )
    assert batches.report == "talk: 1 of 2 pairs left out for more than 5 tokens on a side"
    for number in range(2):
        names(batches, number)
        assert batches.report == "talk: 3 of 5 pairs left out for more than 5 tokens on a side"


@pytest.mark.parametrize("bucket", [2, 100])
def test_nothing_left_is_an_error(bucket):
    with pytest.raises(UserError, match="talk: each of the 3 pairs has more than 2 tokens on a side"):
        batches_of([("abc", "d"), ("efg", "h"), ("a", "ijk")], max_length=2, bucket=bucket)
    with pytest.raises(UserError, match="talk: none of the 1 pairs has text on both sides"):
        batches_of([("abc", "")], bucket=bucket)


def test_a_budget_must_hold_the_longest_sentence():
    with pytest.raises(UserError, match=r"a pair of 11 tokens on a side .* takes 12 places, but a batch has only 11"):
        batches_of([("a", "b")], tokens=11, max_length=11)
    (batch,) = batches_of([("a" * 11, "b" * 11)], tokens=12, max_length=11).epoch(0)
    assert batch.inputs["source"].shape == (1, 12)


def test_how_many_batches_an_epoch_has_is_known_of_a_text_of_one_bucket():
    def hint(bucket: int) -> int:
        return length_hint(batches_of(many_pairs(499), max_length=23, tokens=97, bucket=bucket), -1)

    assert hint(500) == len(names(batches_of(many_pairs(499), max_length=23, tokens=97)))
    assert hint(101) == -1
    assert hint(499) == -1  # there might be more
