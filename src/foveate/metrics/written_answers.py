"""How good short written answers are: exact match, F1 of words and BLEU, each from 0 to 100."""

import re
import string
from collections import Counter
from collections.abc import Sequence

from foveate.metrics.translation import quality

_PUNCTUATION = str.maketrans("", "", string.punctuation)

_ARTICLES = re.compile(r"\b(a|an|the)\b")


def answer_metrics(found: Sequence[str], right: Sequence[str]) -> dict[str, float]:
    """The share of answers that are right, the mean F1 of their words, and BLEU over all.

    The first two do not look at case, punctuation and English articles (Rajpurkar et al. 2016, SQuAD).
    """
    words = [(_words(one), _words(other)) for one, other in zip(found, right, strict=True)]
    return {
        "exact_match": 100 * sum(one == other for one, other in words) / len(words),
        "f1": 100 * sum(word_f1(one, other) for one, other in words) / len(words),
        "bleu": quality(found, right).bleu,
    }


def word_f1(found: Sequence[str], right: Sequence[str]) -> float:
    """The harmonic mean of the share of the found words that are right, and of the right ones that are found."""
    if not found or not right:
        return float(not found and not right)
    return 2 * (Counter(found) & Counter(right)).total() / (len(found) + len(right))


def _words(text: str) -> list[str]:
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()
