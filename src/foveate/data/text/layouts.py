"""Layouts of texts: SQuAD's questions, and the tagged words of CoNLL 2003 and CoNLL-U."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from foveate import limits
from foveate.config import from_dict
from foveate.data.layout import DataLayout, named_parts
from foveate.data.text.files import read_sentences
from foveate.errors import UserError
from foveate.files import is_file, read_json_value

DOCUMENT_START = "-DOCSTART-"
"""How a document begins in CoNLL 2003."""


class TaggedLine(NamedTuple):
    """A word and its tag, with the number of its line."""

    line: int
    word: str
    tag: str


class PassageQuestion(NamedTuple):
    """A question about a text."""

    place: str
    text: str
    question: str
    answers: tuple[str, ...]
    document: str


@dataclass
class SquadAnswer:
    """An answer of SQuAD (Rajpurkar et al. 2016)."""

    text: str


@dataclass
class SquadQuestion:
    """A question; of version 2 it may have no answer."""

    id: str
    question: str
    answers: tuple[SquadAnswer, ...]


@dataclass
class SquadParagraph:
    """A text with its questions."""

    context: str
    qas: tuple[SquadQuestion, ...]


@dataclass
class SquadArticle:
    """A document."""

    paragraphs: tuple[SquadParagraph, ...]
    title: str = ""


def _squad(path: Path) -> list[PassageQuestion] | None:
    if path.suffix.lower() != ".json" or not is_file(path):
        return None
    content = read_json_value(path, limits.TABLE)
    articles = content.get("data") if isinstance(content, dict) else None
    if not isinstance(articles, list) or not all(isinstance(one, dict) and "paragraphs" in one for one in articles):
        return None
    found = []
    for number, values in enumerate(articles):
        try:
            article = from_dict(SquadArticle, values, f"data[{number}]", others=True)
        except UserError as error:
            raise UserError(f"{path} is not a file of SQuAD: {error}") from None
        for paragraph in article.paragraphs:
            for one in paragraph.qas:
                answers = tuple(answer.text for answer in one.answers)
                place = f"question {one.id} of {path.name}"
                found.append(PassageQuestion(place, paragraph.context, one.question, answers, article.title))
    return found


def _conll_u(path: Path) -> list[list[TaggedLine]] | None:
    """The forms and the universal parts of speech (UPOS); tokens of several words, and empty words, are left out."""
    if not re.fullmatch(r".*\.conllu(\.gz)?", path.name, re.I) or not is_file(path):
        return None
    return [*_sentences(path, _conll_u_line)]


def _conll_u_line(where: str, line: str) -> tuple[str, str] | None:
    if line.startswith("#"):
        return None
    cells = line.split("\t")
    if len(cells) != 10:
        raise UserError(f"{where}: {len(cells)} cells, but a line of CoNLL-U has 10, with tabs between them")
    return (cells[1], cells[3]) if cells[0].isdigit() else None


def _conll(path: Path) -> list[list[TaggedLine]] | None:
    """The first and the last cell of each line: the word and the name that it is a part of."""
    if not is_file(path):
        return None
    named = re.fullmatch(r"eng\.(train|test[abc])|.*\.conll(03|2003)?(\.gz)?", path.name, re.I)
    if not named and not next(read_sentences(path), "").startswith(DOCUMENT_START):
        return None
    return [*_sentences(path, _conll_line)]


def _conll_line(where: str, line: str) -> tuple[str, str] | None:
    cells = line.split()
    if cells[0] == DOCUMENT_START:
        return None
    if len(cells) < 2:
        raise UserError(f"{where}: one cell, but a line of CoNLL 2003 is a word, other cells and its tag")
    return cells[0], cells[-1]


def _sentences(path: Path, read: Callable[[str, str], tuple[str, str] | None]) -> Iterator[list[TaggedLine]]:
    sentence: list[TaggedLine] = []
    for number, line in enumerate(read_sentences(path), 1):
        if line and (found := read(f"{path}, line {number}", line)) is not None:
            sentence.append(TaggedLine(number, *found))
        elif not line and sentence:
            yield sentence
            sentence = []
    if sentence:
        yield sentence


ASKED: tuple[DataLayout[list[PassageQuestion]], ...] = (
    DataLayout(
        "SQuAD",
        "train-v1.1.json, dev-v1.1.json (or v2.0, whose questions without an answer are left out)",
        lambda folder: named_parts(folder, r"train-v[\d.]+\.json", r"dev-v[\d.]+\.json"),
        _squad,
    ),
)

TAGGED: tuple[DataLayout[list[list[TaggedLine]]], ...] = (
    DataLayout(
        "CoNLL-U",
        "en_ewt-ud-train.conllu, en_ewt-ud-dev.conllu, en_ewt-ud-test.conllu",
        lambda folder: named_parts(folder, *(rf"(.*[-_])?{name}\.conllu" for name in ("train", "dev", "test"))),
        _conll_u,
    ),
    DataLayout(
        "CoNLL 2003",
        "eng.train, eng.testa, eng.testb; or train.txt, valid.txt, test.txt that begin with -DOCSTART-",
        lambda folder: (
            named_parts(folder, r"eng\.train", r"eng\.testa", r"eng\.testb")
            or named_parts(folder, *(rf"({name})\.(txt|conll)" for name in ("train", "valid|dev", "test")))
        ),
        _conll,
    ),
)
