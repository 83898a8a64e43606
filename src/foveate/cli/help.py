"""What `--help` prints: all options, or those that matter with examples."""

import contextlib
import io
import re
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import tyro

from foveate.cli.aliases import short_names

ENTRY = re.compile(r" {1,3}(--?[a-z]\S*|\[?[A-Z]{2,}\b)")
"""The first line of what is said about one option; the next lines are far from the left."""


def full_help(kind: Any, command: str, keywords: dict[str, Any]) -> str:
    """Every option of a command with its explanation and default."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
        tyro.cli(kind, args=["--help"], prog=f"foveate {command}", **keywords)
    return shown.getvalue()


def known_options(text: str) -> set[str]:
    """The options that a help text explains."""
    return set(re.findall(r"--[a-z][a-z0-9.-]*", text))


def list_options(text: str) -> set[str]:
    """Those options of a help text that take any number of values."""
    return set(re.findall(r"(--[a-z][a-z0-9.-]*) \[", text))


def short_help(text: str, names: Sequence[str], examples: Sequence[str]) -> str:
    """Of a full help text what stands before the options, those of these names and arguments without one; examples."""
    entries = dict(_entries(text))
    kept = [*(name for name in entries if not name.startswith("-")), *(name for name in names if name in entries)]
    before = re.split(r"╭|\n *positional arguments|\n *options", text)[0]
    aliases = ", ".join(f"{short} {full}" for short, full in short_names(known_options(text)).items())
    return "\n".join(
        [
            re.sub(r"\n\n+", "\n\n", before).rstrip(),
            "",
            *(_wrapped(entries[name]) for name in kept),
            *("", "examples:", *(f"  {example}" for example in examples)),
            f"\nshort names: {aliases}\n--help-all explains {len(entries) - len(kept)} options more",
        ]
    )


def _wrapped(lines: Sequence[str]) -> str:
    """An option and what is said about it, as wide as the terminal, whose docstring was wrapped for another width."""
    first, *rest = lines
    name, *description = re.split(r" {2,}", first.strip().replace("{None}|", ""), maxsplit=1)
    text = re.sub(r"(?<=\d,) (?=\d)", "", " ".join([*description, *(line.strip() for line in rest)]))
    text = text.removesuffix("(default: )").removesuffix("(default: None)").rstrip()
    width, margin = min(shutil.get_terminal_size().columns, 120), " " * 28
    lines = textwrap.wrap(text, width, initial_indent=margin, subsequent_indent=margin, break_on_hyphens=False)
    head = f"  {name}"
    return "\n".join([head + lines[0][len(head) :], *lines[1:]] if len(head) < len(margin) else [head, *lines])


def _entries(text: str) -> Iterator[tuple[str, list[str]]]:
    """The name and the lines of each option in a help text, in boxes or (where the terminal has no lines) without."""
    name = ""
    lines: list[str] = []
    for line in (line.strip("│").rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()):
        first = ENTRY.match(line)
        if lines and not line.startswith("     "):
            yield name, lines
            lines = []
        if first:
            name, lines = first[1].rstrip(","), [line]
        elif lines:
            lines.append(line)
    if lines:
        yield name, lines
