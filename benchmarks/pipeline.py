"""What torch's own pipeline makes of a GPT: two processes, each with half of the blocks (`ScheduleGPipe`, gloo).

python benchmarks/pipeline.py    # prints how far losses and gradients are from those of one process
"""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.nn.functional import cross_entropy

import foveate
from foveate.attention import causal

SIZES = {"width": 64, "heads": 4, "feedforward": 128, "layers": 4, "max_length": 64, "dropout": 0.0}
VOCABULARY, PIECES = 97, 4


class Reading(nn.Module):
    """The embedding and the first blocks."""

    def __init__(self, model: Any, blocks: int) -> None:
        super().__init__()
        self.embedding, self.stack = model.embedding, model.stack
        self.stack.blocks, self.stack.norm = model.stack.blocks[:blocks], nn.Identity()

    def forward(self, tokens: Tensor) -> Tensor:
        return self.stack(self.embedding(tokens), causal())


class Predicting(nn.Module):
    """The other blocks and the output layer."""

    def __init__(self, model: Any, blocks: int) -> None:
        super().__init__()
        self.blocks, self.norm, self.output = model.stack.blocks[blocks:], model.stack.norm, model.output

    def forward(self, hidden: Tensor) -> Tensor:
        for block in self.blocks:
            hidden = block(hidden, causal(), None, None, None)
        return self.output(self.norm(hidden))


def create(tie: bool) -> Any:
    torch.manual_seed(3)
    return foveate.create("gpt-tiny", vocabulary=VOCABULARY, tie=tie, **SIZES).train()


def loss(logits: Tensor, labels: Tensor) -> Tensor:
    return cross_entropy(logits.flatten(0, 1), labels.flatten())


def batch(rows: int, length: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    tokens, labels = torch.randint(4, VOCABULARY, (2, rows, length), generator=generator)
    return tokens, labels


def run(schedule: Any, rank: int, rows: int, length: int) -> list[Tensor]:
    """One step; the losses of its pieces, in the last process."""
    tokens, labels = batch(rows, length)
    losses: list[Tensor] = []
    schedule.step(*([tokens] if rank == 0 else []), **({"target": labels, "losses": losses} if rank else {}))
    return losses


def compare(rank: int, tie: bool) -> None:
    whole, model = create(tie), create(tie)
    tokens, labels = batch(8, 16)
    expected = loss(whole(tokens=tokens).logits, labels)
    expected.backward()
    pairs = zip(model.parameters(), whole.parameters(), strict=True)
    wanted = {id(one): other.grad for one, other in pairs}
    part = (Predicting if rank else Reading)(model, SIZES["layers"] // 2)
    schedule = ScheduleGPipe(PipelineStage(part, rank, 2, torch.device("cpu")), PIECES, loss_fn=loss)
    losses = run(schedule, rank, 8, 16)
    far = max(float((one.grad - wanted[id(one)]).abs().max()) for one in part.parameters())
    table = "tied" if tie else "of its own"
    told = f"; loss off by {abs(float(torch.stack(losses).mean() - expected)):.1e}" if losses else ""
    print(f"process {rank}, output layer {table}: gradients off by at most {far:.1e}{told}", flush=True)
    if not tie:
        try:
            run(schedule, rank, 8, 11)
            print(f"process {rank}: a batch of another length works", flush=True)
        except (ValueError, RuntimeError) as error:
            print(f"process {rank}: a batch of another length: {str(error).splitlines()[0][:100]}", flush=True)


def main() -> None:
    if len(sys.argv) > 1:
        torch.set_num_threads(1)
        tie, rank = sys.argv[2] == "tied", int(sys.argv[3])
        dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}/{sys.argv[2]}", rank=rank, world_size=2)
        compare(rank, tie)
        return
    with TemporaryDirectory() as folder:
        for table in ("tied", "own"):
            program = [sys.executable, str(Path(__file__)), folder, table]
            both = [subprocess.Popen([*program, str(rank)], stderr=subprocess.DEVNULL) for rank in (0, 1)]
            both[1].wait(600)
            try:
                both[0].wait(30)
            except subprocess.TimeoutExpired:  # it waits for the second, which has ended
                both[0].kill()


if __name__ == "__main__":
    main()
