"""Questions about texts: a table, or facts of a named source."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from foveate.data.dataset import Dataset, Note, without_empty
from foveate.data.layout import read_by
from foveate.data.table import ANSWER, CONTEXT, DOCUMENT, QUESTION, DataTable
from foveate.data.text.files import Paths, as_paths
from foveate.data.text.layouts import ASKED, PassageQuestion
from foveate.errors import UserError


@dataclass(frozen=True)
class TextQuestion:
    """A question about a text, and its answer."""

    place: str
    text: str
    question: str
    answer: str
    kind: str | None = None
    """What is asked for, such as "who", where it is known."""
    sentence: int | None = None
    """The number (from 0) of the sentence that has the answer, where it is known."""

    document: str = ""
    """What the text is a part of, where the table says so."""
    answers: tuple[str, ...] = ()
    """All that people answered, where several were asked: each is right."""

    def content(self) -> bytes:
        return f"{self.text}\0{self.question}\0{self.answer}".encode()


def text_questions(paths: Paths) -> Dataset[TextQuestion]:
    """A table with `text<TAB>question<TAB>answer` on each line, or a file of one of the layouts `ASKED`.

    Questions without an answer are left out. Raises UserError for anything else.
    """
    paths = as_paths(paths)
    if len(paths) != 1:
        raise UserError(f"questions about texts are one table; {len(paths)} were given")
    path, lines = paths[0], list[int | None]()
    listed = read_by(ASKED, path)
    found = _of_table(path, lines) if listed is None else [_of_layout(one) for one in listed if one.answers]
    if not found:
        raise UserError(f"{path}: there is no question in it")
    notes: list[Note] = [_count_texts]
    if several := sum(len({*one.answers}) > 1 for one in found):
        notes.append(f"{several:,} with several right answers")
    if listed is not None and len(listed) > len(found):
        notes.append(f"left out: {len(listed) - len(found):,} without an answer")
    return Dataset(path.name, found, "questions", notes, lines or None)


def _of_layout(one: PassageQuestion) -> TextQuestion:
    return TextQuestion(one.place, one.text, one.question, one.answers[0], document=one.document, answers=one.answers)


def _of_table(path: Path, lines: list[int | None]) -> list[TextQuestion]:
    found = []
    for row in without_empty(DataTable(path, (CONTEXT, QUESTION, ANSWER), further=DOCUMENT), lines):
        text, question, answer = row.cells
        found.append(TextQuestion(f"{row.place} of {path.name}", text, question, answer, document=row.origin))
    return found


def _count_texts(questions: Iterable[TextQuestion]) -> str:
    return f"{len({one.text for one in questions}):,} texts"
