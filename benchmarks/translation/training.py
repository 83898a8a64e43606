"""Training side by side: target tokens a second of foveate and JoeyNMT, padding not counted.

    python -m benchmarks.translation.training --joeynmt JOEYNMT/bin/python --data SOURCE TARGET [--model rnn-luong]

Both train as their users do, `foveate train translate` and `python -m joeynmt train`, by turns, and say themselves how
many target tokens (END counted) they learned from a second; starting is not counted, reading batches is. Sizes, dropout
0.3, label smoothing 0.1, and batches of 4,096 places (rows times longest row of either side, padding included) are the
same. JoeyNMT reads the text as it was cut by foveate's tokenizer, so that both learn from the same tokens and it need
not cut words while it trains. It takes sentences in random order, so that much of its batches is padding, where foveate
takes sentences of like length together; a further row tells what JoeyNMT does with text that was put in such an order
beforehand, which its users would have to do themselves.
"""

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.translation.joeynmt_config import config
from benchmarks.translation.rounds import environment, ratio, show
from foveate.data.tokens.tokenizers import load_tokenizer

REACH = {"transformer-tiny": 4.0, "rnn-luong": 3.0}
VALIDATION = 20
VOCABULARY, TOKENS = 5000, 4096


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--joeynmt", required=True, help="a Python with joeynmt")
    parser.add_argument("--data", required=True, nargs=2, type=Path, metavar=("SOURCE", "TARGET"))
    parser.add_argument("--model", choices=sorted(REACH), default="transformer-tiny")
    parser.add_argument("--steps", type=int, default=30, help="updates of a run; the first third is not counted")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(asked.threads)
    ours: list[float] = []
    theirs: dict[str, list[float]] = {"train": [], "grouped": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        few = _heads(asked.data, folder)
        for number in range(asked.rounds):
            ours.append(_foveate(asked, few, folder / f"ours-{number}"))
            if not number:
                _cut(asked.data, few, folder / "ours-0", folder)
            for text, speeds in theirs.items():
                speeds.append(_joeynmt(asked, folder, text, f"{text}-{number}"))
    title = f"{asked.model}, batches of {TOKENS:,} tokens, {asked.threads} threads, target tokens/s"
    rows = [["foveate", f"{statistics.median(ours):,.0f}", "", ""]]
    names = ("JoeyNMT", f"{REACH[asked.model]:.1f} x"), ("JoeyNMT, like lengths together", "")
    for (name, reach), speeds in zip(names, theirs.values(), strict=True):
        times = ratio([1 / speed for speed in ours], [1 / speed for speed in speeds])
        rows.append([name, f"{statistics.median(speeds):,.0f}", f"{times:.2f} x", reach])
    show(title, ["", "tokens/s", "foveate is", "reach"], rows)


def _heads(data: list[Path], folder: Path) -> list[Path]:
    """The first sentences of both files, to validate on."""
    paths = [folder / "few.source", folder / "few.target"]
    for path, whole in zip(paths, data, strict=True):
        lines = whole.read_text(encoding="utf-8").splitlines()[:VALIDATION]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return paths


def _foveate(asked: argparse.Namespace, few: list[Path], out: Path) -> float:
    every = max(1, asked.steps // 3)
    flags = {
        "--model": asked.model,
        "--out": out,
        "--vocabulary": VOCABULARY,
        "--batch": TOKENS,
        "--steps": asked.steps,
        "--log-every": every,
        "--validate-every": asked.steps,
        "--save-every": asked.steps,
        "--label-smoothing": 0.1,
        "--threads": asked.threads,
        "--architecture.dropout": 0.3,
    }
    if asked.model == "transformer-tiny":  # whose feed-forward layers drop something inside in JoeyNMT
        flags["--architecture.activation-dropout"] = 0.3
    files = ["--data", *asked.data, "--validation", *few]
    words = [*files, *(part for pair in flags.items() for part in pair)]
    _run([sys.executable, "-m", "foveate", "train", "translate", *map(str, words)])
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return statistics.median([row["tokens_per_second"] for row in rows if "tokens_per_second" in row][1:])


def _joeynmt(asked: argparse.Namespace, folder: Path, text: str, out: str) -> float:
    every = max(1, asked.steps // 3)
    path = folder / f"{out}.yaml"
    asked_for = config(asked.model, folder, text, folder / out, asked.steps, every)
    path.write_text(json.dumps(asked_for), encoding="utf-8")  # JSON is YAML
    told = _run([asked.joeynmt, "-W", "ignore", "-m", "joeynmt", "train", str(path), "--skip-test"])
    return statistics.median([float(speed) for speed in re.findall(r"Tokens per Sec:\s+(\d+)", told)][1:])


def _run(words: list[str]) -> str:
    done = subprocess.run(words, capture_output=True, text=True, env=environment())
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout + done.stderr


def _cut(data: list[Path], few: list[Path], run: Path, folder: Path) -> None:
    """Both texts as tokens of foveate's tokenizers, "t17 t4 t512", and the vocabularies that JoeyNMT needs."""
    sides = {}
    for side, name, whole, part in zip(("source", "target"), ("src", "trg"), data, few, strict=True):
        tokenizer = load_tokenizer(run / f"{side}_tokenizer.json")
        texts = (path.read_text(encoding="utf-8").splitlines() for path in (whole, part))
        sides[name], held_out = map(tokenizer.encode, texts)
        _write(folder / f"train.{name}", sides[name])
        _write(folder / f"dev.{name}", held_out)
        names = ["<unk>", "<pad>", "<s>", "</s>", *(f"t{token}" for token in range(4, len(tokenizer)))]
        (folder / f"vocabulary.{name}").write_text("\n".join(names) + "\n", encoding="utf-8")
    order = _grouped([max(map(len, pair)) + 1 for pair in zip(*sides.values(), strict=True)])
    for name, sentences in sides.items():
        _write(folder / f"grouped.{name}", [sentences[place] for place in order])


def _write(path: Path, sentences: list[list[int]]) -> None:
    lines = (" ".join(f"t{token}" for token in sentence) for sentence in sentences)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _grouped(lengths: list[int]) -> list[int]:
    """An order in which JoeyNMT, which ends a batch once it has 4,096 places, finds sentences of like length."""
    groups: list[list[int]] = [[]]
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        groups[-1].append(place)
        if len(groups[-1]) * lengths[place] >= TOKENS:
            groups.append([])
    *full, rest = groups
    random.Random(1).shuffle(full)
    return [place for group in [*full, rest] for place in group]


if __name__ == "__main__":
    main()
