"""Two texts on one line."""

from foveate.errors import TextError, quoted


def split_pair(text: str, place: int = 0) -> tuple[str, str]:
    """Both sides of `source<TAB>target`; an empty line is an empty pair."""
    source, *others = text.split("\t")
    if len(others) != 1 and text.strip():
        raise TextError(place, f"{quoted(text)} has {len(others)} tabs, where one tab must part two texts")
    return source.strip(), "".join(others).strip()
