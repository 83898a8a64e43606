"""The tokenizer of a Hugging Face folder: `tokenizer.json`, or the older `vocab.json` and `merges.txt`, or XLNet's
`spiece.model`, or DeBERTa's `spm.model`."""

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from foveate.data.text.scripts import continues_word
from foveate.data.tokens.library import copy_of, decode, encode, encode_with_offsets, in_one_line, open_library
from foveate.data.tokens.public_settings import CONFIG, obey_settings, read_settings
from foveate.data.tokens.sentencepiece_model import (
    DEBERTA,
    DEBERTA_MODEL,
    MODEL,
    NAMES,
    load_deberta,
    load_sentencepiece,
)
from foveate.errors import NoTokenizer
from foveate.files import read_json, written
from foveate.limits import check_file
from foveate.special_tokens import Role, SpecialTokens

TOKENIZER, VOCABULARY, MERGES = "tokenizer.json", "vocab.json", "merges.txt"

ROLES: dict[Role, str] = {
    "pad": "pad_token",
    "start": "bos_token",
    "end": "eos_token",
    "unknown": "unk_token",
    "mask": "mask_token",
    "separator": "sep_token",
    "class": "cls_token",
}
"""What `tokenizer_config.json` calls the special tokens."""

REPLACEMENT = "\ufffd"
"""Decoded from an incomplete character."""


class PublicTokenizer:
    """Text to token ids and back, verbatim, with special tokens of its own; a `foveate.contracts.Tokenizer`."""

    def __init__(self, tokenizer: Tokenizer, config: dict[str, Any] | None = None) -> None:
        self._tokenizer = tokenizer
        self.config = config or {}
        """What `tokenizer_config.json` holds."""
        found = {role: self._named(name) for role, name in ROLES.items()}
        self.special = SpecialTokens({role: number for role, number in found.items() if number is not None})

    @classmethod
    def load(cls, folder: Path) -> "PublicTokenizer":
        """The tokenizer of a folder. Raises UserError where there is none, or it is damaged."""
        config = read_settings(folder)
        with in_one_line(f"the tokenizer in {folder} is damaged"):
            if (folder / TOKENIZER).is_file():
                return cls(obey_settings(open_library(folder / TOKENIZER), folder), config)
            if (folder / VOCABULARY).is_file() and (folder / MERGES).is_file():
                return cls(obey_settings(byte_level(str(folder / VOCABULARY), str(folder / MERGES)), folder), config)
            if (folder / MODEL).is_file():
                return cls(load_sentencepiece(folder / MODEL, config), {**NAMES, **config})
            if (folder / DEBERTA_MODEL).is_file():
                return cls(load_deberta(folder / DEBERTA_MODEL, config), {**DEBERTA, **config})
        files = f"neither {TOKENIZER} nor {VOCABULARY} and {MERGES}, nor {MODEL} or {DEBERTA_MODEL}"
        raise NoTokenizer(f"{folder} has no tokenizer: {files}")

    def __len__(self) -> int:
        return self._tokenizer.get_vocab_size()

    @property
    def largest(self) -> int:
        """The largest token id."""
        return max(self._tokenizer.get_vocab().values(), default=-1)

    def number(self, token: str) -> int | None:
        """The id of a token by its text; None if there is none."""
        return self._tokenizer.token_to_id(token)

    def _named(self, name: str) -> int | None:
        """The id of a special token by its name in `tokenizer_config.json`, such as "bos_token"."""
        value = self.config.get(name)
        value = value.get("content") if isinstance(value, dict) else value
        return self.number(value) if isinstance(value, str) else None

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of texts, with the special tokens that the model expects around a text."""
        self._tokenizer.encode_special_tokens = False
        return [encoding.ids for encoding in encode(self._tokenizer, texts)]

    def encode_inside(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of parts of a text, without special tokens; the names of these in a text are ordinary characters."""
        self._tokenizer.encode_special_tokens = True
        return [encoding.ids for encoding in encode(self._tokenizer, texts, add_special_tokens=False)]

    def spans(self, text: str, around: bool = True) -> tuple[list[int], list[tuple[int, int]]]:
        """The ids of a text and, for each, where it begins and ends in it; (0, 0) for those that were added, which are
        left out without `around`."""
        self._tokenizer.encode_special_tokens = False
        encoding = encode_with_offsets(self._tokenizer, text, add_special_tokens=around)
        return encoding.ids, encoding.offsets

    def signs(self, text: str, between: str) -> list[str]:
        """The special tokens in a text, and what else was added to the vocabulary and stands `between` messages."""
        added = self._tokenizer.get_added_tokens_decoder().values()
        names = {one.content for one in added if one.content in (text if one.special else between)}
        return sorted(names, key=len, reverse=True)

    def special_names(self) -> tuple[tuple[str, str], ...]:
        """The special tokens by their names in `tokenizer_config.json`, such as ("bos_token", "<s>")."""
        values = {name: self.config.get(name) for name in ROLES.values()}
        named = {name: value.get("content") if isinstance(value, dict) else value for name, value in values.items()}
        return tuple((name, value) for name, value in named.items() if isinstance(value, str))

    def types(self, text: str) -> list[int]:
        """Of each of these ids the segment that it belongs to, by the tokenizer's own form."""
        self._tokenizer.encode_special_tokens = False
        types: list[int] = encode_with_offsets(self._tokenizer, text).type_ids
        return types

    @property
    def joins_pairs(self) -> bool:
        """Whether two texts that are read together have tokens of their own around them."""
        return self._tokenizer.num_special_tokens_to_add(True) > 0

    def pair(self, first: str, second: str) -> tuple[list[int], list[int]]:
        """The ids of two texts in one row, and the segment of each, by the tokenizer's own form."""
        self._tokenizer.encode_special_tokens = False
        found = encode_with_offsets(self._tokenizer, first, second)
        return found.ids, found.type_ids

    def decode(self, tokens: Sequence[Sequence[int]]) -> list[str]:
        """The texts of ids, without special tokens."""
        return decode(self._tokenizer, tokens, skip_special_tokens=True)

    def pieces(self, tokens: Sequence[int]) -> list[str]:
        """Names of tokens: a word's first piece plain, a later one with a leading '·', special tokens by name."""
        special = {number for number, token in self._tokenizer.get_added_tokens_decoder().items() if token.special}
        names = [self._tokenizer.id_to_token(token) for token in tokens]
        return name_pieces(
            tokens, names, special, lambda row: decode(self._tokenizer, [row], skip_special_tokens=False)[0]
        )

    def copy(self) -> Tokenizer:
        """The library's tokenizer, to be changed."""
        return copy_of(self._tokenizer)

    def save(self, path: Path) -> None:
        """Write `tokenizer.json`."""
        self._tokenizer.save(str(path))

    def write_folder(self, folder: Path) -> None:
        """Write `tokenizer.json` and `tokenizer_config.json`."""
        with written(folder / TOKENIZER) as path:
            self.save(path)
        with written(folder / CONFIG) as path:
            path.write_text(self.config_text(), encoding="utf-8")

    def config_text(self) -> str:
        """The text of `tokenizer_config.json`."""
        first = {"tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": ["input_ids", "attention_mask"]}
        return json.dumps(first | self.config, indent=2) + "\n"


def name_pieces(
    tokens: Sequence[int], names: Sequence[str | None], special: Collection[int], decode: Callable[[list[int]], str]
) -> list[str]:
    """What tokens are called in pictures: a special token and one without characters of its own by its name in the
    vocabulary, any other by the text that it adds to the token before it."""
    before = [None if one in special else one for one in [None, *tokens]]
    pairs = [*zip(before, tokens, strict=False)]
    known = {pair: _added_text(decode, *pair) for pair in dict.fromkeys(pairs)}
    # A model may have more token ids than its tokenizer; these have no names.
    return [
        (name if pair[1] in special else known[pair] or name) or str(pair[1])
        for pair, name in zip(pairs, names, strict=True)
    ]


def _added_text(decode: Callable[[list[int]], str], before: int | None, token: int) -> str:
    """The text that a token adds to the one before it, with a leading '·' where it goes on with a word; empty for an
    incomplete character.

    Alone, many tokenizers decode a token without its space.
    """
    first = "" if before is None else decode([before])
    first = "" if REPLACEMENT in first else first
    both = decode([before, token] if first and before is not None else [token])
    if REPLACEMENT in both or not both.startswith(first):
        return ""
    added = both.removeprefix(first)
    return f"·{added}" if continues_word(first, added) else added.strip(" ") or added


def byte_level(vocabulary: Any, merges: Any, digits: bool = False, special: Iterable[str] = ()) -> Tokenizer:
    """The tokenizer of GPT-2: byte-level BPE, of files or of a table of ids and a list of pairs.

    With `digits`, each digit is a token of its own.
    """
    if isinstance(vocabulary, str):
        vocabulary = read_json(Path(vocabulary))
        check_file(Path(merges))
        lines = Path(merges).read_text(encoding="utf-8").split("\n")
        merges = [tuple(line.split(" ")) for line in lines if line and not line.startswith("#version")]
        special = ["<|endoftext|>"] if "<|endoftext|>" in vocabulary else special
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    words = pre_tokenizers.ByteLevel(add_prefix_space=False)
    apart = pre_tokenizers.Digits(individual_digits=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([apart, words]) if digits else words
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    return tokenizer
