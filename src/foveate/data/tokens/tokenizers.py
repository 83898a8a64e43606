"""Vocabularies of subwords, words and characters, by the `tokenizers` library, behind foveate's own token ids."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from foveate.data.text.scripts import continues_word, in_word
from foveate.data.tokens.library import copy_of, decode, open_library, split_into_units
from foveate.data.tokens.word_cache import WordCache
from foveate.data.tokens.word_counts import WordCounts
from foveate.errors import UserError
from foveate.special_tokens import LEARNED, SpecialTokens

SPACE = "▁"
"""Stands for the space before a word, as in SentencePiece; a '▁' of the text itself is read as a space."""

SPECIAL = ("<pad>", "<start>", "<end>", "⁇")
"""The texts of the ids of padding, start, end and unknown: LEARNED. The same characters inside a sentence are text."""

UNKNOWN = SPECIAL[LEARNED.unknown]

MASK = "[MASK]"
"""The text of the mask token, in the vocabularies that have one."""

WORDS = rf"{SPACE}?[\p{{L}}\p{{M}}]+(['’](?=\p{{L}}))?|{SPACE}?\p{{N}}|{SPACE}?[^\p{{L}}\p{{M}}\p{{N}}{SPACE}]+|{SPACE}"
"""What no subword reaches across: a word (an apostrophe inside ends it, so that l'|homme and l'|eau share an article),
a single digit, a run of punctuation; each with the space before it."""

CHARACTERS = "."

PIECES = rf"{SPACE}[^{SPACE}]+"
"""Splits at spaces."""

JOINT = "@@( |$)"
"""The end of a piece that does not end its word, as subword-nmt writes it: "Was@@ ser@@ ball"."""


class SubwordTokenizer:
    """Text to ids of subwords (or of words, or of characters) and back; a `foveate.contracts.Tokenizer`.

    Text is brought to NFC and single spaces first (a no-break space becomes a plain one, surrounding space is dropped);
    apart from that `decode` gives back what `encode` read. A run of characters that the training text did not have is
    one unknown token, which decodes to '⁇'.
    """

    def __init__(self, tokenizer: Tokenizer, report: str = "") -> None:
        self.report = report  # what the vocabulary was not learned from
        tokenizer.encode_special_tokens = True  # a user who writes "<end>" means these five characters
        self._tokenizer = tokenizer
        mask = tokenizer.token_to_id(MASK)
        self.special = (
            LEARNED if mask is None else SpecialTokens({**LEARNED.ids, "mask": mask, "separator": LEARNED.end})
        )
        self._words = WordCache(tokenizer)

    def __len__(self) -> int:
        return self._tokenizer.get_vocab_size()

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return self._words.encode(texts)

    def decode(self, tokens: Sequence[Sequence[int]]) -> list[str]:
        special = self.special
        silent = (special.pad, special.start, special.end)
        shown = [[token for token in sentence if token not in silent] for sentence in tokens]
        return decode(self._tokenizer, shown, skip_special_tokens=False)

    def pieces(self, tokens: Sequence[int]) -> list[str]:
        texts = [self._tokenizer.id_to_token(token) or UNKNOWN for token in tokens]
        return [_piece_name(text, before) for text, before in zip(texts, ["", *texts], strict=False)]

    def units(self, text: str) -> list[str]:
        """What no subword reaches across, see WORDS: words, each with '▁' for the space before it."""
        return split_into_units(self._tokenizer, text)

    def vocabulary(self) -> dict[str, int]:
        """The number of each entry."""
        return self._tokenizer.get_vocab()

    def save(self, path: Path) -> None:
        self._tokenizer.save(str(path))

    def copy(self) -> Tokenizer:
        """The library's tokenizer, to be changed."""
        return copy_of(self._tokenizer)


def train_bpe(
    texts: Iterable[str], size: int, lowercase: bool = False, special: Sequence[str] = ()
) -> SubwordTokenizer:
    """Learns a vocabulary of at most `size` entries, the four special ones included, from sentences.

    Further `special` entries, such as "[MASK]", have the ids from 4 on; `encode` never gives them. Fewer entries come
    out when the texts are too small to give more. With `lowercase`, decoded text is lower-cased too.
    Neural Machine Translation of Rare Words with Subword Units, Sennrich, Haddow, Birch, 2016.

    Raises UserError when there is no text, or when its characters alone are more than `size`.
    """  # no limit_alphabet: between characters of one frequency the library would choose by chance
    trainer = trainers.BpeTrainer(
        vocab_size=size, min_frequency=2, special_tokens=[*SPECIAL, *special], show_progress=False
    )
    model = models.BPE(unk_token=UNKNOWN, fuse_unk=True)
    trained = _trained(model, trainer, WORDS, texts, lowercase)
    if len(trained) > size:
        raise UserError(f"a vocabulary of {size:,} entries is too small: the characters alone take {len(trained):,}")
    return trained


def train_words(
    texts: Iterable[str], size: int, lowercase: bool = False, special: Sequence[str] = ()
) -> SubwordTokenizer:
    """Learns the `size` most frequent words (see WORDS), the four special entries included; any other is unknown.

    A word that occurs once is not learned, so that a model meets unknown words in training. Raises UserError when there
    is no text.
    """
    trainer = trainers.WordLevelTrainer(
        vocab_size=size, min_frequency=2, special_tokens=[*SPECIAL, *special], show_progress=False
    )
    return _trained(models.WordLevel(unk_token=UNKNOWN), trainer, WORDS, texts, lowercase, UNKNOWN_WORD)


def train_characters(
    texts: Iterable[str], size: int, lowercase: bool = False, special: Sequence[str] = ()
) -> SubwordTokenizer:
    """Learns the `size` most frequent characters, the four special entries included; any other is unknown.

    Raises UserError when there is no text.
    """
    trainer = trainers.WordLevelTrainer(vocab_size=size, special_tokens=[*SPECIAL, *special], show_progress=False)
    return _trained(models.WordLevel(unk_token=UNKNOWN), trainer, CHARACTERS, texts, lowercase)


def train_pieces(
    texts: Iterable[str], size: int, lowercase: bool = False, special: Sequence[str] = ()
) -> SubwordTokenizer:
    """Learns the `size` most frequent pieces of texts that were cut before (see JOINT); any other is unknown.

    The four special entries are included. Decoded text is joined to words. Raises UserError when there is no text.
    """
    trainer = trainers.WordLevelTrainer(
        vocab_size=size, min_frequency=2, special_tokens=[*SPECIAL, *special], show_progress=False
    )
    trained = _trained(models.WordLevel(unk_token=UNKNOWN), trainer, PIECES, texts, lowercase, UNKNOWN_WORD)
    own = trained._tokenizer
    own.decoder = decoders.Sequence([own.decoder, decoders.Fuse(), decoders.Replace(Regex(JOINT), "")])
    return trained


def join_pieces(text: str) -> str:
    """The words of a text that was cut into pieces (see JOINT): "Was@@ ser" is "Wasser"."""
    return re.sub(JOINT, "", text)


Tokens = Literal["subwords", "words", "characters"]
"""What a text is cut into."""

PairTokens = Literal["subwords", "words", "characters", "pieces"]
"""Likewise, where the text may have been cut before."""

TRAINERS = {"subwords": train_bpe, "words": train_words, "characters": train_characters, "pieces": train_pieces}
"""What learns a vocabulary, by what its entries are; each from texts, a size, and whether to lower-case."""

UNKNOWN_WORD = decoders.Replace(UNKNOWN, f"{SPACE}{UNKNOWN}")
"""Gives an unknown word the space that words have before them, which a vocabulary of words keeps with the word."""

_CASED, _IGNORED = r"[\p{Lu}\p{Ll}\p{Lt}]", r"[\p{Mn}\p{Me}\p{Cf}\p{Lm}\p{Sk}'’.:·‘․‧︓﹒﹕＇．：]"

FINAL_SIGMA = rf"{_CASED}{_IGNORED}*\KΣ(?!{_IGNORED}*{_CASED})"
"""A Greek capital sigma at the end of a word, by Unicode's rule. `str.lower` writes it ς, the library σ."""


def _trained(
    model: Any, trainer: Any, units: str, texts: Iterable[str], lowercase: bool, *before_joining: Any
) -> SubwordTokenizer:
    """A tokenizer whose vocabulary, learned from texts, never reaches across the `units` of a regular expression.

    Decoding applies the decoders `before_joining` to the entries.
    """
    tokenizer = Tokenizer(model)
    case = [normalizers.Replace(Regex(FINAL_SIGMA), "ς"), normalizers.Lowercase()] if lowercase else []
    spaces = [normalizers.Replace(Regex(rf"[\s{SPACE}]+"), " "), normalizers.Strip()]
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), *case, *spaces])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Metaspace(SPACE, prepend_scheme="always", split=False),
            pre_tokenizers.Split(Regex(units), behavior="isolated"),
        ]
    )
    tokenizer.decoder = decoders.Sequence([*before_joining, decoders.Metaspace(SPACE, prepend_scheme="always")])
    counts = WordCounts(texts)  # no unit reaches across a space
    tokenizer.train_from_iterator(counts.texts(), trainer)
    if trainer.vocab_size <= len(SPECIAL):
        raise UserError(f"a vocabulary of {trainer.vocab_size} entries is too small: {len(SPECIAL)} are special ones")
    if tokenizer.get_vocab_size() == len(trainer.special_tokens):
        raise UserError("there is no text to learn a vocabulary from, or nothing in it occurs twice")
    return SubwordTokenizer(tokenizer, counts.report)


def load_tokenizer(path: Path) -> SubwordTokenizer:
    """Reads what `SubwordTokenizer.save` wrote; raises UserError when the file is missing, damaged or another's."""
    tokenizer = read_tokenizer(path)
    if not is_own(tokenizer):
        raise UserError(f"{path} is not a tokenizer of foveate: its first entries are not {' '.join(SPECIAL)}")
    if sorted(tokenizer.get_vocab().values()) != [*range(tokenizer.get_vocab_size())]:
        raise UserError(f"{path} is damaged: its entries are not numbered 0, 1, 2, ...")
    return SubwordTokenizer(tokenizer)


def read_tokenizer(path: Path) -> Tokenizer:
    """The library's tokenizer in a file. Raises UserError when the file is missing or damaged."""
    if not path.is_file():
        raise UserError(f"there is no tokenizer {path}")
    return open_library(path)


def is_own(tokenizer: Tokenizer) -> bool:
    """Returns whether the first entries are those of foveate's tokenizers."""
    return tuple(tokenizer.id_to_token(number) for number in range(len(SPECIAL))) == SPECIAL


def _piece_name(piece: str, before: str) -> str:
    """A piece for a picture: a letter or digit right after another, or after an apostrophe, continues a word."""
    if piece in SPECIAL or piece == SPACE:
        return piece
    if piece.startswith(SPACE):
        return piece.removeprefix(SPACE)
    continues = continues_word(before, piece) or (in_word(piece[0]) and before[-1:] in ("'", "’"))
    return f"·{piece}" if continues else piece
