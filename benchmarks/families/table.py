"""What came of all families, as a page of the docs and one of its log."""

from collections import Counter
from importlib.metadata import version

from families.outcome import VERDICTS, Outcome

HEAD = """# What `foveate.look` sees of other libraries

Can `foveate.look` see my model? Find its family in the lists below; [the log](log/look-families.md) has their figures.

Every family of transformers ({transformers}) and of timm ({timm}), on torch {torch}: a small model with random weights
is looked at and compared with the attention weights that it computes itself. This page and the log are written by

```sh
{command}
```

| outcome | means | {libraries} |
| --- | --- | {rules} |
"""

RULES = """
A family is right where shapes and all weights agree (to 2e-5 with the eager implementation, to 1e-3 with another), no
site is missing and none added, and the output is the same, bit for bit, as without looking.

What the errors advise was tried for each of {count} refusals, and is true for {true} of them: mostly to set another
implementation of attention, such as `attn_implementation="sdpa"` or `fused_attn = True`.
"""

LOG_HEAD = """# Other libraries: every family

Newest run of `{command}`; what the outcomes mean is on [its page](../look-families.md).

The weights to compare with are found without any part of foveate: `benchmarks/families/reference.py` records every
softmax that torch computes below all Python functions and follows it to its product with values. A family of
transformers is one model type, built from a config that one rule has made small (`small.py`) and run on inputs that
another makes (`inputs.py`); one of timm is the models of one file whose names begin with the same word. Each is looked
at as it is by default and, where that is another one, by its eager implementation; the rounding of others grows from
layer to layer. Weights that are all alike prove nothing: the third column says how many of the sites look decidedly. A
query that may look nowhere, of which models make a mean over all keys, is shown without weights: remarks say how many
rows of all heads are such. Families that the newest run did not reach have their row of the run before, which says so.
"""

EARLIER = "earlier run:"
"""How remarks about a family begin that the newest run has not reached."""

LISTED = ("right", "refused", "wrong", "undecided", "not run")
"""The outcomes whose families the page names; those without attention have nothing to look at."""


def page(outcomes: dict[str, list[Outcome]], command: str) -> str:
    """The page in Markdown, with the outcomes of each library."""
    versions = {library: version(library) for library in ("transformers", "timm", "torch")}
    libraries = " | ".join(f"of {len(found)} in {library}" for library, found in outcomes.items())
    text = HEAD.format(command=command, libraries=libraries, rules=" | ".join("---:" for _ in outcomes), **versions)
    counts = [Counter(outcome.verdict for outcome in found) for found in outcomes.values()]
    for verdict, meaning in VERDICTS.items():
        text += f"| {verdict} | {meaning} | {' | '.join(str(count[verdict]) for count in counts)} |\n"
    every = [true for found in outcomes.values() for outcome in found for true in outcome.advice]
    text += RULES.format(count=len(every), true=sum(every))
    for library, found in outcomes.items():
        text += f"\n## {library}\n"
        for verdict in LISTED:
            names = sorted(outcome.family for outcome in found if outcome.verdict == verdict)
            text += f"\n**{verdict.capitalize()}:** {', '.join(names)}.\n" if names else ""
    return text


def log(outcomes: dict[str, list[Outcome]], command: str) -> str:
    """The page of the log in Markdown, with a line for each family."""
    text = LOG_HEAD.format(command=command)
    for library, found in outcomes.items():
        text += f"\n## {library}\n\n| family | model | sites | default | eager | largest difference | remarks |\n"
        text += "| --- | --- | ---: | --- | --- | ---: | --- |\n"
        text += "".join(_row(outcome) for outcome in sorted(found, key=lambda outcome: outcome.family))
    return text


def rows_of(text: str) -> dict[str, list[Outcome]]:
    """The outcomes in a page of the log, marked as those of an earlier run."""
    found: dict[str, list[Outcome]] = {}
    for line in text.splitlines():
        if line.startswith("## "):
            found[line.removeprefix("## ")] = []
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if not found or len(cells) < 7 or cells[0] in ("family", "---"):
            continue
        family, model, sites, default, eager, largest, *remarks = cells
        verdict, _, kind = default.partition(" (")
        decided, _, count = sites.partition(" of ")
        reason = " ".join(remarks).replace("`", "").removeprefix(EARLIER).strip()
        verdicts = {"default": verdict} | ({"eager": eager} if eager else {})
        worst = "wrong" if "wrong" in verdicts.values() else verdict
        sizes = {"sites": int(count or 0), "decided": int(decided or 0), "largest": float(largest or 0)}
        own = {"model": model, "implementation": kind.rstrip(")"), "verdicts": verdicts, **sizes}
        found[next(reversed(found))].append(Outcome(family, worst, f"{EARLIER} {reason}", **own))
    return found


def _row(outcome: Outcome) -> str:
    sites = f"{outcome.decided} of {outcome.sites}" if outcome.sites else ""
    largest = f"{outcome.largest:.0e}" if outcome.sites else ""
    default = outcome.verdicts.get("default", outcome.verdict)
    default += f" ({outcome.implementation})" if outcome.implementation else ""
    cells = (
        outcome.family,
        outcome.model,
        sites,
        default,
        outcome.verdicts.get("eager", ""),
        largest,
        _remarks(outcome),
    )
    return f"| {' | '.join(cells)} |\n"


def _remarks(outcome: Outcome) -> str:
    text = " ".join(outcome.reason.replace("|", "/").split())
    text = text if len(text) < 180 else f"{text[:180]}..."
    nowhere = f"{100 * outcome.nowhere:.2g} % of its rows look nowhere;" if outcome.nowhere else ""
    inputs = f"on {outcome.inputs}" if outcome.inputs else ""
    return " ".join(filter(None, [nowhere, inputs, text and f"`{text.replace('`', '')}`"]))
