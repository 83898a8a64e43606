"""One page of several looks at the same input, each of which shows another measure: the page has a menu of them."""

from collections.abc import Sequence

from foveate.viewer.document import Document


def join_measures(documents: Sequence[Document]) -> Document:
    """The page of the first document with the sites of all; notes that several have are said once."""
    first, *others = documents
    for document in others:
        first.sites = [*first.sites, *document.sites]
        first.notes = [*dict.fromkeys([*first.notes, *document.notes])]
    return first
