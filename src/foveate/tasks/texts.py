"""What to learn from and what to validate on: a source by name, or a user's own files, some of them held out."""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from foveate.contracts import UNKNOWN, Tokenizer
from foveate.data import ParallelText, Splits, SubwordTokenizer, open_source
from foveate.data.scripts import unspaced
from foveate.errors import UserError, at_least, at_most
from foveate.tasks.trained import said

HELD_OUT = 1000
"""At most so many examples are held out to validate on, and at most one in twenty."""

MUCH_UNKNOWN = 0.1
"""A larger share of unknown tokens is worth a line to the user."""

VOCABULARY = 10_000_000
"""More entries than any vocabulary has; for far more there is not even memory to count in."""


@runtime_checkable
class Chosen(Protocol):
    """The part of a recipe that says which text to learn from."""

    source: str | None
    """Text by name."""
    data: tuple[Path, ...]
    """A user's own text."""
    validation: tuple[Path, ...]
    """Text to validate on; without it, a part is held out."""


Text = TypeVar("Text", bound=Any)

Example = TypeVar("Example")


def check_vocabulary(size: int) -> None:
    """Raise UserError for a size that no vocabulary can have."""
    at_least(1, "vocabulary", size)
    at_most(VOCABULARY, "vocabulary", size)


def learn_and_check(
    chosen: Chosen, by_name: Callable[[], Splits], from_paths: Callable[[Sequence[Path]], Text], files: str, unit: str
) -> tuple[Text, Text]:
    """The text to learn from and the text to validate on.

    `by_name` opens the source, `from_paths` a user's files; `files` and `unit` say in messages what files there must
    be ("SRC TGT") and what is counted ("pairs"). Raises UserError where both or none are given, and for a text that is
    too small to hold some of it out.
    """
    if chosen.source is not None and chosen.data:
        raise UserError(f"both the source '{chosen.source}' and files are given; choose one")
    validation = from_paths(chosen.validation) if chosen.validation else None
    if chosen.source is not None:
        splits = by_name()
        return splits.train, validation or splits.dev
    if not chosen.data:
        raise UserError(f"no text to learn from: name a source (see `foveate data`) or give --data {files}")
    learn = from_paths(chosen.data)
    return (learn, validation) if validation else held_out(learn, files, unit)


def unknown_note(name: str, tokenizer: Tokenizer, texts: Iterable[str]) -> list[str]:
    """A line for the user where the vocabulary lacks much of the texts, of which the first thousand are read."""
    if not isinstance(tokenizer, SubwordTokenizer):
        return []
    texts = list(islice(texts, 1000))
    tokens = [token for text in tokenizer.encode(texts) for token in text]
    share = tokens.count(UNKNOWN) / max(1, len(tokens))
    if share < MUCH_UNKNOWN:
        return []
    why = ", and the script has no spaces between words" if unspaced(texts) else ""
    return [
        f"{name}: {share:.0%} of the tokens are unknown to the vocabulary{why}; try --tokens subwords or characters"
    ]


def to_measure_on(
    source: str | None,
    data: Sequence[Path],
    by_name: Callable[[], Splits],
    from_paths: Callable[[Sequence[Path]], Text],
    files: str,
) -> Text:
    """A user's own text, or else the test part of the `source` that a model was trained on.

    Raises UserError where there is neither, which tells what `files` there must be.
    """
    if data:
        return from_paths(data)
    if source is None:
        raise UserError(f"this model was trained on files: give --data {files} to measure it on")
    return by_name().test


def held_out(text: Text, files: str, unit: str, instead: str = "--validation") -> tuple[Text, Text]:
    """The text without one in twenty of its examples (or, of a long one, fewer), and these: see its `held_out`.

    UserError for a text too small for that, which says which flag to give `instead`.
    """
    kept = text.check().kept
    every = max(20, math.ceil(kept / HELD_OUT))
    if kept < every:
        raise UserError(f"{text.name} has {kept} {unit}, too few to hold some out; give {instead} {files}")
    learn, check = text.held_out(every)
    return learn, check


def spread(examples: Iterable[Example], total: int, count: int) -> list[Example]:
    """At most `count` of the examples, of which there are `total`, evenly from all over: a text may have an order."""
    return list(islice(examples, None, None, max(1, -(-total // count))))


def pairs_to_measure_on(description: dict[str, Any], data: Sequence[Path], task: str) -> ParallelText:
    """A user's own pairs, or the test part of the source that a model's `description` says it was trained on.

    Raises UserError where there is neither.
    """
    source = said(description, "examples", "source", kind=str | None)
    languages = (
        said(description, "examples", "from_language", kind=str),
        said(description, "examples", "to_language", kind=str),
    )
    return to_measure_on(
        source,
        data,
        lambda: open_source(source, *languages, task=task),
        lambda paths: ParallelText.from_paths(paths, languages),
        "SRC TGT",
    )
