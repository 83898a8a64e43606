"""Beam search side by side: foveate, transformers and CTranslate2 on the same weights.

    python -m benchmarks.translation.decoding --peers /path/to/peers/bin/python [--precision bfloat16]

`transformer-base` with random weights and a shared vocabulary of 32,000, 8 sentences of 24 tokens, beam 5, exactly 24
tokens written: END is impossible. Each is tried with each number of `--threads`, and its best counts. The package's
docstring says how to make the environment of the peers. With bfloat16 or int8, CTranslate2 computes with 8 bits, the
least that it has; with int8 transformers, which has none for a CPU, stays in float32.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import torch

from benchmarks.translation.rounds import CTRANSLATE2, TRANSFORMERS, WORKERS, Worker, environment, measure, ratio, show
from foveate import create, run_dir

VOCABULARY, SENTENCES, LENGTH, BEAMS = 32_000, 8, 24, 5
REACH = {("transformers", "float32"): 2.0, ("CTranslate2", "float32"): 1.2}
REACH |= {("CTranslate2", precision): 1.0 for precision in ("bfloat16", "int8")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", required=True, help="a Python with transformers and ctranslate2")
    parser.add_argument("--precision", choices=tuple(CTRANSLATE2), default="float32")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        workers = _workers(Path(folder), asked.peers, asked.precision, asked.threads)
        measure([worker for group in workers.values() for worker in group], asked.rounds)
    best = {name: min(group, key=_seconds) for name, group in workers.items()}
    rows = [_row(worker, best["foveate"], REACH.get((name, asked.precision))) for name, worker in best.items()]
    headings = ["", "tokens/s", "tokens/processor s", "foveate is", "by processor", "reach", "same outputs"]
    show(f"beam {BEAMS}, {SENTENCES} sentences, {LENGTH} tokens, {asked.precision}", headings, rows)


def _workers(folder: Path, peers: str, precision: str, threads: list[int]) -> dict[str, list[Worker]]:
    run, converted, sources = folder / "run", folder / "converted", folder / "sources.json"
    torch.manual_seed(1)
    model = create("transformer-base", src_vocab=VOCABULARY, tgt_vocab=VOCABULARY)
    run_dir.save(run, {"family": "transformer", "architecture": asdict(model.config)}, model.state_dict(), {})
    tokens = torch.randint(4, VOCABULARY, (SENTENCES, LENGTH)).tolist()
    sources.write_text(json.dumps({"sources": tokens, "length": LENGTH, "beams": BEAMS}), encoding="utf-8")
    kind, least = TRANSFORMERS[precision], CTRANSLATE2[precision]
    convert = [peers, "-W", "ignore", WORKERS / "ctranslate2_convert.py", run, converted, least, "forced"]
    subprocess.run(convert, check=True, env=environment())
    found: dict[str, list[Worker]] = {"foveate": [], "transformers": [], "CTranslate2": []}
    for count in threads:
        named = f"{{}}, {count} thread{'s' * (count > 1)}".format
        found["foveate"].append(Worker(named("foveate"), sys.executable, "ours.py", run, sources, count, precision))
        found["transformers"].append(
            Worker(named("transformers"), peers, "transformers_beam.py", run, sources, count, kind)
        )
        found["CTranslate2"].append(
            Worker(named("CTranslate2"), peers, "ctranslate2_beam.py", converted, sources, count, least)
        )
    return found


def _seconds(worker: Worker) -> float:
    return statistics.median(answer["seconds"] for answer in worker.answers)


def _row(worker: Worker, ours: Worker, reach: float | None) -> list[str]:
    ratios, speeds = [], []
    for clock in ("seconds", "processor"):
        own, others = ([answer[clock] for answer in one.answers] for one in (ours, worker))
        speeds.append(f"{SENTENCES * LENGTH / statistics.median(others):.0f}")
        ratios.append(f"{ratio(own, others):.2f} x")
    pairs = zip(ours.answers[0]["tokens"], worker.answers[0]["tokens"], strict=True)
    same = sum(one[:LENGTH] == other[:LENGTH] for one, other in pairs)
    told = "" if reach is None else f"{reach:.1f} x"
    return [worker.name, *speeds, *(ratios if worker is not ours else ["", ""]), told, f"{same} of {SENTENCES}"]


if __name__ == "__main__":
    main()
