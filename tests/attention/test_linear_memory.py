"""Memory grows with T and S, not with T x S: masks are built block by block, and nothing larger is kept."""

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch

from foveate.attention import Mask, attend, causal, padding, window
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


GROWTH = """
from pathlib import Path
import torch
from foveate.attention import *
from foveate.attention.kernels import blocked, sdpa

torch.set_num_threads(1)
blocked.BLOCK = sdpa.BLOCK = 2**16

def peak(size):
    def run(kernel, score=ScaledDot(), **call):
        q, k, v = (torch.randn(1, size, 4, requires_grad=True) for _ in range(3))
        attend(q, k, v, score, kernel=kernel, **call).sum().backward()
    real = padding(torch.tensor([size // 2]))
    run("sdpa")
    for mask in (causal(), causal(1), real, causal() & real, window(64), segments(torch.tensor([size // 2] * 2))):
        run("sdpa", mask=mask)
    run("sdpa", mask=causal(), bias=LinearDistance(torch.ones(1)))
    run("blocked", mask=causal(1), dropout=0.1)
    run("blocked", score=Additive(4, 4, 3))
    run("blocked", bias=RelativePosition(1, 7), mask=window(512))
    return most()

def most():
    # Of this process alone: getrusage begins with what its parent held.
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024

small = peak(1024)
print(peak(5120) - small)
grown = most()
torch.ones(5120, 5120, dtype=torch.bool)
print(most() - grown)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="finds the peak of memory by /proc")
def test_memory_does_not_grow_with_the_square():
    """From 1,024 to 5,120 places, T x S booleans would take 24 MiB more, numbers 96 MiB."""
    done = subprocess.run([sys.executable, "-c", GROWTH], capture_output=True, text=True, check=True)
    growth, of_booleans = map(float, done.stdout.split())
    assert growth < 10 < of_booleans
