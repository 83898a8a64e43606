"""The figures and the page of a `Sight`: what `Sight.figure`, `Sight.save` and a notebook show."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from foveate.contracts import Picture
from foveate.errors import UserError
from foveate.sight import Sight
from foveate.sight.measures import Choice, resolve_choice
from foveate.viewer import page
from foveate.viewer.document import Document, make_document
from foveate.viewer.figures import Alignment, plot_alignments
from foveate.viewer.sides import SidePair

Tokens: TypeAlias = SidePair | Mapping[str, SidePair]
"""The names of queries and keys, for all sites or for the sites that match a pattern."""

READABLE = 64
"""Maps with at most this many queries and keys are drawn cell by cell; longer ones are pooled to as many cells."""


def figure(
    sight: Sight,
    site: str,
    tokens: Sequence[str] | None,
    keys: Sequence[str] | None,
    heads: Choice,
    example: int,
) -> Picture:
    """See `Sight.figure`."""
    found = sight[site]
    examples, head_count, rows, columns = found.shape
    if not 0 <= example < examples:
        raise UserError(f"there is no example {example} among {examples}: they count from 0")
    sides = [tokens, keys if keys is not None else tokens if rows == columns else None]
    for side, count, what in zip(sides, (rows, columns), ("queries", "keys"), strict=True):
        if side is not None and len(side) != count:
            raise UserError(f"{site} has {count} {what}, but {len(side)} tokens are given for them")
    numbers = resolve_choice(heads, head_count)
    if max(rows, columns) <= READABLE:
        maps = found.weights(heads=numbers)[example]
    else:
        maps = found.pooled(READABLE, READABLE)[example, numbers]
    labels = [_labels(*side) for side in zip(sides, (rows, columns), maps.shape[1:], strict=True)]
    title = f"{site}, head {{}}" if head_count > 1 else site
    drawn = zip(numbers, maps, strict=True)
    return plot_alignments([Alignment(each, labels[0], labels[1], title.format(head)) for head, each in drawn])


def save(sight: Sight, path: Path | str, tokens: Tokens, example: int, **options: Any) -> None:
    """See `Sight.save`."""
    page.save(path, _document(sight, tokens, example, **options))


def frame(sight: Sight, tokens: Tokens, example: int, **options: Any) -> str:
    """The page as an element for a notebook; see `Sight.save`."""
    return page.to_iframe(_document(sight, tokens, example, **options))


def _document(sight: Sight, tokens: Tokens, example: int, notes: Sequence[str] = (), **options: Any) -> Document:
    return make_document(sight, tokens, example, notes=[*sight.notes, *notes], **options)


def _labels(tokens: Sequence[str] | None, count: int, cells: int) -> list[str]:
    """The tokens, or the number of each position; the label of a pooled cell is that of its first position."""
    firsts = [cell * count // cells for cell in range(cells)]
    return [str(first) if tokens is None else tokens[first] for first in firsts]
