"""What was seen of one input, with all that a picture of it needs."""

from dataclasses import dataclass, field

from foveate.sight.page import Document, document
from foveate.sight.page.sides import Pair
from foveate.sight.sight import Sight


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
