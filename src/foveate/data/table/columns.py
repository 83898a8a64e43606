"""The columns that readers look for in a table, and what a user calls them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from foveate.errors import UserError


class Column(NamedTuple):
    """A column that a reader looks for in a table."""

    name: str
    """What messages and `name<TAB>name` call it."""
    titles: tuple[str, ...]
    """What else headers call it, in lower case."""
    chosen: str = ""
    """What the user calls it, who then means no other column. A column of several labels may be made of more than one:
    toxic,rude."""
    several: bool = False
    """Whether a cell may hold several labels, or none."""

    @property
    def key(self) -> str:
        """What `--columns KEY=TITLE` calls it."""
        return self.name.replace(" ", "_")

    def place_in(self, titles: Sequence[str], taken: Sequence[int] = ()) -> int | None:
        """The place of the column among titles, beside the places that are taken."""
        if self.chosen:
            exact = [place for place, title in enumerate(titles) if title == self.chosen]
            return exact[0] if exact else None
        known = [title.lower() for title in titles]
        places = [known.index(name) for name in (self.name, *self.titles) if name in known]
        return next((place for place in places if place not in taken), None)

    def places_in(self, titles: Sequence[str], taken: Sequence[int] = ()) -> tuple[int, ...] | None:
        """That place, or those of the columns that a column of several labels is made of; None where one is missing."""
        if (place := self.place_in(titles, taken)) is not None:
            return (place,)
        parts = self.parts
        return tuple(map(titles.index, parts)) if parts and {*parts} <= {*titles} else None

    @property
    def parts(self) -> list[str]:
        """The titles of the columns that it is made of, where it is made of several."""
        return self.chosen.split(",") if self.several and "," in self.chosen else []

    def missing_in(self, titles: Sequence[str]) -> str | None:
        """A title that the user named and that is not there; of columns of labels, with the flag that reads them."""
        if not self.chosen or self.chosen in titles:
            return None
        if not self.several and {*self.chosen.split(",")} <= {*titles}:
            return f"{self.chosen} (--several reads a column for each label)"
        return next((part for part in self.parts if part not in titles), None if self.parts else self.chosen)


def naming(columns: Sequence[Column]) -> str:
    """The flag by which a user says what a table calls columns."""
    return f"--columns {' '.join(f'{column.key}=TITLE' for column in columns)}"


TEXT = Column("text", ("sentence", "document", "review", "message", "content", "body"))
LABEL = Column("label", ("class", "category", "sentiment", "intent", "gold_label"))
SCORED = LABEL._replace(titles=(*LABEL.titles, "score", "similarity_score", "similarity"))
FIRST = Column("text", ("text1", "text_a", "sentence1", "sentence_a", "first", "premise", "question1"))
SECOND = Column("other text", ("text2", "text_b", "sentence2", "sentence_b", "second", "hypothesis", "question2"))
SOURCE = Column("source", ("src", "anchor", "sentence1", "premise", "query", "question"))
TARGET = Column("target", ("tgt", "translation", "positive", "sentence2", "hypothesis", "answer"))
ALIKE = Column("score", ("similarity_score", "similarity", "label", "gold_label"))
IMAGE = Column("path", ("image", "file", "filename", "file_name", "image_path", "image_file", "image_name", "imgname"))
SOUND = Column("path", ("sound", "audio", "file", "filename", "file_name", "audio_path", "audio_filepath", "wav"))
TRANSCRIPT = Column(
    "label", ("transcript", "transcription", "sentence", "text", "class", "category", "wrd", "words", "groundtruth")
)
CAPTION = Column("caption", ("text", "description", "sentence", "comment", "caption_text"))
QUESTION = Column("question", ("query",))
ANSWER = Column("answer", ("answers", "label", "response"))
CONTEXT = Column("text", ("context", "passage", "document", "paragraph"))
SPEAKER = Column("speaker", ("speaker_id", "client_id", "spk_id"))
DOCUMENT = Column("document_id", ("doc_id", "title", "article"))
PROMPT = Column("prompt", ())
BETTER = Column("better", ("chosen", "preferred"))
WORSE = Column("worse", ("rejected", "dispreferred"))


class _Choice(NamedTuple):
    """What a user says of columns: what they are called, and whether there are several labels in a row."""

    titles: Mapping[str, str]
    several: bool = False


_BETWEEN_PAIRS = re.compile(r",(?=[a-z_]+=)")
"""A comma before another pair, unlike one between the titles of several labels."""

_choice: ContextVar[_Choice | None] = ContextVar("chosen_columns", default=None)


@contextmanager
def naming_columns(pairs: Sequence[str], several: bool = False) -> Iterator[None]:
    """Decides which columns the tables that are opened in the block have by the names of "column=title", and whether a
    row may have `several` labels.

    Raises UserError for a pair that is none, or names a column twice.
    """
    before = _choice.set(_Choice(check_columns(pairs), several))
    try:
        yield
    finally:
        _choice.reset(before)


def check_columns(pairs: Sequence[str]) -> dict[str, str]:
    """The titles of columns by our names. Pairs are separate, or one text with commas between them.

    Raises UserError for what is not "column=title".
    """
    found: dict[str, str] = {}
    for pair in (part for text in pairs for part in _BETWEEN_PAIRS.split(text)):
        name, mark, title = pair.partition("=")
        if not mark or not name or not title:
            raise UserError(f"--columns takes COLUMN=TITLE, such as text=review, not '{pair}'")
        if name in found:
            raise UserError(f"--columns names {name} twice: {found[name]} and {title}")
        found[name] = title
    return found


def chosen_columns(columns: Sequence[Column], further: Sequence[Column]) -> list[Column]:
    """The columns, those that the user named with their title. Raises UserError for a name that none of them has."""
    chosen, several = _choice.get() or _Choice({})
    known = {column.key for column in (*columns, *further)}
    if odd := [name for name in chosen if name not in known]:
        raise UserError(f"--columns: there is no column '{odd[0]}' here; the columns are {', '.join(sorted(known))}")
    return [
        column._replace(chosen=chosen.get(column.key, ""), several=several and column.name == LABEL.name)
        for column in (*columns, *further)
    ]
