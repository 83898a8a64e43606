"""Tokenizers whose pieces are SentencePiece's and whose ids are those of a `vocab.json`: Marian's and M2M-100's."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tokenizers import Tokenizer

from foveate.data.text.scripts import continues_word
from foveate.data.tokens.library import copy_of, encode, encode_with_offsets
from foveate.data.tokens.sentencepiece_model import SPACE
from foveate.data.tokens.text_tokenizer import ROLES, TextTokenizer
from foveate.errors import UserError, show_value
from foveate.files import parse_json
from foveate.special_tokens import Role

VOCABULARY, ENDS = "foveate_vocabulary", "foveate_ends"
"""What a saved file calls the ids of pieces, and the ids around a text."""

CODE = (">>", "<<")
"""What is around the code of a language that a text for Marian begins with."""


class PieceTokenizer(TextTokenizer):
    """Text to pieces of SentencePiece and on to ids, and back; a `foveate.contracts.Tokenizer`."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        roles: Mapping[Role, int],
        vocabulary: Mapping[str, int],
        begin: Sequence[int] = (),
        end: Sequence[int] = (),
    ) -> None:
        self._around = tuple(begin), tuple(end)
        super().__init__(tokenizer, roles)
        self.vocabulary = dict(vocabulary)
        self._names = {number: piece for piece, number in self.vocabulary.items()}

    def _ends(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return self._around

    def __len__(self) -> int:
        return self.largest + 1

    @property
    def largest(self) -> int:
        return max(self.vocabulary.values(), default=-1)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        codes, rest = zip(*map(self._split_code, texts), strict=True) if texts else ((), ())
        found = encode(self._tokenizer, rest, add_special_tokens=False)
        return [[*code, *self._numbers(text, one.ids)] for code, text, one in zip(codes, rest, found, strict=True)]

    def _numbers(self, text: str, pieces: Sequence[int]) -> list[int]:
        """The ids of a text's pieces. One that the model of pieces does not know may be in the vocabulary."""
        names = [str(self._tokenizer.id_to_token(piece)) for piece in pieces]
        if any(name not in self.vocabulary or name == self._names[self.special.unknown] for name in names):
            names = encode_with_offsets(self._tokenizer, text, add_special_tokens=False).tokens
        return [self.vocabulary.get(name, self.special.unknown) for name in names]

    def _split_code(self, text: str) -> tuple[list[int], str]:
        """The id of the language that a text begins with, and the rest of the text."""
        before, behind = CODE
        code, sign, rest = text.partition(behind)
        number = self.vocabulary.get(code + sign)
        return ([number], rest) if number is not None and code.startswith(before) else ([], text)

    def decode(self, tokens: Sequence[Sequence[int]]) -> list[str]:
        silent = {*self.special.ids.values(), *self.begin, *self.end}
        rows = ([self._names.get(token, "") for token in row if token not in silent] for row in tokens)
        return ["".join(row).replace(SPACE, " ").strip() for row in rows]

    def pieces(self, tokens: Sequence[int]) -> list[str]:
        names, before = [], ""
        for token in tokens:
            name = self._names.get(token, str(token))
            inside = not name.startswith(SPACE) and token not in self.special.ids.values()
            text = name.removeprefix(SPACE) or name
            names.append(f"\u00b7{text}" if inside and before and continues_word(before, text) else text)
            before = text
        return names

    def save(self, path: Path) -> None:
        """Write one file of the pieces and their ids."""
        own = {ROLES: dict(self.special.ids), VOCABULARY: self.vocabulary, ENDS: list(map(list, self._around))}
        table = {**own, **parse_json(self._tokenizer.to_str(), path)}
        path.write_text(json.dumps(table, ensure_ascii=False), encoding="utf-8")

    def with_ends(
        self, begin: Sequence[int], end: Sequence[int], roles: Mapping[Role, int] | None = None
    ) -> "PieceTokenizer":
        ids = {**self.special.ids, **(roles or {})}
        return PieceTokenizer(copy_of(self._tokenizer), ids, self.vocabulary, begin, end)


def ids_of(values: object, where: Path) -> dict[str, int]:
    """The ids of pieces. Raises UserError for what is no table of them."""
    if not isinstance(values, dict) or not all(type(number) is int and number >= 0 for number in values.values()):
        raise UserError(f"{where} is not a table of pieces and their numbers")
    return {str(piece): number for piece, number in values.items()}


def ends_of(values: object, where: Path) -> tuple[list[int], list[int]]:
    """The ids before and after a text. Raises UserError for what is none."""
    if isinstance(values, list) and len(values) == 2 and all(isinstance(part, list) for part in values):
        begin, end = values
        if all(type(one) is int and one >= 0 for one in (*begin, *end)):
            return begin, end
    raise UserError(f"{where} has the {ENDS} {show_value(values)}, which cannot be")
