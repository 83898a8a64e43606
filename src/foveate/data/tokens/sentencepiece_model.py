"""Tokenizers from the files that SentencePiece writes (Kudo and Richardson 2018): XLNet's `spiece.model`, DeBERTa's
`spm.model`, and others as they are.

The file is a message of protobuf's: pieces with their scores, settings of the training and of the normalizer.
"""

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from foveate.errors import UserError
from foveate.limits import check_file

MODEL = "spiece.model"

NAMES = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "unk_token": "<unk>",
    "sep_token": "<sep>",
    "pad_token": "<pad>",
    "cls_token": "<cls>",
    "mask_token": "<mask>",
}
"""XLNet's special tokens, where `tokenizer_config.json` does not name others."""

DEBERTA_MODEL = "spm.model"

DEBERTA = {
    "bos_token": "[CLS]",
    "eos_token": "[SEP]",
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}
"""The special tokens of DeBERTa, where `tokenizer_config.json` does not name others. [MASK] follows the pieces."""

NORMAL, CONTROL, USER_DEFINED = 1, 3, 4
"""Types of pieces: a part of a word, a special token, and one that is always a piece of its own."""

UNIGRAM, BPE = 1, 2
"""The types of models: pieces with scores of their own (Kudo 2018), or merged in the order of their scores."""

NUMBER_BEFORE_COMMA = 100
"""What the score of a piece like "1," loses: XLNet parts a number from the comma after it."""


class Piece(NamedTuple):
    """An entry of the vocabulary."""

    text: str
    score: float
    kind: int


def load_sentencepiece(path: Path, config: Mapping[str, Any]) -> Tokenizer:
    """XLNet's tokenizer; `config` is what `tokenizer_config.json` holds.

    Raises UserError for a file that is too large, or of another kind of model, and ValueError for a damaged one.
    """
    pieces, training, normalizer = read_model(path)
    if (kind := training.get(3, UNIGRAM)) != UNIGRAM:
        raise UserError(f"{path} is a SentencePiece model of type {kind}; foveate reads unigrams, type 1")
    names = {role: config[role] if isinstance(config.get(role), str) else name for role, name in NAMES.items()}
    vocabulary = [(piece.text, _score(piece)) for piece in pieces]
    tokenizer = Tokenizer(models.Unigram(vocabulary, training.get(40, 0), byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(list(_normalizers(config, normalizer.get(2, b""))))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    for piece in pieces:
        if piece.kind in (CONTROL, USER_DEFINED):
            space_before = piece.text == names["mask_token"]
            added = AddedToken(piece.text, lstrip=space_before, normalized=False, special=piece.kind == CONTROL)
            tokenizer.add_tokens([added])
    separator, summary = names["sep_token"], names["cls_token"]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"$A:0 {separator}:0 {summary}:2",
        pair=f"$A:0 {separator}:0 $B:1 {separator}:1 {summary}:2",
        special_tokens=[(name, _number(tokenizer, name)) for name in (separator, summary)],
    )
    return tokenizer


def load_deberta(path: Path, config: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer of DeBERTa's versions 2 and 3; `config` is what `tokenizer_config.json` holds.

    Raises UserError for a file that is too large, or of another kind of model, and ValueError for a damaged one.
    """
    pieces, training, normalizer = read_model(path)
    if (kind := training.get(3, UNIGRAM)) != UNIGRAM:
        raise UserError(f"{path} is a SentencePiece model of type {kind}; foveate reads unigrams, type 1")
    tokenizer = Tokenizer(models.Unigram([(piece.text, piece.score) for piece in pieces], training.get(40, 0)))
    steps: list[normalizers.Normalizer] = [normalizers.Lowercase()] if config.get("do_lower_case") else []
    steps.append(normalizers.Replace(Regex(r"\s{2,}|[\n\r\t]"), " "))
    steps.append(normalizers.Precompiled(table) if (table := normalizer.get(2, b"")) else normalizers.NFC())
    steps.append(normalizers.Strip(left=False, right=True))
    marks = [pre_tokenizers.Punctuation("isolated")] if config.get("split_by_punct") else []
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*marks, pre_tokenizers.Metaspace()])
    tokenizer.decoder = decoders.Metaspace()
    names = {role: config[role] if isinstance(config.get(role), str) else name for role, name in DEBERTA.items()}
    special = dict.fromkeys([*(piece.text for piece in pieces if piece.kind == CONTROL), *names.values()])
    tokenizer.add_tokens([AddedToken(name, normalized=False, special=True) for name in special])
    summary, separator = names["cls_token"], names["sep_token"]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{summary}:0 $A:0 {separator}:0",
        pair=f"{summary}:0 $A:0 {separator}:0 $B:1 {separator}:1",
        special_tokens=[(name, _number(tokenizer, name)) for name in (summary, separator)],
    )
    return tokenizer


def read_model(path: Path) -> tuple[list[Piece], dict[int, Any], dict[int, Any]]:
    """The pieces of a file, and the settings of its training and of its normalizer by the numbers of their fields.

    Raises UserError for a file that is too large, and ValueError for a damaged one.
    """
    check_file(path)
    message = dict[int, list[Any]]()
    for number, value in fields(path.read_bytes()):
        message.setdefault(number, []).append(value)
    pieces = [_piece(value) for value in message.get(1, [])]
    training, normalizer = (dict(fields(message[number][-1])) if number in message else {} for number in (2, 3))
    return pieces, training, normalizer


def piece_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer of a file as SentencePiece itself reads texts. Raises UserError and ValueError like `read_model`,
    and UserError for a model of words or characters."""
    pieces, training, normalizer = read_model(path)
    tokenizer = Tokenizer(piece_model(pieces, training, path))
    steps: list[normalizers.Normalizer] = []
    if table := normalizer.get(2, b""):
        steps.append(normalizers.Precompiled(table))
    if normalizer.get(4, 1):
        steps += [normalizers.Replace(Regex(r"\A +| +\z"), ""), normalizers.Replace(Regex(" {2,}"), " ")]
    steps.append(normalizers.Replace(" ", SPACE))
    if normalizer.get(3, 1):
        # The prefix comes before a text that begins with the sign of a space too.
        steps.append(normalizers.Replace(Regex(rf"\A{SPACE}"), SPACE * 2))
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=False)
    tokenizer.normalizer, tokenizer.decoder = normalizers.Sequence(steps), decoders.Metaspace()
    own = [piece.text for piece in pieces if piece.kind == USER_DEFINED]
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in own])
    return tokenizer


SPACE = "\u2581"
"""What stands for a space in pieces."""


def piece_model(pieces: list[Piece], training: Mapping[int, Any], path: Path) -> models.Model:
    """What cuts texts into these pieces. Raises UserError for a model of words or characters, and ValueError for one
    without an unknown piece."""
    kind, unknown = training.get(3, UNIGRAM), training.get(40, 0)
    falls_back = bool(training.get(35, 0))
    if kind == UNIGRAM:
        rows = [(piece.text, piece.score) for piece in pieces]
        return models.Unigram(rows, unknown, byte_fallback=falls_back)
    if kind != BPE:
        raise UserError(
            f"{path} is a SentencePiece model of type {kind}; foveate reads unigrams and BPE, types 1 and 2"
        )
    if not 0 <= unknown < len(pieces):
        raise ValueError("it has no unknown token")
    numbers = {piece.text: number for number, piece in enumerate(pieces)}
    normal = {piece.text: (-piece.score, numbers[piece.text]) for piece in pieces if piece.kind == NORMAL}
    ranked = sorted(
        (*rank, text[:at], text[at:])
        for text, rank in normal.items()
        for at in range(1, len(text))
        if text[:at] in normal and text[at:] in normal
    )
    merges = [(left, right) for *_, left, right in ranked]
    return models.BPE(numbers, merges, unk_token=pieces[unknown].text, fuse_unk=True, byte_fallback=falls_back)


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """The numbers of a message's fields and their values: an integer, or bytes. Raises ValueError for a damaged one."""
    at = 0
    while at < len(message):
        key, at = _integer(message, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = _integer(message, at)
            yield number, value
            continue
        if kind not in _SIZES and kind != 2:
            raise ValueError(f"byte {at:,} begins no field")
        size, at = _integer(message, at) if kind == 2 else (_SIZES[kind], at)
        if at + size > len(message):
            raise ValueError("it ends too early")
        yield number, message[at : at + size]
        at += size


_SIZES = {1: 8, 5: 4}
"""Bytes of the fields of fixed size, by their kind."""


def _integer(message: bytes, at: int) -> tuple[int, int]:
    """An integer in groups of seven bits, the lowest first, and the place after it."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            raise ValueError("it ends too early")
        value |= (message[at] & 127) << shift
        at += 1
        if message[at - 1] < 128:
            return value, at
    raise ValueError(f"byte {at:,} ends no integer")


def _piece(message: bytes) -> Piece:
    found = dict(fields(message))
    text, score = found.get(1), found.get(2, bytes(4))
    if not isinstance(text, bytes) or not isinstance(score, bytes) or len(score) != 4:
        raise ValueError("it has an entry without a text and a score")
    return Piece(text.decode(), struct.unpack("<f", score)[0], found.get(3, NORMAL))


def _score(piece: Piece) -> float:
    number_and_comma = len(piece.text) > 1 and piece.text[-1] == "," and piece.text[-2].isdigit()
    return piece.score - NUMBER_BEFORE_COMMA * number_and_comma


def _normalizers(config: Mapping[str, Any], table: bytes) -> Iterator[normalizers.Normalizer]:
    """XLNet's own, then the table of characters in the file."""
    yield normalizers.Replace("``", '"')
    yield normalizers.Replace("''", '"')
    if not config.get("keep_accents"):
        yield normalizers.NFKD()
        yield normalizers.StripAccents()
    if config.get("do_lower_case"):
        yield normalizers.Lowercase()
    if table:
        yield normalizers.Precompiled(table)
    yield normalizers.Replace(Regex(" {2,}"), " ")


def _number(tokenizer: Tokenizer, name: str) -> int:
    if (number := tokenizer.token_to_id(name)) is None:
        raise ValueError(f"it has no token {name}")
    return number
