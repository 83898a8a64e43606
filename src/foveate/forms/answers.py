"""Answers to inputs, what they were asked with, and inputs that could not be read."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
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


def answer_values(given: str, answer: Answer | Failure) -> dict[str, Any]:
    """The input and the answer to it, as JSON values; of an empty input there is no more than the input."""
    text = given.encode(errors="backslashreplace").decode()  # an argument may have bytes that are no text
    values = answer.json_values() or ({"answer": answer.line} if answer.line else {})
    return {"input": text, **{name: _plain(value) for name, value in values.items()}}


def _plain(value: Any) -> Any:
    """A value as JSON has it: dataclasses are tables of their fields."""
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if is_dataclass(value):
        return {part.name: _plain(getattr(value, part.name)) for part in fields(value)}
    return value


def with_changes(options: Any, changes: Mapping[str, Any]) -> Any:
    """Options with other values of some fields, which may be fields of their parts, such as `decoding`.

    Raises UserError for a field that does not exist.
    """
    own = {part.name for part in fields(options)}
    inner = {name: part for part in _parts(options) for name in option_names(getattr(options, part))}
    for name in changes:
        if name not in own | set(inner):
            raise unknown("option", name, own | set(inner))
    replaced = {name: value for name, value in changes.items() if name in own}
    for part in dict.fromkeys(inner[name] for name in changes if name not in own):
        of_part = {name: value for name, value in changes.items() if name not in own and inner[name] == part}
        replaced[part] = with_changes(getattr(options, part), of_part)
    return replace(options, **replaced)


def option_names(options: Any) -> list[str]:
    """The names that `with_changes` knows: of fields, and of fields of parts."""
    return [part.name for part in fields(options)] + [
        name for part in _parts(options) for name in option_names(getattr(options, part))
    ]


def _parts(options: Any) -> list[str]:
    """The fields of options that are options themselves."""
    return [part.name for part in fields(options) if is_dataclass(getattr(options, part.name))]
