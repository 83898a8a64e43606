"""Translation quality on Multi30k (task 1, raw text), by two commands that anybody can type; a row of a table each.

    python benchmarks/multi30k.py FOLDER --to de --processes 2
    python benchmarks/multi30k.py FOLDER --to fr --model rnn-attentive

FOLDER has train, val and test_2016_flickr, each in .en and the other language. The published figures that the table's
BLEU compares with are lower-cased and tokenised by Moses: about 41 EN-DE and 62 EN-FR for a Transformer of this size.
"""

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
from pathlib import Path

TABLE = Path(__file__).parent / "results" / "multi30k.md"

HEADINGS = ("model", "pair", "BLEU", "chrF", "minutes", "epochs", "tokens/s", "seed", "version", "machine", "options")

TINY = "--architecture.tie all --learning-rate 0.003"
RNN = "--vocabulary 5000 --architecture.tie all --learning-rate 0.008 --epochs 25 --architecture.dropout"

OPTIONS = {
    "transformer-tiny": {
        "de": f"{TINY} --vocabulary 10000 --epochs 100 --weight-decay 0.1 --architecture.activation-dropout 0.3",
        "fr": f"{TINY} --vocabulary 5000 --epochs 70",
    },
    "rnn-attentive": {"de": f"{RNN} 0.4", "fr": f"{RNN} 0.35"},
}
"""What differs between models and languages."""

COMMON = "--lowercase --batch 2048 --schedule cosine --warmup 1000 --validate-every 1200 --save-every 300 --patience 99"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--to", choices=("de", "fr"), required=True)
    parser.add_argument("--model", choices=tuple(OPTIONS), default="transformer-tiny")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1, help="of one thread each; one alone takes all cores")
    parser.add_argument("--out", type=Path, default=Path("runs"))
    asked, further = parser.parse_known_args()
    out = asked.out / f"multi30k-en-{asked.to}-{asked.model}-{asked.seed}"

    def files(part: str) -> str:
        return " ".join(shlex.quote(str(asked.folder / f"{part}.{language}")) for language in ("en", asked.to))

    options = " ".join([COMMON, OPTIONS[asked.model][asked.to], *map(shlex.quote, further)])
    several = f"torch.distributed.run --nproc-per-node {asked.processes} -m " * (asked.processes > 1)
    run(
        f"{several}foveate train translate --data {files('train')} --validation {files('val')} --model {asked.model} "
        f"{options} --seed {asked.seed} --out {shlex.quote(str(out))}"
    )
    found = run(
        f"foveate eval {shlex.quote(str(out))} --data {files('test_2016_flickr')} --lowercase "
        f"--tokenize moses-{asked.to} --json"
    )
    append(row(asked, out, json.loads(found), options))


def run(command: str) -> str:
    """What a command prints, once it is done; its progress goes to the terminal."""
    print(command, file=sys.stderr)
    words = [sys.executable, "-m", *shlex.split(command)]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


def row(asked: argparse.Namespace, out: Path, found: dict, options: str) -> list[str]:
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    last = [line for line in lines if "tokens" in line][-1]
    here = Path(__file__).parent
    version = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=here, capture_output=True, text=True)
    return [
        asked.model,
        f"en-{asked.to}",
        f"{found['bleu']:.1f}",
        f"{found['chrf']:.1f}",
        f"{last['seconds'] / 60:.0f}",
        str(last["epoch"]),
        f"{last['tokens'] / last['seconds']:,.0f}",
        str(asked.seed),
        version.stdout.strip(),
        f"{platform.machine()}, {len(os.sched_getaffinity(0))} cores"
        + f", {asked.processes} processes" * (asked.processes > 1),
        f"`{options}`",
    ]


def append(cells: list[str]) -> None:
    if not TABLE.exists():
        TABLE.parent.mkdir(exist_ok=True)
        TABLE.write_text(f"| {' | '.join(HEADINGS)} |\n|{' --- |' * len(HEADINGS)}\n")
    with TABLE.open("a") as table:
        table.write(f"| {' | '.join(cells)} |\n")
    print(TABLE.read_text())


if __name__ == "__main__":
    main()
