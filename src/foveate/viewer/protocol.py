"""The interface of a model that can be shown: what it reads, and what a look at it returns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from foveate.contracts import Picture
from foveate.sight.sight import Sight
from foveate.sight.site_patterns import check_patterns
from foveate.viewer.document import Document, Opening, make_document, opening_on_picture
from foveate.viewer.sides import SidePair


class File(NamedTuple):
    """The content of a picture or a sound; its name is used in titles and messages only."""

    name: str
    data: bytes
    question: str = ""
    """What is asked about a picture, for a model that takes a "question"."""


Input: TypeAlias = str | File

InputKind: TypeAlias = Literal["text", "image", "audio", "question"]
"""A "question" is an image and a question about it."""


@dataclass
class LookResult:
    """The sight of one input, and the names of its queries and keys."""

    sight: Sight
    tokens: dict[str, SidePair]
    """For each site the names of its queries and keys, as `make_document` takes them."""
    title: str
    """A short description of the input."""
    notes: list[str] = field(default_factory=list)
    """Lines below the title: the model, its output, how it was run."""
    picture: Callable[[], Picture | None] | None = None
    """Draws the input or the output once for each word; None for a model that has no such picture."""
    opening: Opening | None = None
    """What the page opens with; None for the overview."""

    def only(self, patterns: Sequence[str]) -> "LookResult":
        """The same with the sites that match a pattern. Raises UserError for a pattern that none matches."""
        check_patterns(dict.fromkeys(patterns), self.sight.sites, "sites")
        chosen = {site.name: site for site in self.sight if any(fnmatchcase(site.name, each) for each in patterns)}
        return replace(self, sight=Sight(chosen, self.sight.notes))

    def document(self) -> Document:
        """The page of the sight; computes everything that the page shows."""
        made = make_document(self.sight, self.tokens, title=self.title, notes=self.notes)
        known = self.opening if self.opening and self.opening.site in self.sight.sites else None
        made.opening = known or opening_on_picture(made.sites)
        return made


class ContinuedText(NamedTuple):
    """A text after which a model wrote more."""

    text: str
    """All of it."""
    ended: bool
    """Whether the model ended it."""


@runtime_checkable
class WritingViewer(Protocol):
    """A model that can be looked at and writes text too."""

    chats: bool
    """Whether it was trained to chat."""

    def write(self, text: str, count: int, chat: bool) -> ContinuedText:
        """The text with at most `count` more tokens; in a chat, what comes after the last message is the user's."""


@runtime_checkable
class ModelViewer(Protocol):
    """A model that can be looked at while it reads an input."""

    name: str
    """A short description of the model and its origin."""
    takes: InputKind

    def look(
        self, given: Input, max_length: int, sites: Sequence[str] | None = None, measure: str = "weights"
    ) -> LookResult:
        """Run the model on an input of at most `max_length` tokens and record the sites that match `sites`.

        Maps show a measure, one of `foveate.sight.measured_look.MEASURES`. Raises UserError for an unsuitable input,
        for a measure that the model does not have, and for a model that attends in a way that cannot be recorded.
        """
