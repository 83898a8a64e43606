"""Right and wrong pairs: which ones are drawn, and what is told of them."""

from operator import length_hint

import numpy as np
import pytest
import torch

from foveate import create
from foveate.contracts import IGNORE
from foveate.data.buckets import BucketedBatches
from foveate.data.text.match_pairs import RIGHT, WRONG, Judged, judged_pairs, partners
from foveate.data.text.parallel_corpus import ParallelText
from foveate.data.tokens.tokenizers import train_bpe
from foveate.errors import UserError
from foveate.forms.matched_texts import Match, MatchedTexts
from foveate.forms.processor import Processor
from foveate.special_tokens import LEARNED
from foveate.training.parallel.batch_sharding import share

PAD, END = LEARNED.pad, LEARNED.end

PAIRS = [(f"{'a' * (1 + n % 5)} {n}", f"{'b' * (1 + n % 5)} {n}") for n in range(29)]
TEXT = ParallelText.from_pairs(PAIRS, "letters")
TOKENIZER = train_bpe([text for pair in PAIRS for text in pair], 40)


def batches(pairs: ParallelText = TEXT, tokens: int = 60, seed: int = 5) -> BucketedBatches:
    reads = MatchedTexts(max_length=20, tokenizer=TOKENIZER, target_tokenizer=TOKENIZER)
    return BucketedBatches(reads.buckets(pairs, Processor(reads, Match())), tokens, seed)


def texts(side: torch.Tensor) -> list[str]:
    return TOKENIZER.decode(side.tolist())


def test_partners_are_others_of_about_the_same_length():
    lengths = np.array([3, 9, 3, 4, 8, 3, 9])
    found = partners(lengths, np.random.default_rng(2))
    assert sorted(found) == list(range(7))
    assert not np.any(found == np.arange(7))
    apart = np.abs(lengths - lengths[found])
    assert sorted(apart)[:5] == [0, 0, 0, 1, 1]  # 3-3-3-4 and 8-9-9: one step and one jump between, one way back
    assert partners(np.array([5]), np.random.default_rng(2)).tolist() == [0]


def test_each_pair_once_right_and_once_with_another_target():
    seen_sources, seen_targets = [], []
    for batch in batches().epoch(0):
        sources, targets = texts(batch.inputs["source"]), texts(batch.inputs["target"])
        others = [targets[other] for other in batch.inputs["others"]]
        assert all((source, target) in PAIRS for source, target in zip(sources, targets, strict=True))
        assert set(batch.labels[:, 0].tolist()) == {RIGHT}
        for source, other, label in zip(sources, others, batch.labels[:, 1].tolist(), strict=True):
            assert label == (IGNORE if (source, other) in PAIRS else WRONG)
        assert sorted(others) == sorted(targets)
        seen_sources += sources
        seen_targets += others
    assert sorted(seen_sources) == sorted(source for source, _ in PAIRS)
    assert sorted(seen_targets) == sorted(target for _, target in PAIRS)


def test_both_sides_end_with_end_and_padding():
    for batch in batches().epoch(0):
        for side in ("source", "target"):
            rows, lengths = batch.inputs[side], batch.inputs[f"{side}_lengths"]
            assert torch.equal((rows != PAD).sum(-1), lengths)
            assert set(rows[torch.arange(len(rows)), lengths - 1].tolist()) == {END}
            assert int((rows == END).sum()) == len(rows)


def test_wrong_pairs_are_drawn_anew_in_each_epoch_and_repeat_with_it():
    def drawn(seed: int, epoch: int, skip: int = 0) -> list[list[str]]:
        found = []
        for batch in batches(seed=seed).epoch(epoch, skip):
            sources, targets = texts(batch.inputs["source"]), texts(batch.inputs["target"][batch.inputs["others"]])
            found.append(sorted(map(" = ".join, zip(sources, targets, strict=True))))
        return found

    assert drawn(5, 1) == drawn(5, 1)
    assert drawn(5, 1)[2:] == drawn(5, 1, skip=2)
    assert drawn(5, 1) != drawn(5, 2)
    assert drawn(5, 1) != drawn(6, 1)


def test_a_wrong_pair_that_is_right_after_all_counts_for_nothing():
    pairs = [("aa 1", "bb 1"), ("aa 1", "bb 2"), ("aa 2", "bb 1")]
    labels = set()
    for epoch in range(7):
        (batch,) = batches(ParallelText.from_pairs(pairs, "alike")).epoch(epoch)
        sources, targets = texts(batch.inputs["source"]), texts(batch.inputs["target"][batch.inputs["others"]])
        for pair, label in zip(zip(sources, targets, strict=True), batch.labels[:, 1].tolist(), strict=True):
            assert label == (IGNORE if pair in pairs else WRONG)
            labels.add(label)
        assert batch.total_weight == 3 + batch.labels[:, 1].tolist().count(WRONG)
    assert labels == {IGNORE, WRONG}


def test_judged_pairs_to_measure_on():
    judged = judged_pairs(PAIRS, seed=1)
    assert judged == judged_pairs(PAIRS, seed=1)
    assert judged != judged_pairs(PAIRS, seed=2)
    assert judged[:29] == [Judged(source, target, True) for source, target in PAIRS]
    assert len(judged) == 58
    assert not any((pair.source, pair.target) in PAIRS for pair in judged[29:])
    assert len(judged_pairs([("a", "x"), ("a", "y"), ("b", "z")], seed=1)) == 3 + 2


def test_inputs_to_judge():
    reads = MatchedTexts(tokenizer=TOKENIZER, target_tokenizer=TOKENIZER)
    pairs = [("a 1", "b 1"), ("aa 2", "b 2")]
    prepared = [reads.prepare(pair) for pair in pairs]
    inputs, _ = reads.tensors(prepared)
    for side, own in zip(("source", "target"), zip(*pairs, strict=True), strict=True):
        lengths = [len(tokens) + 1 for tokens in TOKENIZER.encode(own)]
        assert inputs[f"{side}_lengths"].tolist() == lengths
        assert inputs[side].shape == (2, max(lengths))
        for row, length in zip(inputs[side].tolist(), lengths, strict=True):
            assert row[length - 1 :] == [END] + [PAD] * (max(lengths) - length)
    assert reads.places(prepared[1]) == max(inputs["source_lengths"][1], inputs["target_lengths"][1])


def test_what_was_left_out_is_told():
    long = ParallelText.from_pairs([*PAIRS, ("a" * 50, "b")], "letters")
    assert batches(long).report == "letters: 1 of 30 pairs left out for more than 20 tokens on a side"


@pytest.mark.parametrize("tokens", [21, 200])
def test_any_budget_gives_all_pairs(tokens: int):
    assert sum(len(batch.labels) for batch in batches(tokens=tokens).epoch(0)) == 29


@pytest.mark.parametrize("size", [2, 3])
def test_a_part_of_a_batch_is_judged_as_in_the_whole(size: int):
    model = create("siamese-attentive", src_vocab=len(TOKENIZER), tgt_vocab=len(TOKENIZER), width=8, embedding=8).eval()
    batch = next(batches().epoch(0))
    whole = model(**batch.inputs).logits
    for rank in range(size):
        part = share(batch, rank, size)
        assert torch.equal(part.labels, batch.labels[rank::size])
        torch.testing.assert_close(model(**part.inputs).logits, whole[rank::size])


def test_pairs_of_which_no_wrong_one_can_be_made():
    with pytest.raises(UserError, match="no wrong pair can be made of 2: give more pairs, of which the targets differ"):
        judged_pairs([("a", "b"), ("a", "b")], seed=1)


def test_it_is_known_how_many_batches_an_epoch_has():
    assert length_hint(batches(tokens=30)) == len(list(batches(tokens=30).epoch(0))) > 2
