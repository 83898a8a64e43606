"""The figures and the page of a `Sight`: what `Sight.figure`, `Sight.save` and a notebook show."""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from foveate.contracts import Picture
from foveate.errors import of_kind
from foveate.sight import Sight
from foveate.sight.measures import Choice, resolve_choice
from foveate.viewer import page
from foveate.viewer.document import Document, make_document
from foveate.viewer.figures import Alignment, plot_alignments
from foveate.viewer.head_figure import label_cells, readable_maps
from foveate.viewer.sides import SidePair, check_example, make_sides

Tokens: TypeAlias = SidePair | Mapping[str, SidePair]
"""The names of queries and keys, for all sites or for the sites that match a pattern."""


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
    check_example(example, examples)
    sides = make_sides((tokens, keys if keys is not None else tokens if rows == columns else None), site, rows, columns)
    numbers = resolve_choice(heads, head_count, "head")
    maps = readable_maps(found, numbers, example)
    labels = [label_cells(side, cells) for side, cells in zip(sides, maps.shape[1:], strict=True)]
    title = f"{site}, head {{}}" if head_count > 1 else site
    drawn = zip(numbers, maps, strict=True)
    return plot_alignments([Alignment(each, labels[0], labels[1], title.format(head)) for head, each in drawn])


def save(sight: Sight, path: Path | str, tokens: Tokens, example: int, **options: Any) -> None:
    """See `Sight.save`."""
    of_kind((str, PathLike), "the file", path, "a path")
    page.save(path, _document(sight, tokens, example, **options))


def frame(sight: Sight, tokens: Tokens, example: int, **options: Any) -> str:
    """The page as an element for a notebook; see `Sight.save`."""
    return page.to_iframe(_document(sight, tokens, example, **options))


def _document(sight: Sight, tokens: Tokens, example: int, notes: Sequence[str] = (), **options: Any) -> Document:
    return make_document(sight, tokens, example, notes=[*sight.notes, *notes], **options)
