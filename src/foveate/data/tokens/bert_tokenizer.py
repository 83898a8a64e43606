"""The tokenizer of a BERT or RoBERTa in a Hugging Face folder: `tokenizer.json`, BERT's older `vocab.txt`,
or DeBERTa's `spm.model`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

from foveate.data.tokens.library import encode, in_one_line, open_library
from foveate.data.tokens.piece_tokenizer import ENDS, PieceTokenizer, ends_of, ids_of
from foveate.data.tokens.piece_tokenizer import VOCABULARY as PIECES
from foveate.data.tokens.public_settings import obey_settings, read_settings
from foveate.data.tokens.sentencepiece_model import DEBERTA_MODEL, load_deberta
from foveate.data.tokens.text_tokenizer import CHAT, TextTokenizer, chat_of_file, roles_of
from foveate.data.tokens.text_tokenizer import ROLES as SAVED_ROLES
from foveate.data.tokens.tokenizers import SubwordTokenizer, is_own, load_tokenizer, read_tokenizer
from foveate.errors import NoTokenizer, UserError
from foveate.files import read_json
from foveate.limits import check_file
from foveate.special_tokens import Role

TOKENIZER, VOCABULARY = "tokenizer.json", "vocab.txt"

CLASS = ("[CLS]", "<s>")
"""What a text begins with, in BERT's and in RoBERTa's vocabulary."""

SEPARATOR = ("[SEP]", "</s>")
"""What a text ends with."""

ROLES: dict[Role, tuple[str, str]] = {
    "pad": ("[PAD]", "<pad>"),
    "start": CLASS,
    "end": SEPARATOR,
    "unknown": ("[UNK]", "<unk>"),
    "mask": ("[MASK]", "<mask>"),
    "separator": SEPARATOR,
    "class": CLASS,
}
"""The names of the special tokens in BERT's and in RoBERTa's vocabulary."""

_CONTINUES = "##"
"""Begins the later pieces of a word."""


class BertTokenizer(TextTokenizer):
    """The tokenizer of a BERT or RoBERTa, whose special tokens have known names."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        found = {role: _number(tokenizer, names) for role, names in ROLES.items()}
        super().__init__(tokenizer, {role: number for role, number in found.items() if number is not None})
        if "start" not in self.special or "end" not in self.special:
            raise UserError("it has neither [CLS] and [SEP] nor <s> and </s>")

    def _ends(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Of files without a form too."""
        return (self.special.start,), (self.special.end,)

    @property
    def around_pairs(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """RoBERTa has two separators between its texts (Liu et al. 2019)."""
        twice = self._tokenizer.id_to_token(self.begin[0]) == "<s>"
        return self.begin, self.end * 2 if twice else self.end, self.end

    def save(self, path: Path) -> None:
        """Write `tokenizer.json`; the names of its special tokens say what they are."""
        self._tokenizer.save(str(path))

    @classmethod
    def load(cls, folder: Path) -> "BertTokenizer":
        """The tokenizer of a folder. Raises UserError where there is none, or it is damaged."""
        with in_one_line(f"the tokenizer in {folder} cannot be read"):
            if (folder / TOKENIZER).is_file():
                return cls(obey_settings(open_library(folder / TOKENIZER), folder))
            if (folder / VOCABULARY).is_file():
                return cls(obey_settings(_word_pieces(folder / VOCABULARY), folder))
            if (folder / DEBERTA_MODEL).is_file():
                return cls(load_deberta(folder / DEBERTA_MODEL, read_settings(folder)))
        raise NoTokenizer(f"{folder} has no tokenizer: neither {TOKENIZER} nor {VOCABULARY} nor {DEBERTA_MODEL}")

    def encode_question(self, text: str) -> list[int]:
        """The ids of a text between those of its begin and end, in which [MASK] and [SEP] are not ordinary text."""
        if "mask" not in self.special:
            raise UserError("the vocabulary has neither [MASK] nor <mask>")
        names = {"[MASK]": self.special.mask, "[SEP]": self.special.separator}
        for name, number in names.items():
            text = text.replace(name, str(self._tokenizer.id_to_token(number)))
        self._tokenizer.encode_special_tokens = False
        (found,) = encode(self._tokenizer, [text], add_special_tokens=False)
        self._tokenizer.encode_special_tokens = True
        return [*self.begin, *found.ids, *self.end]

    def token_types(self, row: Sequence[int]) -> list[int]:
        """Of each token 0 for the first text and, in BERT, 1 for a second one behind the first separator."""
        if self._tokenizer.token_to_id(CLASS[0]) is None or self.end[0] not in row:
            return [0] * len(row)
        first = list(row).index(self.end[0]) + 1
        return [0] * first + [1] * (len(row) - first)

    def pieces(self, tokens: Sequence[int]) -> list[str]:
        if not isinstance(self._tokenizer.model, models.WordPiece):
            return super().pieces(tokens)
        names = [self._tokenizer.id_to_token(token) or str(token) for token in tokens]
        return [f"·{name[2:]}" if name.startswith(_CONTINUES) and name != _CONTINUES else name for name in names]


def load_text_tokenizer(path: Path) -> SubwordTokenizer | TextTokenizer:
    """Reads what the `save` of any tokenizer wrote. Raises UserError for what is missing, damaged or another's."""
    saved = read_json(path) if path.is_file() else {}
    if (roles := saved.get(SAVED_ROLES)) is not None:
        if PIECES in saved:
            ids, ends = ids_of(saved[PIECES], path), ends_of(saved.get(ENDS), path)
            return PieceTokenizer(read_tokenizer(path), roles_of(roles, path), ids, *ends)
        return TextTokenizer(read_tokenizer(path), roles_of(roles, path), chat_of_file(saved.get(CHAT), path))
    tokenizer = read_tokenizer(path)
    if not is_own(tokenizer) and _number(tokenizer, CLASS) is not None and _number(tokenizer, SEPARATOR) is not None:
        return BertTokenizer(tokenizer)
    return load_tokenizer(path)


def _number(tokenizer: Tokenizer, names: Sequence[str]) -> int | None:
    return next((number for name in names if (number := tokenizer.token_to_id(name)) is not None), None)


def _word_pieces(vocabulary: Path) -> Tokenizer:
    """BERT's tokenizer (WordPiece, Schuster and Nakajima 2012) with the vocabulary of a file, one entry a line, for
    lower case."""
    check_file(vocabulary)
    entries = vocabulary.read_text(encoding="utf-8").split("\n")
    table: Any = {entry: number for number, entry in enumerate(entries) if entry}
    tokenizer = Tokenizer(models.WordPiece(vocab=table, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix=_CONTINUES)
    tokenizer.add_special_tokens([name for name in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]") if name in table])
    return tokenizer
