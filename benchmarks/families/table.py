"""The table of all families, as a page of the docs."""

from collections import Counter
from importlib.metadata import version

from families.outcome import VERDICTS, Outcome

HEAD = """# What `foveate.look` sees of other libraries

Can `foveate.look` see my model? Find its family in the tables below.
Every family of transformers ({transformers}) and of timm ({timm}), on torch {torch}: a small model with random weights is
looked at and compared with the attention weights that it computes itself. This page is written by

    {command}

Those weights are found without any part of foveate: `benchmarks/families/reference.py` records every softmax that torch
computes below all Python functions and follows it to its product with values. A family of transformers is one model
type, built from a config that one rule has made small (`small.py`) and run on inputs that another makes (`inputs.py`);
one of timm is the models of one file whose names begin with the same word. Each is looked at as it is by default and,
where that is another one, by its eager implementation. Shapes and all weights must agree (to 2e-5 with the eager
implementation, to 1e-3 with another, whose rounding grows from layer to layer), no site may be missing and none added,
and the output must be the same, bit for bit, as without looking. Weights that are all alike prove nothing: the third
column says how many of the sites look decidedly. A query that may look nowhere, of which models make a mean
over all keys, is shown without weights: remarks say how many rows of all heads are such.

| outcome | means | {libraries} |
| --- | --- | {rules} |
"""  # noqa: E501


def page(outcomes: dict[str, list[Outcome]], command: str) -> str:
    """The page in Markdown, with the outcomes of each library."""
    versions = {library: version(library) for library in ("transformers", "timm", "torch")}
    libraries = " | ".join(f"of {len(found)} in {library}" for library, found in outcomes.items())
    text = HEAD.format(command=command, libraries=libraries, rules=" | ".join("---:" for _ in outcomes), **versions)
    counts = [Counter(outcome.verdict for outcome in found) for found in outcomes.values()]
    for verdict, meaning in VERDICTS.items():
        text += f"| {verdict} | {meaning} | {' | '.join(str(count[verdict]) for count in counts)} |\n"
    every = [true for found in outcomes.values() for outcome in found for true in outcome.advice]
    text += (
        f"\nWhat the errors advise was tried for each of {len(every)} refusals, and is true for {sum(every)} of them.\n"
    )
    for library, found in outcomes.items():
        text += f"\n## {library}\n\n| family | model | sites | default | eager | largest difference | remarks |\n"
        text += "| --- | --- | ---: | --- | --- | ---: | --- |\n"
        text += "".join(_row(outcome) for outcome in sorted(found, key=lambda outcome: outcome.family))
    return text


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
