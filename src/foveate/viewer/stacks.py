"""Which sites are the layers of one stack, from their paths."""

import re
from collections.abc import Iterable

_NUMBER = re.compile(r"(?<![^.])\d+(?![^.#])")


def group_of(name: str) -> str:
    """The name of a site with a star for each number in its path: sites of one group are the layers of one stack.

    A model that attends itself, not in a part of it, is called "model".
    """
    found = _NUMBER.sub("*", name)
    return found if found.partition("#")[0] else f"model{found}"


def layer_of(name: str) -> str:
    """The numbers in its path."""
    return ".".join(_NUMBER.findall(name))


def stacks(names: Iterable[str]) -> dict[str, list[str]]:
    """The sites of each group."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(group_of(name), []).append(name)
    return found


def is_whole(names: list[str]) -> bool:
    """Returns whether sites of one group are layers 0, 1, ... of a single stack, two or more, with none left out."""
    numbers = list(zip(*(layer_of(name).split(".") for name in names), strict=True))
    varying = [each for each in numbers if len(set(each)) > 1]
    return len(varying) == 1 and list(varying[0]) == [str(layer) for layer in range(len(names))]
