"""How good captions are: BLEU as sacreBLEU computes it, and CIDEr-D."""

import math
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from sacrebleu.metrics import BLEU

from foveate.data.images.captions import CaptionedImage
from foveate.data.text.scripts import words_and_signs
from foveate.metrics.resampling import Measured
from foveate.metrics.translation import usual_tokenizer

ORDERS = 1, 2, 3, 4
"""Lengths of the n-grams that CIDEr counts."""

SIGMA = 6.0
"""Standard deviation of CIDEr-D's penalty for another length, in words."""

Ngrams = Counter[tuple[str, ...]]


def caption_metrics(captions: Sequence[str], examples: Sequence[CaptionedImage]) -> dict[str, float]:
    """BLEU, CIDEr-D, the share of captions that equal a reference, and BLEU of the images with each number of things
    and of each kind, where they are known."""
    return measured_captions(captions, examples).all()


def measured_captions(captions: Sequence[str], examples: Sequence[CaptionedImage]) -> Measured:
    """The figures of `caption_metrics` for any of the captions, whose words are counted once. How rare n-grams are for
    CIDEr-D is that of all references, whichever are drawn."""
    references = [one.captions for one in examples]
    equal = np.array([same_words(caption, own) for caption, own in zip(captions, references, strict=True)])
    similar, words = np.array(cider_scores(captions, references)), CountedBleu(captions, references)
    things, kinds = [len(one.regions) for one in examples], [one.kind for one in examples]

    def figures(rows: Sequence[int]) -> dict[str, float]:
        chosen = [*rows]
        metrics = {
            "bleu": words(chosen),
            "cider": 10 * float(similar[chosen].mean()),
            "exact": 100 * float(equal[chosen].mean()),
        }
        for count in sorted({things[row] for row in chosen} - {0}):
            metrics[f"bleu_{count}"] = words([row for row in chosen if things[row] == count])
        for kind in dict.fromkeys(kinds[row] for row in chosen if kinds[row]):
            own, named = [row for row in chosen if kinds[row] == kind], kind.replace(" ", "_")
            metrics[f"bleu_{named}"] = words(own)
            metrics[f"exact_{named}"] = 100 * float(equal[own].mean())
        return metrics

    return Measured(len(captions), figures)


class CountedBleu:
    """Corpus BLEU, 0 to 100, of any of some captions, whose words are counted once. Each has at least one reference.

    It counts up to four words in a row, or as many as there are where no reference has four.
    """

    def __init__(self, captions: Sequence[str], references: Sequence[Sequence[str]]) -> None:
        most = max(map(len, references))
        # sacreBLEU takes None where an example has fewer references than another.
        streams: Any = [[own[place] if place < len(own) else None for own in references] for place in range(most)]
        tokenize = usual_tokenizer([reference for own in references for reference in own])
        counted = partial(BLEU, lowercase=True, force=True, tokenize=tokenize)
        self._whole, self._short = counted(), counted(effective_order=True)
        self._counts = np.array(self._whole._extract_corpus_statistics(list(captions), streams))

    def __call__(self, rows: Sequence[int]) -> float:
        """That of the captions with these numbers, which may occur several times."""
        counts = self._counts[[*rows]].sum(0).tolist()
        found = self._whole._compute_score_from_stats(counts)
        return (found if found.totals[-1] else self._short._compute_score_from_stats(counts)).score


def same_words(caption: str, references: Sequence[str]) -> bool:
    """Returns whether a caption has the words of one of its references, in lower case."""
    return _words(caption) in map(_words, references)


def _words(text: str) -> list[str]:
    return words_and_signs(text.lower())


def cider_scores(captions: Sequence[str], references: Sequence[Sequence[str]]) -> list[float]:
    """CIDEr-D of each caption, 0 to 10 (Vedantam et al. 2015, https://arxiv.org/abs/1411.5726).

    The similarity of n-grams, weighted by how rare they are among the images' references; n-grams that a caption
    repeats more often than a reference count as often as there, and another length is penalised. Words are not stemmed.
    """
    counted = [[_ngrams(reference) for reference in own] for own in references]
    occurs: Ngrams = Counter()
    for own in counted:
        occurs.update({ngram for reference in own for ngram in reference})
    return [
        10 * sum(_similarity(_ngrams(caption), reference, occurs, len(references)) for reference in own) / len(own)
        for caption, own in zip(captions, counted, strict=True)
    ]


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
