"""The tokens that tell a Whisper what to write, and the words of those that it writes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foveate.data.text.scripts import begins_word, word_pattern
from foveate.data.tokens.public_tokenizer import REPLACEMENT, PublicTokenizer
from foveate.errors import UserError, unknown

START, END, SILENT = "<|startoftranscript|>", "<|endoftext|>", "<|notimestamps|>"

MULTILINGUAL = 51865
"""Size of the smallest vocabulary of a model for several languages; that of models for English alone is smaller."""


LONGEST_CHARACTER = 4
"""Tokens that a character takes at most: one for each of its bytes."""


@dataclass
class LanguageOptions:
    """What the model is told of a sound."""

    language: str | None = None
    """Code of the language that is spoken, such as "en". By default a model for several languages finds it itself."""
    translate: bool = False
    """Write what is said in English. Only for models for several languages."""

    def check(self) -> None:
        """Values are checked by the model."""


class WhisperTokens:
    """The tokens of a folder that have a meaning for the model."""

    def __init__(self, tokenizer: PublicTokenizer, values: Mapping[str, Any], vocabulary: int, folder: Path) -> None:
        """`values` are those of `config.json` and `generation_config.json`. Raises UserError for missing tokens."""
        self.tokenizer, self.values, self.vocabulary, self.folder = tokenizer, values, vocabulary, folder
        self.start, self.end, self.silent = (self.number(name) for name in (START, END, SILENT))

    def number(self, token: str) -> int:
        """The number of a token. Raises UserError if the tokenizer or the model does not have it."""
        number = self.tokenizer.number(token)
        if number is None:
            raise UserError(f"the tokenizer in {self.folder} has no {token}: it is not that of a Whisper")
        if number >= self.vocabulary:
            raise UserError(f"the token {token} has the number {number}, but the model {self.vocabulary}")
        return number

    @property
    def multilingual(self) -> bool:
        """Whether the model knows several languages."""
        return bool(self.values.get("is_multilingual", self.vocabulary >= MULTILINGUAL))

    @property
    def languages(self) -> dict[str, int]:
        """The token of each language, by its code."""
        named = self.values.get("lang_to_id")
        if isinstance(named, dict):
            return {str(name).strip("<|>"): int(number) for name, number in named.items()}
        codes = re.findall(r"<\|([a-z]{2,3})\|>", " ".join(self.tokenizer.pieces(range(self.start, self.silent))))
        return {code: number for code in codes if (number := self.tokenizer.number(f"<|{code}|>")) is not None}

    def check(self, options: LanguageOptions) -> None:
        """Raise UserError for a language that the model does not know."""
        if (options.translate or options.language is not None) and not self.multilingual:
            raise UserError(f"{self.folder} knows English alone: leave out --language and --translate")
        if options.language is not None and options.language not in self.languages:
            raise unknown("language", options.language, self.languages)

    def prompt(self, language: str | None, translate: bool) -> list[int]:
        """The tokens before a transcript. The language is None for a model of English alone."""
        if language is None:
            return [self.start, self.silent]
        task = self.number("<|translate|>" if translate else "<|transcribe|>")
        return [self.start, self.languages[language], task, self.silent]

    def words(self, tokens: Sequence[int]) -> Iterator[tuple[str, int]]:
        """The words of tokens, each with its number of tokens.

        A token that begins with a space begins a word; in a script without spaces, one that begins with a letter.
        """
        word, first, place = "", 0, 0
        while place < len(tokens):
            text, count = self._characters(tokens[place:])
            if word and begins_word(word, text):
                yield word.strip(), place - first
                word, first = "", place
            word += text
            place += count
        if word:
            yield word.strip(), place - first

    def _characters(self, tokens: Sequence[int]) -> tuple[str, int]:
        """The text of the first of some tokens, with as many of the next ones as its last character takes."""
        first: str = self.tokenizer.decode([tokens[:1]])[0]
        for count in range(2, min(LONGEST_CHARACTER, len(tokens)) + 1) if REPLACEMENT in first else ():
            text: str = self.tokenizer.decode([tokens[:count]])[0]
            if REPLACEMENT not in text:
                return text, count
        return first, 1


def plain_words(text: str) -> str:
    """A text in small letters, without signs other than apostrophes within words."""
    return " ".join(word_pattern("'").findall(text.lower().replace("’", "'"))).replace(" '", " ").strip("'")
