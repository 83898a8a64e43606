"""Memory grows with T and S, not with T x S: masks are built block by block, and nothing larger is kept."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import memory_growth
import pytest
import torch

from foveate import attention
from foveate.attention import Bias, Mask, Score, Selection, attend, causal, padding, window
from foveate.attention.kernels import sdpa


@dataclass(eq=False)
class Watched(Mask):
    """Another mask that notes which blocks a kernel asks it for."""

    mask: Mask
    blocks: list[tuple[int, int]] = field(default_factory=list)

    def block(self, rows, columns, leading, device):
        self.blocks.append((len(rows), len(columns)))
        return self.mask.block(rows, columns, leading, device)

    def reach(self, rows, keys):
        return self.mask.reach(rows, keys)

    @property
    def rowwise(self):
        return self.mask.rowwise


def blocks_asked(mask: Mask, kernel: str) -> list[tuple[int, int]]:
    q, k, v = torch.randn(2, 3001, 5), torch.randn(2, 1009, 5), torch.randn(2, 1009, 5)
    watched = Watched(mask)
    attend(q, k, v, mask=watched, kernel=kernel)
    return watched.blocks


def test_masks_are_built_for_no_more_than_a_block():
    assert blocks_asked(padding(torch.tensor([1009, 3])), "sdpa") == [(1, 1009)]
    for mask in (causal(5), window(7), causal() & padding(torch.tensor([1009, 3]))):
        assert max(rows * columns for rows, columns in blocks_asked(mask, "sdpa")) <= sdpa.BLOCK
    assert sum(rows * columns for rows, columns in blocks_asked(window(7), "sdpa")) < 3001 * (sdpa.BLOCK // 1009 + 15)


def test_causality_is_a_flag(monkeypatch):
    monkeypatch.setattr("foveate.attention.masks.Causal.block", None)
    q, k, v = torch.randn(2, 7, 5), torch.randn(2, 11, 5), torch.randn(2, 11, 5)
    assert attend(q, k, v, mask=causal(), kernel="sdpa").shape == (2, 7, 5)


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="finds peaks of memory by /proc")
def test_no_peak_grows_with_the_square() -> None:
    """From 256 to 1,024 places. What is freed goes back to the system at once, else it would hide what comes later."""
    script = Path(memory_growth.__file__)
    thresholds = dict.fromkeys(("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"), "65536")
    done = subprocess.run(
        [sys.executable, script, "256", "1024"], capture_output=True, text=True, check=True, env=os.environ | thresholds
    )
    found = json.loads(done.stdout)
    of_all_scores = found.pop("all scores")
    assert {name: growth for name, growth in found.items() if growth > 0.75 * of_all_scores} == {}
    assert of_all_scores > 7


def test_every_part_of_a_call_is_measured() -> None:
    kinds = {name for name, part in vars(attention).items() if isinstance(part, type)}
    parts = {name for name in kinds if issubclass(vars(attention)[name], Score | Selection | Bias)}
    bases = {"Score", "Selection", "Weighing", "Bias"}
    of_models = {"PointScore", "Disentangled", "RelativeEncoding", "SegmentEncoding"}
    of_fixed_grids = {"ContinuousGridPosition", "RelativePatchPosition"}
    assert parts - bases - of_models - of_fixed_grids <= memory_growth.CALLS.keys()
