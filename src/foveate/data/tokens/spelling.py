"""The characters of models that are trained by CTC, with a blank for places where nothing is written.

Files are those of transformers' `Wav2Vec2CTCTokenizer`: `vocab.json`, and what `tokenizer_config.json` says.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from foveate.data.tokens.character_tokens import find_characters
from foveate.errors import NoTokenizer, UserError, show_value
from foveate.files import read_json, written

VOCABULARY, CONFIG = "vocab.json", "tokenizer_config.json"

BLANK, UNKNOWN, SPACE = "[PAD]", "[UNK]", "|"


@dataclass(frozen=True)
class Spelling:
    """The text of each token id."""

    pieces: tuple[str, ...] = ()
    """In the order of ids: characters, and names of special tokens."""
    blank: int = 0
    """The id that writes nothing; it parts equal characters."""
    unknown: str = UNKNOWN
    """The piece that stands for characters which are not known."""
    space: str = SPACE
    """The piece that stands for a space."""
    space_text: str = " "
    """What is written for it."""
    lowercase: bool = False
    """Pieces are upper case, texts lower case."""

    @classmethod
    def of_texts(cls, texts: Iterable[str]) -> "Spelling":
        """The spelling of these texts, the most frequent characters first."""
        return cls((BLANK, UNKNOWN, SPACE, *(one for one in find_characters(texts) if not one.isspace())))

    @classmethod
    def of_folder(cls, folder: Path, size: int) -> "Spelling":
        """The spelling of a folder, whose model has this many outputs. Raises UserError for what is damaged."""
        where = folder / VOCABULARY
        if not where.is_file():
            raise NoTokenizer(f"{folder} has no {VOCABULARY}: what its model writes is not known")
        own = read_json(where)
        known = read_json(folder / CONFIG) if (folder / CONFIG).is_file() else {}
        if any(isinstance(value, dict) for value in own.values()):
            raise UserError(f"{where} has a vocabulary for each of several languages, which foveate does not read")
        numbers = {**_added(known), **own}
        if not all(type(one) is int and one >= 0 for one in numbers.values()):
            raise UserError(f"{where} has the id {show_value(next(iter(numbers.values())))}, which cannot be")
        unknown = _name(known, "unk_token", "<unk>")
        by_id = {number: piece for piece, number in reversed(numbers.items())}
        if (blank := numbers.get(_name(known, "pad_token", "<pad>"))) is None or blank >= size:
            raise UserError(f"{where} has no token {_name(known, 'pad_token', '<pad>')}, which is the blank")
        return cls(
            tuple(by_id.get(number, unknown) for number in range(size)),
            blank,
            unknown,
            _name(known, "word_delimiter_token", SPACE),
            str(known.get("replace_word_delimiter_char", " ")),
            bool(known.get("do_lower_case", False)),
        )

    def __len__(self) -> int:
        return len(self.pieces)

    def fold(self, text: str) -> str:
        """A text in the case of the pieces, where these have one case alone."""
        letters = [piece for piece in self.pieces if len(piece) == 1 and piece.lower() != piece.upper()]
        upper, lower = (any(made(one) == one for one in letters) for made in (str.upper, str.lower))
        if self.lowercase or (upper and not lower):
            return text.upper()
        return text.lower() if lower and not upper else text

    def extend(self, texts: Iterable[str]) -> "Spelling":
        """With the characters of texts that are not known, behind the others."""
        new = find_characters(map(self.fold, texts))
        return replace(self, pieces=(*self.pieces, *(one for one in new if one not in self.pieces and one != " ")))

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of texts; a character that is not known is left out where there is no piece for such."""
        numbers = {piece: number for number, piece in reversed([*enumerate(self.pieces)])}
        numbers |= {" ": numbers[self.space]} if self.space in numbers else {}
        other = numbers.get(self.unknown)
        rows = [[numbers.get(one, other) for one in " ".join(self.fold(text).split())] for text in texts]
        return [[one for one in row if one is not None] for row in rows]

    def collapse(self, places: Sequence[int]) -> list[tuple[int, int]]:
        """The tokens of the best id at each place, each with its first place: repeated ids are one token, and blanks
        none."""
        pieces, found, first = self.pieces, list[tuple[int, int]](), 0
        for piece, group in groupby(places, key=pieces.__getitem__):
            own = list(group)
            if piece != pieces[self.blank]:
                found.append((own[0], first))
            first += len(own)
        return found

    def decode(self, tokens: Sequence[Sequence[int]]) -> list[str]:
        """The texts of collapsed tokens."""
        texts = ["".join(self.text(one) for one in own).strip() for own in tokens]
        return [text.lower() for text in texts] if self.lowercase else texts

    def text(self, token: int) -> str:
        """What a token writes."""
        piece = self.pieces[token]
        return self.space_text if piece == self.space else piece

    def write_folder(self, folder: Path) -> None:
        """Write the files of transformers' tokenizer."""
        numbers = {piece: number for number, piece in reversed([*enumerate(self.pieces)])}
        settings = {
            "tokenizer_class": "Wav2Vec2CTCTokenizer",
            "pad_token": self.pieces[self.blank],
            "unk_token": self.unknown,
            "bos_token": "<s>" if "<s>" in numbers else None,
            "eos_token": "</s>" if "</s>" in numbers else None,
            "word_delimiter_token": self.space,
            "replace_word_delimiter_char": self.space_text,
            "do_lower_case": self.lowercase,
        }
        for name, values in ((VOCABULARY, numbers), (CONFIG, settings)):
            with written(folder / name) as path:
                path.write_text(json.dumps(values, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _added(known: Mapping[str, Any]) -> dict[str, int]:
    """The tokens that `tokenizer_config.json` has beside the vocabulary."""
    rows = known.get("added_tokens_decoder")
    items = rows.items() if isinstance(rows, Mapping) else ()
    return {str(one.get("content")): int(number) for number, one in items if isinstance(one, Mapping)}


def _name(known: Mapping[str, Any], role: str, usual: str) -> str:
    """The text of a token that a role names."""
    value = known.get(role)
    value = value.get("content") if isinstance(value, Mapping) else value
    return value if isinstance(value, str) else usual
