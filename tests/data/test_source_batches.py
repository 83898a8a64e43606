"""Batches of sentences to translate."""

import numpy as np
import torch

from foveate.data import source_batches
from foveate.special_tokens import LEARNED

PAD, END = LEARNED.pad, LEARNED.end


def test_source_batches():
    sentences = [[4, 5], [], [6, 7, 8, 9], [4], [5]]
    batches = list(source_batches(sentences, LEARNED, tokens=6))
    assert [indices for indices, _ in batches] == [[2], [0, 3], [4, 1]]
    assert batches[0][1]["source"].tolist() == [[6, 7, 8, 9, END]]
    assert batches[1][1]["source"].tolist() == [[4, 5, END], [4, END, PAD]]
    assert batches[2][1]["source_lengths"].tolist() == [2, 1]
    assert list(source_batches([], LEARNED, tokens=6)) == []


def test_a_source_longer_than_the_budget_comes_alone():
    batches = list(source_batches([[4] * 13, [5], [4] * 13], LEARNED, tokens=6))
    assert [indices for indices, _ in batches] == [[0], [2], [1]]
    assert batches[0][1]["source"].shape == (1, 14)


def test_source_batches_come_out_even_for_several_at_a_time():
    generator = torch.Generator().manual_seed(1)
    sentences = [[4] * int(length) for length in torch.randint(3, 30, (200,), generator=generator)]
    places = [
        len(rows) * inputs["source"].shape[1] for rows, inputs in source_batches(sentences, LEARNED, 2000, at_once=2)
    ]
    plain = [len(rows) * inputs["source"].shape[1] for rows, inputs in source_batches(sentences, LEARNED, 2000)]
    assert (len(plain), len(places)) == (3, 4)
    assert min(places) > 0.8 * max(places)
    assert min(plain) < 0.5 * max(plain)
    assert len(list(source_batches(sentences, LEARNED, 10_000, at_once=4))) == 1, "one batch is one"


def test_source_batches_keep_their_budget():
    generator = np.random.default_rng(5)
    sentences = [[4] * int(length) for length in generator.integers(1, 31, 997)]
    batches = list(source_batches(sentences, LEARNED, tokens=307))
    assert sorted(index for indices, _ in batches for index in indices) == list(range(997))
    assert max(inputs["source"].numel() for _, inputs in batches) <= 307
    for indices, inputs in batches:
        assert inputs["source_lengths"].tolist() == [len(sentences[index]) + 1 for index in indices]
