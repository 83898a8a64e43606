"""The tokenizers of a Hugging Face folder that reads one text and writes another: one for each side.

What stands around a text is the tokenizer's own form, in which a model of many languages names the language.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import AddedToken

from foveate.data.tokens.library import in_one_line
from foveate.data.tokens.piece_tokenizer import CODE, PieceTokenizer, ids_of
from foveate.data.tokens.public_settings import read_settings
from foveate.data.tokens.public_tokenizer import MERGES, TOKENIZER, PublicTokenizer
from foveate.data.tokens.sentencepiece_model import MODEL, piece_tokenizer
from foveate.data.tokens.text_tokenizer import TextTokenizer
from foveate.errors import NoTokenizer, UserError, show_value, unknown
from foveate.files import read_json
from foveate.special_tokens import Role

VOCABULARY, TARGET_VOCABULARY = "vocab.json", "target_vocab.json"

SOURCE_PIECES, TARGET_PIECES, BOTH_PIECES = "source.spm", "target.spm", "sentencepiece.bpe.model"

TARGET = "target_tokenizer"
"""The folder with the tokenizer of the target, where it is another, in what foveate exports."""

NAMES: dict[Role, tuple[str, str]] = {
    "pad": ("pad_token", "<pad>"),
    "end": ("eos_token", "</s>"),
    "unknown": ("unk_token", "<unk>"),
}
"""The special tokens of a `vocab.json`: their names in `tokenizer_config.json`, and usual ones."""

IDS: dict[Role, str] = {"start": "decoder_start_token_id", "end": "eos_token_id", "pad": "pad_token_id"}
"""The special tokens that the configs of a model name by their ids, which count more."""

LANGUAGE_LAST = ("MBartTokenizer",)
"""Tokenizers with the language behind a text that is read; a text that is written begins with it."""

LANGUAGE_FIRST = ("MBart50Tokenizer", "NllbTokenizer", "M2M100Tokenizer")
"""Tokenizers with the language before a text, on both sides."""


@dataclass
class SideTokenizers:
    """The tokenizers of both sides, and the languages that they know."""

    source: TextTokenizer
    target: TextTokenizer
    languages: Mapping[str, int]
    """The token of each language; empty for a model of one pair of languages, or of one language."""
    kind: str = ""
    """The class of transformers that a model of many languages has."""

    def with_languages(self, source: str | None, target: str | None) -> "SideTokenizers":
        """Tokenizers of a text in one language and its translation into another.

        Raises UserError for a language that there is not, or where there are none.
        """
        found = SideTokenizers(self.source, self.target, self.languages, self.kind)
        end = (self.target.special.end,)
        if source is not None:
            code = self._number(source)
            first, last = self._layout(code, end)
            found.source = self.source.with_ends(first, last)
        if target is not None:
            code = self._number(target)
            if self.kind in LANGUAGE_LAST:
                found.target = self.target.with_ends((), end, {"start": code})
            elif self.kind in LANGUAGE_FIRST:
                found.target = self.target.with_ends((code,), end)
            else:
                found.source = self.source.with_ends((code,), self.source.end)
        return found

    def _layout(self, code: int, end: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
        if self.kind in LANGUAGE_LAST:
            return (), (*end, code)
        if self.kind in LANGUAGE_FIRST:
            return (code,), end
        raise UserError("the model reads one language: leave out --source-language")

    def knows(self, *languages: str) -> bool:
        """Returns whether there is a token of each language."""
        return all(any(name in self.languages for name in self._spellings(one)) for one in languages)

    @staticmethod
    def _spellings(language: str) -> tuple[str, ...]:
        before, behind = CODE
        return language, f"__{language}__", f"{before}{language}{behind}"

    def _number(self, language: str) -> int:
        if not self.languages:
            raise UserError(f"the model has no choice of languages, so none can be '{language}'")
        for name in self._spellings(language):
            if name in self.languages:
                return self.languages[name]
        raise unknown("language", language, [one.strip("_<>") for one in self.languages])


def open_sides(folder: Path, values: Mapping[str, Any]) -> SideTokenizers:
    """The tokenizers of a folder; `values` are those of its configs.

    Raises UserError where there are none, or they are damaged.
    """
    settings = read_settings(folder)
    kind = str(settings.get("tokenizer_class", "")).removesuffix("Fast")
    with in_one_line(f"the tokenizer in {folder} is damaged"):
        if (folder / TOKENIZER).is_file():
            found = _of_one(TextTokenizer.of(PublicTokenizer.load(folder)), folder, settings, kind)
            if (folder / TARGET / TOKENIZER).is_file():
                found.target = TextTokenizer.of(PublicTokenizer.load(folder / TARGET))
        elif (folder / SOURCE_PIECES).is_file() and (folder / VOCABULARY).is_file():
            found = _marian(folder, settings)
        elif (folder / BOTH_PIECES).is_file() and (folder / VOCABULARY).is_file():
            found = _pieces_and_languages(folder, settings)
        elif (folder / MODEL).is_file() and values.get("model_type") in ("t5", "mt5"):
            found = _of_one(_t5(folder, settings), folder, settings, kind)
        elif (folder / VOCABULARY).is_file() and (folder / MERGES).is_file():
            found = _of_one(TextTokenizer.of(PublicTokenizer.load(folder)), folder, settings, kind)
        else:
            known = f"{TOKENIZER}, {SOURCE_PIECES} and {VOCABULARY}, nor {BOTH_PIECES} and {VOCABULARY}"
            raise NoTokenizer(f"{folder} has no tokenizer that foveate reads: neither {known}")
    roles: dict[Role, int] = {
        role: number for role, name in IDS.items() if (number := single_id(values, name, folder)) is not None
    }
    if "start" not in roles and "start" not in found.target.special:
        raise UserError(f"{folder} names no decoder_start_token_id, with which a text that is written begins")
    end = found.target.end or (roles.get("end", found.target.special.ids.get("end", 0)),)
    # Of many languages, that of the file is of texts that are read.
    found.target = found.target.with_ends(
        () if found.kind else found.target.begin, end[:1] if found.kind else end, roles
    )
    return found.with_languages(*(_default_language(settings, name, found) for name in ("src_lang", "tgt_lang")))


def single_id(values: Mapping[str, Any], name: str, folder: Path) -> int | None:
    """An id of `generation_config.json` or `config.json`; None where there is none. UserError for several."""
    value = values.get(name)
    value = value[0] if isinstance(value, list) and len(value) == 1 else value
    if value is not None and (type(value) is not int or value < 0):
        raise UserError(f"{folder} has the {name} {show_value(value)}; foveate obeys one token")
    return value


def _default_language(settings: Mapping[str, Any], name: str, found: SideTokenizers) -> str | None:
    """A language that `tokenizer_config.json` names, of a model that has a choice by its tokenizer."""
    value = settings.get(name)
    chooses = found.kind in (*LANGUAGE_FIRST, *LANGUAGE_LAST)
    return value if chooses and isinstance(value, str) and found.languages else None


def _of_one(own: TextTokenizer, folder: Path, settings: Mapping[str, Any], kind: str) -> SideTokenizers:
    """One tokenizer for both sides."""
    numbers = own.copy().get_vocab(with_added_tokens=True)
    many = kind in (*LANGUAGE_FIRST, *LANGUAGE_LAST)
    named = _additional(folder, settings) if many else ()
    if many and settings.get("legacy_behaviour"):
        raise UserError(f"{folder} has legacy_behaviour true in tokenizer_config.json, which foveate does not obey")
    return SideTokenizers(own, own, {name: numbers[name] for name in named if name in numbers}, kind if many else "")


def _additional(folder: Path, settings: Mapping[str, Any]) -> list[str]:
    """The additional special tokens of a folder."""
    file = folder / "special_tokens_map.json"
    for table in (settings, read_json(file) if file.is_file() else {}):
        for name in ("extra_special_tokens", "additional_special_tokens"):
            if isinstance(named := table.get(name), list) and named:
                texts = [one.get("content") if isinstance(one, dict) else one for one in named]
                return [text for text in texts if isinstance(text, str)]
    return []


def _roles(ids: Mapping[str, int], settings: Mapping[str, Any], where: Path) -> dict[Role, int]:
    found: dict[Role, int] = {}
    for role, (name, usual) in NAMES.items():
        value = settings.get(name, usual)
        text = value.get("content") if isinstance(value, dict) else value
        if text not in ids:
            raise UserError(f"{where} has no {name} {show_value(text)}")
        found[role] = ids[str(text)]
    return found


def _marian(folder: Path, settings: Mapping[str, Any]) -> SideTokenizers:
    """Marian's: a model of pieces for each side, and one vocabulary or two."""
    tables = [folder / VOCABULARY] * 2
    if settings.get("separate_vocabs"):
        tables[1] = folder / TARGET_VOCABULARY
    sides = []
    for table, pieces in zip(tables, (SOURCE_PIECES, TARGET_PIECES), strict=True):
        ids = ids_of(read_json(table), table)
        roles = _roles(ids, settings, table)
        sides.append(PieceTokenizer(piece_tokenizer(folder / pieces), roles, ids, (), (roles["end"],)))
    before, behind = CODE
    source, target = sides
    codes = [name for name in source.vocabulary if name.startswith(before) and name.endswith(behind)]
    return SideTokenizers(source, target, {name: source.vocabulary[name] for name in codes})


def _pieces_and_languages(folder: Path, settings: Mapping[str, Any]) -> SideTokenizers:
    """M2M-100's: the languages follow the vocabulary."""
    ids = ids_of(read_json(folder / VOCABULARY), folder / VOCABULARY)
    roles, size = _roles(ids, settings, folder / VOCABULARY), max(ids.values(), default=-1) + 1
    named = [name for name in _additional(folder, settings) if name.startswith("__")]
    if not named:
        raise UserError(f"{folder} names no languages, such as __en__, in special_tokens_map.json")
    languages = {name: size + number for number, name in enumerate(named)}
    own = PieceTokenizer(piece_tokenizer(folder / BOTH_PIECES), roles, ids | languages, (), (roles["end"],))
    found = SideTokenizers(own, own, languages, "M2M100Tokenizer")
    return found.with_languages(None if settings.get("src_lang") else "en", None)


def _t5(folder: Path, settings: Mapping[str, Any]) -> TextTokenizer:
    """T5's pieces, and behind them the tokens that stand for gaps, the last one first."""
    tokenizer = piece_tokenizer(folder / MODEL)
    count = settings.get("extra_ids", 100)
    if type(count) is not int or not 0 <= count <= 10_000:
        raise UserError(f"{folder} has the extra_ids {show_value(count)}, which cannot be")
    gaps = [f"<extra_id_{number}>" for number in reversed(range(count))]
    tokenizer.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in gaps])
    roles: dict[Role, int] = {}
    for role, (_, usual) in NAMES.items():
        if (number := tokenizer.token_to_id(usual)) is None:
            raise UserError(f"{folder / MODEL} has no token {usual}")
        roles[role] = number
    tokenizer.add_special_tokens([name for _, name in NAMES.values()])
    return TextTokenizer(tokenizer, roles).with_ends((), (roles["end"],))
