"""What a model is given to look at, and what was seen of it, with all that a picture of it needs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from foveate.sight.sight import Sight
from foveate.viewer.page import Document, document
from foveate.viewer.sides import Pair


class File(NamedTuple):
    """The content of a picture or a sound; its name is for titles and messages alone."""

    name: str
    data: bytes


Input: TypeAlias = str | File

Takes: TypeAlias = Literal["text", "image", "audio"]


@dataclass
class Seen:
    """A sight of one input, and what its sides are called."""

    sight: Sight
    tokens: dict[str, Pair]
    """For each site the names of its queries and keys, as `page.document` takes them."""
    title: str
    """What was looked at, in a few words."""
    notes: list[str] = field(default_factory=list)
    """What else there is to say: which model it was, what it wrote, how it was run."""

    def document(self) -> Document:
        """The page of it. Computes all that the page shows."""
        return document(self.sight, self.tokens, title=self.title, notes=self.notes)


@runtime_checkable
class Viewer(Protocol):
    """A model that can be looked at while it reads an input."""

    name: str
    """What it is and where it comes from, in a few words."""
    takes: Takes

    def look(self, given: Input, most: int, sites: Sequence[str] | None = None) -> Seen:
        """Run the model on an input of at most so many tokens, and see where it looks, at `sites` of these patterns.

        Raises UserError for an input that does not fit, and for a model that attends in a way that cannot be seen.
        """
