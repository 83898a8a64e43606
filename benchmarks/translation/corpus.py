"""A whole test set translated from the command line, loading included: foveate, transformers and CTranslate2.

    python -m benchmarks.translation.corpus --peers PEERS/bin/python --run RUN --data SOURCE REFERENCE

RUN is a run folder of a trained Transformer; all use its weights and its tokenizers, beam 5 and length penalty 1.
foveate runs as `foveate run RUN --file SOURCE`; the others have no such command for a model without a tokenizer of
theirs, so each has the shortest script that sorts by length and translates in batches (`workers/*_corpus.py`), and
CTranslate2 a model that was converted before, one batch with all threads or a smaller one with each thread. BLEU is
lower-cased. The order changes from round to round.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.translation.rounds import CTRANSLATE2, TRANSFORMERS, WORKERS, environment, ratio, show
from foveate.metrics.translation import quality


@dataclass
class Command:
    """A command, and what its runs took."""

    name: str
    words: list[str]
    seconds: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    output: list[str] = field(default_factory=list)

    def go(self) -> None:
        clock, used = time.perf_counter(), _children()
        done = subprocess.run(self.words, check=True, capture_output=True, text=True, env=environment())
        self.seconds.append(time.perf_counter() - clock)
        self.processor.append(_children() - used)
        self.output = done.stdout.splitlines()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", required=True, help="a Python with transformers and ctranslate2")
    parser.add_argument("--run", required=True, help="run folder of a trained Transformer")
    parser.add_argument("--data", required=True, nargs=2, type=Path, metavar=("SOURCE", "REFERENCE"))
    parser.add_argument("--precision", choices=tuple(CTRANSLATE2), default="float32")
    parser.add_argument("--fastest", action="store_true", help="leave out transformers, which takes the longest")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(asked.threads)
    source, references = asked.data[0], asked.data[1].read_text(encoding="utf-8").splitlines()
    with tempfile.TemporaryDirectory() as folder:
        commands = _commands(asked.peers, asked.run, source, Path(folder) / "converted", asked.precision)
        commands = [each for each in commands if not (asked.fastest and each.name == "transformers")]
        for number in range(asked.rounds):
            for place in range(len(commands)):
                commands[(place + number) % len(commands)].go()
    headings = ["", "seconds", "processor s", "foveate is", "by processor", "BLEU", "same lines"]
    title = f"{len(references):,} sentences, {asked.precision}, {asked.threads} threads, loading included"
    show(title, headings, [_row(command, commands[0], references) for command in commands])


def _commands(peers: str, run: str, source: Path, converted: Path, precision: str) -> list[Command]:
    kind, least = TRANSFORMERS[precision], CTRANSLATE2[precision]
    convert = [peers, "-W", "ignore", str(WORKERS / "ctranslate2_convert.py"), run, str(converted), least]
    subprocess.run(convert, check=True, env=environment())
    ours = [sys.executable, "-m", "foveate", "run", run, "--file", str(source), "--precision", precision]
    transformers = [peers, "-W", "ignore", str(WORKERS / "transformers_corpus.py"), run, str(source), kind]
    ctranslate2 = [peers, str(WORKERS / "ctranslate2_corpus.py"), str(converted), run, str(source), least]
    return [
        Command("foveate", ours),
        Command("transformers", transformers),
        Command("CTranslate2, a batch at a time", [*ctranslate2, "1", "4096"]),
        Command("CTranslate2, one for each thread", [*ctranslate2, os.environ["OMP_NUM_THREADS"], "1024"]),
        Command("CTranslate2, likewise twice as large", [*ctranslate2, os.environ["OMP_NUM_THREADS"], "2048"]),
    ]


def _row(command: Command, ours: Command, references: list[str]) -> list[str]:
    measured = (command.seconds, command.processor)
    ratios = [ratio(own, others) for own, others in zip((ours.seconds, ours.processor), measured, strict=True)]
    same = sum(one == other for one, other in zip(ours.output, command.output, strict=True))
    bleu = quality(command.output, references, lowercase=True).bleu
    return [
        command.name,
        *(f"{statistics.median(values):.1f}" for values in measured),
        *(f"{value:.2f} x" if command is not ours else "" for value in ratios),
        f"{bleu:.2f}",
        f"{same:,}",
    ]


def _children() -> float:
    times = os.times()
    return times.children_user + times.children_system


if __name__ == "__main__":
    main()
