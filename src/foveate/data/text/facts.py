"""Questions about texts: a table, or facts of a named source."""

from dataclasses import dataclass

from foveate.data.dataset import Dataset, without_empty
from foveate.data.table import ANSWER, CONTEXT, DOCUMENT, QUESTION, read_table
from foveate.data.text.files import Paths, as_paths
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

    def content(self) -> bytes:
        return f"{self.text}\0{self.question}\0{self.answer}".encode()


def text_questions(paths: Paths) -> Dataset[TextQuestion]:
    """A table with `text<TAB>question<TAB>answer` on each line; UserError for anything else."""
    paths = as_paths(paths)
    if len(paths) != 1:
        raise UserError(f"questions about texts are one table; {len(paths)} were given")
    path, found, lines = paths[0], list[TextQuestion](), list[int | None]()
    for row in without_empty(read_table(path, (CONTEXT, QUESTION, ANSWER), origin=DOCUMENT), lines):
        text, question, answer = row.cells
        found.append(TextQuestion(f"line {row.line} of {path.name}", text, question, answer, document=row.origin))
    if not found:
        raise UserError(f"{path}: there is no question in it")
    return Dataset(path.name, found, "questions", [f"{len({one.text for one in found}):,} texts"], lines)
