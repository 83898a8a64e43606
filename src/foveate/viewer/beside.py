"""One page of two looks: of two inputs, or of two models, with their heads beside each other."""

from dataclasses import replace

from foveate.viewer.document import Document

LETTERS = "AB"
"""How the names of the first and of the second look's sites begin; the page's `beside.js` pairs them by these."""


def place_beside(first: Document, second: Document) -> Document:
    """The page of both: the sites "A.NAME" of the first and "B.NAME" of the second, those of one group after another.

    What both titles or notes say is said once.
    """
    groups = dict.fromkeys(panel.group for panel in (*first.sites, *second.sites))
    both = list(zip(LETTERS, (first, second), strict=True))
    sites = [
        replace(panel, name=lettered(letter, panel.name))
        for group in groups
        for letter, document in both
        for panel in document.sites
        if panel.group == group
    ]
    alike = first.title == second.title
    title = first.title if alike else " · ".join(f"{letter}: {document.title}" for letter, document in both)
    shared = [note for note in first.notes if note in second.notes]
    own = [f"{letter}: {note}" for letter, document in both for note in document.notes if note not in shared]
    return Document(title, sites, shared + own)


def lettered(letter: str, name: str) -> str:
    """The name of a look's site on the page of both. A model that attends itself has one without a path, "" or "#2"."""
    return f"{letter}.{name}" if name.partition("#")[0] else f"{letter}{name}"
