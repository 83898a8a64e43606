"""Rows that read the same sources: where their questions go, and where the answers come back."""

import pytest
import torch

from foveate.decoding.beam_sources import BeamSources


@pytest.mark.parametrize("sources", [[0, 1, 2], [0, 0, 1, 1], [2, 0, 1, 0, 0, 2], [1, 0], [0]])
def test_each_asks_its_own_source(sources: list[int]) -> None:
    beams = BeamSources(torch.tensor(sources))
    questions = torch.randn(len(sources), 1, 5)
    seated = beams.gather(questions)
    assert seated.shape == (max(sources) + 1, max(map(sources.count, sources)), 5)
    for source, seats in enumerate(seated):
        own = questions[[row for row, read in enumerate(sources) if read == source], 0].tolist()
        assert all(seat in own for seat in seats.tolist())
    numbers = torch.arange(len(seated), dtype=torch.float32)[:, None, None]
    answers = beams.scatter(seated + 10 * numbers)
    torch.testing.assert_close(answers, questions + 10 * torch.tensor(sources)[:, None, None])


def test_sources_that_nobody_reads_leave() -> None:
    beams = BeamSources(torch.tensor([0, 1, 2, 3, 3, 0]))
    same, kept = beams.select(torch.tensor([5, 4, 1, 2, 2]))
    assert kept is None
    assert same.sources.tolist() == [0, 3, 1, 2, 2]
    fewer, kept = beams.select(torch.tensor([4, 2, 3, 0]))
    assert kept is not None
    assert kept.tolist() == [0, 3, 2]  # the last one took the place of the one that left
    assert fewer.sources.tolist() == [1, 2, 1, 0]
