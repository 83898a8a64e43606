"""Flags whose value is pairs of a name and a number: `--rate-factors stack 0.1 head 2`."""

from collections.abc import Mapping, Sequence

from tyro.constructors import PrimitiveConstructorSpec


def _from_words(words: Sequence[str]) -> dict[str, float]:
    if len(words) % 2:
        raise ValueError(f"{' '.join(words)} is not pairs of a place and a factor")
    return {place: float(factor) for place, factor in zip(words[::2], words[1::2], strict=True)}


def _to_words(pairs: Mapping[str, float]) -> list[str]:
    return [word for place, factor in pairs.items() for word in (place, str(factor))]


PAIRS = PrimitiveConstructorSpec[dict[str, float]](
    nargs="*",
    metavar="[PLACE FACTOR [PLACE FACTOR ...]]",
    instance_from_str=_from_words,
    is_instance=lambda value: isinstance(value, dict),
    str_from_instance=_to_words,
)
"""One flag for the whole mapping. Without it, a default that is not empty would become a flag for each of its names."""
