"""How good captions are: BLEU as sacreBLEU computes it, and CIDEr-D."""

import math
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from sacrebleu.metrics import BLEU

from foveate.data.images.captions import CaptionedImage
from foveate.data.text.scripts import words_and_signs
from foveate.metrics.translation import usual_tokenizer

ORDERS = 1, 2, 3, 4
"""Lengths of the n-grams that CIDEr counts."""

SIGMA = 6.0
"""Standard deviation of CIDEr-D's penalty for another length, in words."""

Ngrams = Counter[tuple[str, ...]]


def caption_metrics(captions: Sequence[str], examples: Sequence[CaptionedImage]) -> dict[str, float]:
    """BLEU, CIDEr-D, the share of captions that equal a reference, and BLEU of the images with each number of things
    and of each kind, where they are known."""
    references = [one.captions for one in examples]
    equal = [same_words(caption, own) for caption, own in zip(captions, references, strict=True)]
    metrics = {
        "bleu": bleu(captions, references),
        "cider": 10 * cider(captions, references),
        "exact": 100 * sum(equal) / max(1, len(equal)),
    }
    for count in sorted({len(one.regions) for one in examples} - {0}):
        chosen = [place for place, one in enumerate(examples) if len(one.regions) == count]
        metrics[f"bleu_{count}"] = bleu([captions[place] for place in chosen], [references[place] for place in chosen])
    for kind in dict.fromkeys(one.kind for one in examples if one.kind):
        chosen = [place for place, one in enumerate(examples) if one.kind == kind]
        named = kind.replace(" ", "_")
        metrics[f"bleu_{named}"] = bleu([captions[place] for place in chosen], [references[place] for place in chosen])
        metrics[f"exact_{named}"] = 100 * sum(equal[place] for place in chosen) / len(chosen)
    return metrics


def bleu(captions: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Corpus BLEU, 0 to 100. Each caption has at least one reference.

    It counts up to four words in a row, or as many as there are where no reference has four.
    """
    most = max(map(len, references))
    # sacreBLEU takes None where an example has fewer references than another.
    streams: Any = [[own[place] if place < len(own) else None for own in references] for place in range(most)]
    tokenize = usual_tokenizer([reference for own in references for reference in own])
    counted = partial(BLEU, lowercase=True, force=True, tokenize=tokenize)
    found = counted().corpus_score(list(captions), streams)
    if not found.totals[-1]:
        found = counted(effective_order=True).corpus_score(list(captions), streams)
    return found.score


def same_words(caption: str, references: Sequence[str]) -> bool:
    """Returns whether a caption has the words of one of its references, in lower case."""
    return _words(caption) in map(_words, references)


def _words(text: str) -> list[str]:
    return words_and_signs(text.lower())


def cider(captions: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """CIDEr-D, 0 to 10, mostly given as ten times more (Vedantam et al. 2015, https://arxiv.org/abs/1411.5726).

    The similarity of n-grams, weighted by how rare they are among the images' references; n-grams that a caption
    repeats more often than a reference count as often as there, and another length is penalised. Words are not stemmed.
    """
    counted = [[_ngrams(reference) for reference in own] for own in references]
    occurs: Ngrams = Counter()
    for own in counted:
        occurs.update({ngram for reference in own for ngram in reference})
    scores = [
        sum(_similarity(_ngrams(caption), reference, occurs, len(references)) for reference in own) / len(own)
        for caption, own in zip(captions, counted, strict=True)
    ]
    return 10 * sum(scores) / len(scores)


def _ngrams(text: str) -> Ngrams:
    words = _words(text)
    return Counter(tuple(words[at : at + order]) for order in ORDERS for at in range(len(words) - order + 1))


def _similarity(caption: Ngrams, reference: Ngrams, occurs: Ngrams, images: int) -> float:
    """The mean over the orders of the clipped cosine, times the penalty for another length."""
    total = 0.0
    lengths = [sum(count for ngram, count in part.items() if len(ngram) == 1) for part in (caption, reference)]
    for order in ORDERS:
        one, other = (
            {
                ngram: count * (math.log(images) - math.log(max(1, occurs[ngram])))
                for ngram, count in part.items()
                if len(ngram) == order
            }
            for part in (caption, reference)
        )
        common = sum(min(one[ngram], other[ngram]) * other[ngram] for ngram in one.keys() & other.keys())
        norms = math.sqrt(sum(x * x for x in one.values())) * math.sqrt(sum(x * x for x in other.values()))
        total += common / norms if norms else 0.0
    return total / len(ORDERS) * math.exp(-((lengths[0] - lengths[1]) ** 2) / (2 * SIGMA**2))
