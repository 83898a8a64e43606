"""What to learn from and what to validate on: a source by name, or a user's own files, some of them held out."""

import math
from collections.abc import Iterable
from itertools import islice
from typing import Any, TypeVar

from foveate.contracts import Tokenizer
from foveate.data.text.scripts import unspaced
from foveate.data.tokens.tokenizers import SubwordTokenizer
from foveate.errors import UserError, at_least, at_most

FEWEST = 20
"""Of fewer examples none are held out."""

MOST_HELD_OUT = 1000
"""At most this many examples are held out to validate on."""

ENOUGH_HELD_OUT = 100
"""Of few examples a larger share is held out, until it is this many: the best of ten validations on fewer is best by
chance."""

MUCH_UNKNOWN = 0.1
"""A larger share of unknown tokens is worth a line to the user."""

VOCABULARY = 10_000_000
"""More entries than any vocabulary has; for far more there is not even memory to count in."""


Text = TypeVar("Text", bound=Any)

Example = TypeVar("Example")


def check_vocabulary(size: int) -> None:
    """Raise UserError for a size that no vocabulary can have."""
    at_least(1, "vocabulary", size)
    at_most(VOCABULARY, "vocabulary", size)


def unknown_note(name: str, tokenizer: Tokenizer, texts: Iterable[str]) -> list[str]:
    """A line for the user where the vocabulary lacks much of the texts, of which the first thousand are read."""
    if not isinstance(tokenizer, SubwordTokenizer):
        return []
    texts = list(islice(texts, 1000))
    tokens = [token for text in tokenizer.encode(texts) for token in text]
    share = tokens.count(tokenizer.special.unknown) / max(1, len(tokens))
    if share < MUCH_UNKNOWN:
        return []
    why = ", and the script has no spaces between words" if unspaced(texts) else ""
    return [
        f"{name}: {share:.0%} of the tokens are unknown to the vocabulary{why}; try --tokens subwords or characters"
    ]


def held_out_every(count: int) -> int:
    """Of how many examples one is held out, where there are `count`: of twenty, of few data down to five, of many data
    more."""
    return max(math.ceil(count / MOST_HELD_OUT), min(20, max(5, count // ENOUGH_HELD_OUT)))


def held_out(text: Text, files: str, unit: str, instead: str = "--validation") -> tuple[Text, Text]:
    """The text without some of its examples, and these: one of `held_out_every`, see also its `held_out`.

    UserError for a text too small for that, which says which flag to give `instead`.
    """
    kept = text.check().kept
    if kept < FEWEST:
        raise UserError(f"{text.name} has {kept} {unit}, too few to hold some out; give {instead} {files}")
    train, validation = text.held_out(held_out_every(kept))
    return train, validation


def subsample(examples: Iterable[Example], total: int, count: int) -> list[Example]:
    """At most `count` of the examples, of which there are `total`, evenly from all over: a text may have an order."""
    return list(islice(examples, None, None, max(1, -(-total // count))))
