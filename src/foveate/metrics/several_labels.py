"""How good decisions are of which an example may have several, or none: each from 0 to 100."""

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import chain

from foveate.metrics.classification import ClassQuality


def several_label_metrics(found: Sequence[Collection[str]], right: Sequence[Collection[str]]) -> dict[str, float]:
    """F1 of each label of `right`, as a mean over labels (macro) and over all decisions together (micro), and the share
    of examples of which all labels are right."""
    qualities = by_label(found, right)
    hits = sum(len({*one} & {*other}) for one, other in zip(found, right, strict=True))
    total = sum(len({*one}) for one in chain(found, right))
    exact = sum({*one} == {*other} for one, other in zip(found, right, strict=True))
    return {
        "macro_f1": sum(one.f1 for one in qualities.values()) / max(1, len(qualities)),
        "micro_f1": 200 * hits / max(1, total),
        "all_labels_right": 100 * exact / max(1, len(right)),
    }


def by_label(found: Sequence[Collection[str]], right: Sequence[Collection[str]]) -> dict[str, ClassQuality]:
    """How well each label of `right` is found, the most frequent one first."""
    hits = Counter(chain.from_iterable({*one} & {*other} for one, other in zip(found, right, strict=True)))
    given, wanted = (Counter(chain.from_iterable({*one} for one in side)) for side in (found, right))
    return {name: ClassQuality.of(hits[name], given[name], count) for name, count in wanted.most_common()}
