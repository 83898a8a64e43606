"""Answers to inputs, what they were asked with, and inputs that could not be read."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from foveate.errors import one_line, unknown


@dataclass
class NoOptions:
    """The options of a form that leaves no choice."""

    def check(self) -> None:
        """There is nothing that could be wrong."""


@dataclass(frozen=True)
class Failure:
    """An input that could not be read."""

    given: str
    """The input as it was given."""
    reason: str

    line: ClassVar[str] = ""
    """What `foveate run` prints for it, so that each input has a line."""

    def json_values(self) -> dict[str, Any]:
        """The reason, as `error`."""
        return {"error": self.reason}


@dataclass(kw_only=True)
class Answer:
    """The answer to one input. Each form that is written adds what it decided."""

    called: ClassVar[str] = "Answer"
    """What stands before it on the page of a look."""

    given: str = ""
    """The input as it was given."""
    prefix: tuple[str, ...] = ()
    """What stands before the answer in a line, such as the file that was read."""
    long: bool = False
    """Whether the input is longer than any that the model was trained on."""
    cut: bool = False
    """Whether only a part of the input was read, as much as the model has positions for."""

    @property
    def cells(self) -> list[str]:
        """What was decided, as the cells of a line; none for an empty input."""
        return []

    @property
    def line(self) -> str:
        """What `foveate run` prints: cells with tabs between them."""
        cells = self.cells
        return "\t".join(map(one_line, [*self.prefix, *cells])) if cells else ""

    @property
    def title(self) -> str:
        """What stands above a picture."""
        return " ".join(self.cells)

    @property
    def notes(self) -> list[str]:
        """Sentences for the page of a look, such as that a length limit was reached."""
        return []

    @property
    def look_line(self) -> str:
        """What stands below a look; nothing for an answer that is not a text."""
        return f"{self.called}: {line}" if (line := self.line.replace("\t", " ")) else ""

    def json_values(self) -> dict[str, Any]:
        """The answer as JSON values."""
        hidden = {part.name for part in fields(Answer)}
        own = [part for part in fields(self) if part.name not in hidden and part.repr]
        return {part.name: getattr(self, part.name) for part in own}


def with_changes(options: Any, changes: Mapping[str, Any]) -> Any:
    """Options with other values of some fields, which may be fields of their `decoding`. Raises UserError."""
    own, decoding = {one.name for one in fields(options)}, getattr(options, "decoding", None)
    of_decoding = {one.name for one in fields(decoding)} if decoding else set()
    for name in changes:
        if name not in own | of_decoding:
            raise unknown("option", name, own | of_decoding)
    if inner := {name: value for name, value in changes.items() if name not in own}:
        options = replace(options, decoding=replace(options.decoding, **inner))
    return replace(options, **{name: value for name, value in changes.items() if name in own})
