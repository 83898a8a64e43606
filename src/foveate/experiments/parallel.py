"""Data against model parallel: the speed of a training by one process and by several, and what they tell each other.

Data parallel: each process has the whole model and a share of the examples, and gradients are summed. Sharded: the
same, but each process keeps a share of the weights. Model parallel: each process has a part of each layer and all
examples, and activations are summed.
"""

import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console

from foveate import models
from foveate.child_processes import child_environment
from foveate.errors import UserError, at_least
from foveate.experiments.comparison import Comparison, Options, Table
from foveate.experiments.drawing import COLOURS, panels
from foveate.files import read_json_lines

WAYS = {"one process": "auto", "data parallel": "replicate", "sharded": "shard", "model parallel": "tensor"}
"""What `--parallel` says in each way; the first one is a single process."""

WORDS = 1000
"""Subwords of both languages together."""


@dataclass
class Parallel(Options):
    """Train a Transformer on emoji names by one process and by several, and compare tokens a second."""

    seeds: int = 1
    processes: int = 2
    """Processes of all ways but the first, each with `threads` threads."""
    widths: tuple[int, ...] = (128, 512)
    """Widths of `transformer-tiny`, with 4 heads."""
    batch_tokens: tuple[int, ...] = (1024, 4096)
    """Tokens of a batch, over all processes."""
    steps: int = 12
    """Training steps; the speed is that of the second half."""


OPTIONS = Parallel


@dataclass(frozen=True)
class ParallelSpeed:
    """The speed of one way to train."""

    way: str
    width: int
    batch_tokens: int
    tokens_per_second: float
    megabytes: float
    """Sent by a process in a step."""


def run(options: Parallel, console: Console) -> Comparison:
    """Train in all ways. Raises UserError for invalid sizes, and where a training fails."""
    at_least(2, "processes", options.processes)
    at_least(2, "steps", options.steps)
    for name in ("widths", "batch_tokens"):
        at_least(1, f"the number of {name}", len(getattr(options, name)))
    results = []
    for width in options.widths:
        for batch_tokens in options.batch_tokens:
            for way in WAYS:
                speed = _speed(options, way, width, batch_tokens)
                sent = megabytes(way, options.processes, width, batch_tokens)
                results.append(ParallelSpeed(way, width, batch_tokens, speed, sent))
                console.print(f"{way}, width {width}, {batch_tokens:,} tokens: {speed:,.0f} tokens/s", highlight=False)
    return _report(options, results)


def architecture(width: int) -> dict[str, Any]:
    """The fields of the model: two blocks on either side."""
    return {"width": width, "feedforward": 2 * width, "encoder_layers": 2, "decoder_layers": 2, "tie": "all"}


def megabytes(way: str, processes: int, width: int, batch_tokens: int) -> float:
    """What a process sends in a step, in single precision. A sum of n numbers over p processes by rings (Patarasuk and
    Yuan 2009) takes 2 n (p - 1) / p.

    Data parallel sums the gradient of each weight. Shards are gathered in the forward and in the backward pass, and
    their gradients summed. Model parallel sums activations twice for each layer, forward and back: of an encoder block
    there are 2, of a decoder block 3; the tables of words and the logits come on top.
    """
    if way == "one process":
        return 0.0
    model = models.create("transformer-tiny", device="meta", src_vocab=WORDS, tgt_vocab=WORDS, **architecture(width))
    weights = sum(parameter.numel() for parameter in model.parameters())
    layers = 2 * (2 + 3)
    ring = (processes - 1) / processes
    sums = {
        "data parallel": 2 * weights,
        "sharded": 3 * weights,
        "model parallel": 2 * 2 * layers * batch_tokens * width,
    }
    return 4 * ring * sums[way] / 1e6


def _speed(options: Parallel, way: str, width: int, batch_tokens: int) -> float:
    """Tokens a second in the second half of a training, in processes of their own."""
    folder = options.out / "parallel" / "run"
    shutil.rmtree(folder, ignore_errors=True)
    half = options.steps // 2
    settings = {
        "vocabulary": WORDS,
        "batch": batch_tokens,
        "steps": 2 * half,
        "log-every": half,
        "validate-every": 10**6,
        "save-every": 10**6,
        "validation-examples": 1,
        "threads": options.threads,
        "seed": options.seed,
        "parallel": WAYS[way],
        "out": folder,
    }
    fields = {f"architecture.{name.replace('_', '-')}": value for name, value in architecture(width).items()}
    flags = [text for name, value in (settings | fields).items() for text in (f"--{name}", str(value))]
    processes = 1 if way == "one process" else options.processes
    train = ["train", "translate", "emoji", "--model", "transformer-tiny", "--processes", str(processes), *flags]
    command = [sys.executable, "-m", "foveate", *train]
    environment = {**child_environment(), "OMP_NUM_THREADS": str(options.threads)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["it said nothing"]
        raise UserError(f"the training of {way} failed: {lines[-1]}")
    logged = read_json_lines(folder / "metrics.jsonl")
    return float([line["tokens_per_second"] for line in logged if "tokens_per_second" in line][-1])


def _report(options: Parallel, results: list[ParallelSpeed]) -> Comparison:
    table = Table(["training", "width", "tokens of a batch", "tokens/s", "times one process", "MB sent in a step"])
    cases = [(width, batch_tokens) for width in options.widths for batch_tokens in options.batch_tokens]
    figure, ((axes,),) = panels(1, 1, 6.0, 3.4)
    for at, case in enumerate(cases):
        own = {result.way: result for result in results if (result.width, result.batch_tokens) == case}
        for number, (way, result) in enumerate(own.items()):
            ratio = result.tokens_per_second / own["one process"].tokens_per_second
            numbers = f"{result.tokens_per_second:,.0f}", f"{ratio:.2f}", f"{result.megabytes:,.1f}"
            table.rows.append([way, f"{case[0]}", f"{case[1]:,}", *numbers])
            label = way if at == 0 else None
            axes.bar(at + 0.2 * (number - 1.5), ratio, 0.18, color=COLOURS[number], label=label)
    axes.set_xticks(range(len(cases)), [f"width {width},\n{tokens:,} tokens" for width, tokens in cases])
    axes.set(title="speed in times that of one process")
    axes.legend(frameon=False, fontsize="small", ncols=2)
    threads = f"{options.threads} thread{'s' if options.threads > 1 else ''}"
    half = options.steps // 2
    note = (
        f"`transformer-tiny` with 2 + 2 blocks on emoji names, {options.processes} processes with {threads} each, "
        f"steps {half + 1} to {2 * half}. What is sent is computed, for single precision and sums by rings: gradients, "
        "weights and gradients, or activations without the logits."
    )
    return Comparison("Data against model parallel", [table], {"": figure}, list(map(asdict, results)), [note])
