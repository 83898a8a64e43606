"""Looking at every family of transformers and timm, beside the attention weights that it computes itself.

    pip install --no-deps torchvision==0.28.0 timm scipy
    python benchmarks/look_families.py

It takes 15 minutes on two idle cores, prints a line for each family and writes docs/look-families.md and its page of
the log. timm wants a torchvision, which would bring another torch: hence `--no-deps`, and best in an environment of its
own, because transformers cannot be imported beside a torchvision that does not fit. Its operators are compiled for that
torch; only their names are declared here, and no model needs more.

`--only PATTERN` examines the families whose whole name matches, `--library` only those of one library; then nothing is
written. `--so-far FILE` notes each outcome in a file, so that a run that was interrupted goes on. Exits with status 1
when a family is wrong or too few are right. `--unfinished` examines nothing more: it writes the pages with the outcomes
of `--so-far` and, of the families that are not among them, the rows that the log has.
"""

import argparse
import json
import re
import sys
import time
from dataclasses import asdict
from pathlib import Path

from families import libraries
from families.outcome import VERDICTS, Outcome
from families.table import log, page, rows_of
from families.workers import outcomes, work

LEAST_RIGHT = {"transformers": 675, "timm": 65}
"""Of those of the page: a family that takes too long beside other work is not counted."""

DOCS = Path(__file__).parents[1] / "docs"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="a regular expression for names of families")
    parser.add_argument("--library", choices=libraries.LIBRARIES)
    parser.add_argument("--so-far", type=Path, help="a file of outcomes: those in it are not examined again")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--unfinished", action="store_true", help="write the pages with what --so-far has")
    arguments = parser.parse_args()
    if arguments.worker:
        return work(arguments.worker)
    if arguments.unfinished:
        return write({library: unfinished(arguments.so_far, library) for library in libraries.LIBRARIES})
    start, found = time.monotonic(), {}
    for library in [arguments.library] if arguments.library else libraries.LIBRARIES:
        names = [name for name in libraries.of(library).names() if re.fullmatch(arguments.only or ".*", name)]
        known = {outcome.family: outcome for outcome in so_far(arguments.so_far, library)}
        found[library] = [known[name] for name in names if name in known]
        left = [name for name in names if name not in known]
        for number, outcome in enumerate(outcomes(library, left), 1):
            found[library].append(told(outcome, len(left), number))
            if arguments.so_far is not None:
                with arguments.so_far.open("a") as file:
                    print(json.dumps([library, asdict(outcome)]), file=file)
    print(f"{time.monotonic() - start:.0f} s")
    wrong = []
    for library, each in found.items():
        counts = {verdict: [outcome.verdict for outcome in each].count(verdict) for verdict in VERDICTS}
        print(library, counts)
        wrong += [outcome.family for outcome in each if outcome.verdict == "wrong"]
        if not arguments.only and counts["right"] < LEAST_RIGHT[library]:
            wrong.append(f"only {counts['right']} of {library} are right")
    if not arguments.only and not arguments.library:
        write(found)
    sys.exit(f"wrong: {', '.join(wrong)}" if wrong else 0)


def write(found: dict[str, list[Outcome]]) -> None:
    """Write the page and that of the log."""
    command = "python benchmarks/look_families.py"
    (DOCS / "look-families.md").write_text(page(found, command))
    (DOCS / "log" / "look-families.md").write_text(log(found, command))


def unfinished(path: Path | None, library: str) -> list[Outcome]:
    """The outcomes of a run that was interrupted, and the earlier ones of the other families."""
    earlier = rows_of((DOCS / "log" / "look-families.md").read_text())[library]
    found = {outcome.family: outcome for outcome in so_far(path, library)}
    return [*found.values(), *(outcome for outcome in earlier if outcome.family not in found)]


def so_far(path: Path | None, library: str) -> list[Outcome]:
    """What an earlier run that was interrupted has found."""
    lines = path.read_text().splitlines() if path is not None and path.exists() else []
    return [Outcome(**outcome) for of, outcome in map(json.loads, lines) if of == library]


def told(outcome: Outcome, count: int, number: int) -> Outcome:
    """Print what came of a family."""
    sites = f"{outcome.decided} of {outcome.sites}" if outcome.sites else ""
    cells = f"{outcome.family:32}{outcome.verdict:13}{outcome.verdicts.get('eager', ''):11}{sites:9}"
    advice = "" if all(outcome.advice) else "ITS ADVICE IS NOT TRUE "
    print(f"{number}/{count} {cells}{outcome.largest:7.0e} {advice}{outcome.reason[:300]}", flush=True)
    return outcome


if __name__ == "__main__":
    main()
