"""What `--help` prints: all options in sections, or those that matter with examples."""

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
    shown = _Shown()
    with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
        tyro.cli(kind, args=["--help"], prog=f"foveate {command}", **keywords)
    return shown.getvalue()


class _Shown(io.StringIO):
    """Takes the lines of boxes, whatever the terminal can show: they tell sections apart."""

    encoding = "utf-8"


def known_options(text: str) -> set[str]:
    """The options that a help text explains."""
    return set(re.findall(r"--[a-z][a-z0-9.-]*", text))


def list_options(text: str) -> set[str]:
    """Those options of a help text that take any number of values."""
    return set(re.findall(r"(--[a-z][a-z0-9.-]*) \[", text))


def whole_help(text: str) -> str:
    """A full help text, in the words of `short_help`: each section with its options."""
    entries = dict(_entries(text))
    lines, shown = [_before(text), ""], set()
    for title, inside in _sections(text):
        own = [name for name, _ in _entries(inside) if name not in shown]
        shown |= {*own}
        about = re.match(r"((?:│ +\w[^│]*│\n)*)│ +─{3,}", inside)
        said = " ".join(about[1].replace("│", " ").split()) if about else ""
        lines += [f"{title}:{f' {said}' if said else ''}", *(_wrapped(entries[name]) for name in own), ""]
    if aliases := _aliases(text):
        lines.append(f"short names: {aliases}")
    return "\n".join(lines).rstrip()


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """The title of each box of a help text, and its lines."""
    for box in re.split(r"^╭", re.sub(r"\x1b\[[0-9;]*m", "", text), flags=re.MULTILINE)[1:]:
        title, _, inside = box.partition("\n")
        yield title.strip("─╮ ").removeprefix("positional "), inside


def short_help(text: str, names: Sequence[str], examples: Sequence[str]) -> str:
    """Of a full help text what stands before the options, those of these names and arguments without one; examples."""
    entries = dict(_entries(text))
    kept = [*(name for name in entries if not name.startswith("-")), *(name for name in names if name in entries)]
    return "\n".join(
        [
            _before(text),
            "",
            *(_wrapped(entries[name]) for name in kept),
            *("", "examples:", *(f"  {example}" for example in examples)),
            f"\nshort names: {_aliases(text)}\n--help-all explains {len(entries) - len(kept)} options more",
        ]
    )


def _before(text: str) -> str:
    """What stands before the options, with the usage in words; brackets stand around what may be left out."""
    text = re.sub(
        r"usage: .*?(?=\n *\n)", lambda usage: _with_brackets(in_words(usage[0]), text), text, flags=re.DOTALL
    )
    return re.sub(r"\n\n+", "\n\n", re.sub(r"\x1b\[[0-9;]*m", "", text).partition("╭")[0]).rstrip()


def _with_brackets(usage: str, text: str) -> str:
    for name, lines in _entries(text):
        if not name.startswith("-") and "(required)" not in " ".join(lines):
            taken = re.escape(re.split(r" {2,}", lines[0].strip())[0])
            usage = re.sub(rf"(?<=[ \n]){taken}(?![\w\]])", lambda found: f"[{found[0]}]", usage)
    return usage


def _aliases(text: str) -> str:
    return ", ".join(f"{short} {full}" for short, full in short_names(known_options(text)).items())


NOTHING = re.compile(r" *\(default: (None)?\)$")
"""What stands behind an option without a value of its own."""

ANSWERS = {"(default: False)": "(default: no)", "(default: True)": "(default: yes)"}


def in_words(name: str, may_be_none: bool = False) -> str:
    """The name of an option, and what it takes: a text, a number, a file, one of some words, or nothing."""
    name = re.sub(r"\{None,([^}]*)\}", r"{\1,None}" if may_be_none else r"{\1}", name)
    name = re.sub(r"\{None\}\|(\S+)", r"\1|None" if may_be_none else r"\1", name)
    name = re.sub(r"\[([^\[\]]+) \[\1 \.\.\.\]\]", r"\1 ...", name)
    name = re.sub(r"\{((?:None|FLOAT|INT|PATH|STR)[^{}|,]*)\}", r"\1", name)
    return re.sub(r"\bSTR\b", "TEXT", re.sub(r"\b(FLOAT|INT)\b", "NUMBER", name))


def _wrapped(lines: Sequence[str]) -> str:
    """An option and what is said about it, as wide as the terminal, whose docstring was wrapped for another width."""
    first, *rest = lines
    name, *description = re.split(r" {2,}", first.strip(), maxsplit=1)
    text = re.sub(r"(?<=\d,) (?=\d)", "", " ".join([*description, *(line.strip() for line in rest)]))
    with_value = not NOTHING.search(text) and "(default: " in text
    text = NOTHING.sub("", text).rstrip()
    text = re.sub(r"(?<=default: )\d{5,}\.0(?=\))", lambda number: f"{float(number[0]):,.0f}", text)
    for told, answer in ANSWERS.items():
        text = text.replace(told, answer)
    width, margin = max(40, min(shutil.get_terminal_size().columns, 120)), " " * 28
    lines = textwrap.wrap(text, width, initial_indent=margin, subsequent_indent=margin, break_on_hyphens=False) or [""]
    head = f"  {in_words(name, with_value)}"
    return "\n".join([head + lines[0][len(head) :], *lines[1:]] if len(head) < len(margin) else [head, *lines])


def _entries(text: str) -> Iterator[tuple[str, list[str]]]:
    """The name and the lines of each option in a help text, in boxes or (where the terminal has no lines) without."""
    name = ""
    lines: list[str] = []
    for line in (line.strip("│").rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()):
        if len(lines) == 1 and lines[0].count("{") > lines[0].count("}"):  # what it takes is longer than a line
            lines[0] += line.strip()
            continue
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
