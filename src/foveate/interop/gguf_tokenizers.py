"""Tokenizers in the metadata of GGUF files: byte-level BPE ("gpt2"), and SentencePiece's BPE ("llama")."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)

from foveate.data.tokens.public_tokenizer import ROLES, PublicTokenizer
from foveate.data.tokens.sentencepiece_model import BPE, CONTROL, NORMAL, SPACE, USER_DEFINED, Piece, piece_model
from foveate.errors import UserError, show_value
from foveate.files import parse_json
from foveate.special_tokens import Role

UNKNOWN, UNUSED, BYTE = 2, 5, 6
"""Further types of tokens, after those of SentencePiece."""

_ROLES: dict[str, Role] = {"bos": "start", "eos": "end", "padding": "pad", "unknown": "unknown"}
"""The names of special tokens in the metadata."""

_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _words() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.ByteLevel(add_prefix_space=False)


def _split(pattern: str) -> pre_tokenizers.PreTokenizer:
    parts = pre_tokenizers.Split(Regex(pattern), "isolated")
    return pre_tokenizers.Sequence([parts, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


WORDS = {
    "gpt-2": _words,
    "default": _words,
    "smollm": lambda: pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), _words()]),
    "llama-bpe": lambda: _split(_LLAMA3),
}
"""How texts are cut before merges, by the name in `tokenizer.ggml.pre`."""


def read_tokenizer(metadata: Mapping[str, Any]) -> PublicTokenizer:
    """The tokenizer of a file. Raises UserError for a kind that is not read, and LookupError for a missing field."""
    kind = metadata["tokenizer.ggml.model"]
    tokens, kinds = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.token_type"]
    if kind == "gpt2":
        tokenizer = _byte_level(metadata, tokens)
    elif kind == "llama":
        tokenizer = _sentencepiece(metadata, tokens, kinds)
    else:
        raise UserError(f"the GGUF file has a tokenizer of the kind {show_value(kind)}; foveate reads gpt2 and llama")
    for token, one in zip(tokens, kinds, strict=True):
        if one in (CONTROL, USER_DEFINED):
            tokenizer.add_tokens([AddedToken(token, special=one == CONTROL, normalized=False)])
    around = {}
    for name, usual in (("bos", kind == "llama"), ("eos", False)):
        number = metadata.get(f"tokenizer.ggml.{name}_token_id")
        if metadata.get(f"tokenizer.ggml.add_{name}_token", usual) and number is not None:
            around[name] = (tokens[number], number)
    if around:
        names = {name: token for name, (token, _) in around.items()}
        form = " ".join(filter(None, (names.get("bos"), "$A", names.get("eos"))))
        tokenizer.post_processor = processors.TemplateProcessing(single=form, special_tokens=[*around.values()])
    numbers = {role: metadata.get(f"tokenizer.ggml.{name}_token_id") for name, role in _ROLES.items()}
    config = {ROLES[role]: tokens[number] for role, number in numbers.items() if number is not None}
    if template := metadata.get("tokenizer.chat_template"):
        config["chat_template"] = template
    return PublicTokenizer(tokenizer, config)


def _byte_level(metadata: Mapping[str, Any], tokens: list[str]) -> Tokenizer:
    name = metadata.get("tokenizer.ggml.pre", "default")
    if name not in WORDS:
        raise UserError(
            f"the GGUF file cuts texts by {show_value(name)}, which foveate does not know; it knows {', '.join(WORDS)}"
        )
    merges = [tuple(pair.split(" ")) for pair in metadata["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE(vocab={token: number for number, token in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer, tokenizer.decoder = WORDS[name](), decoders.ByteLevel()
    return tokenizer


def _sentencepiece(metadata: Mapping[str, Any], tokens: list[str], kinds: list[int]) -> Tokenizer:
    scores, unknown = metadata["tokenizer.ggml.scores"], metadata.get("tokenizer.ggml.unknown_token_id", 0)
    pieces = [Piece(*row) for row in zip(tokens, scores, kinds, strict=True)]
    tokenizer = Tokenizer(piece_model(pieces, {3: BPE, 35: BYTE in kinds, 40: unknown}, Path("the GGUF file")))
    _spaces(tokenizer, bool(metadata.get("tokenizer.ggml.add_space_prefix", True)))
    return tokenizer


def _spaces(tokenizer: Tokenizer, prefix: bool) -> None:
    """Write spaces as SentencePiece does, with one before a text."""
    steps = [normalizers.Prepend(SPACE)] if prefix else []
    tokenizer.normalizer = normalizers.Sequence([*steps, normalizers.Replace(" ", SPACE)])
    parts = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence([*parts, *([decoders.Strip(" ", 1, 0)] if prefix else [])])


def tokenizer_fields(tokenizer: PublicTokenizer, rows: int) -> dict[str, Any]:
    """The metadata of a tokenizer, of a model with embeddings of this many tokens.

    Raises UserError for one that the files have no fields for.
    """
    table = parse_json(tokenizer.copy().to_str(), "the tokenizer")
    model = table["model"]
    if model["type"] != "BPE":
        raise UserError(f"GGUF files have no fields for a tokenizer of the type {model['type']}; a BPE is written")
    added = {one["id"]: CONTROL if one["special"] else USER_DEFINED for one in table["added_tokens"]}
    names = {number: token for token, number in tokenizer.copy().get_vocab().items()}
    found: dict[str, Any] = {"tokenizer.ggml.tokens": [names.get(row, f"[PAD{row}]") for row in range(rows)]}
    kinds = [added.get(row, NORMAL if row in names else UNUSED) for row in range(rows)]
    own = _words_field(table)
    merges = [one if isinstance(one, str) else " ".join(one) for one in model["merges"]]
    if own is not None:
        found |= {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": own, "tokenizer.ggml.merges": merges}
    else:
        prefix = _prefix_field(table)
        merged = {one.replace(" ", ""): number for number, one in reversed([*enumerate(merges)])}
        tokens = found["tokenizer.ggml.tokens"]
        kinds = [_piece_kind(token, kind, model["unk_token"]) for token, kind in zip(tokens, kinds, strict=True)]
        found |= {
            "tokenizer.ggml.model": "llama",
            "tokenizer.ggml.scores": [-float(merged.get(token, len(merges))) for token in tokens],
            "tokenizer.ggml.add_space_prefix": prefix,
        }
    found["tokenizer.ggml.token_type"] = kinds
    roles = {f"tokenizer.ggml.{name}_token_id": role for name, role in _ROLES.items() if role in tokenizer.special}
    found |= {name: int(tokenizer.special[role]) for name, role in roles.items()}
    found |= _ends(tokenizer)
    if isinstance(template := tokenizer.config.get("chat_template"), str):
        found["tokenizer.chat_template"] = template
    return found


def _piece_kind(token: str, kind: int, unknown: str | None) -> int:
    if token == unknown:
        return UNKNOWN
    return BYTE if kind == NORMAL and len(token) == 6 and token.startswith("<0x") else kind


def _words_field(table: Mapping[str, Any]) -> str | None:
    """The name of how texts are cut; None for a tokenizer of SentencePiece's, which does not cut them."""
    own = table["pre_tokenizer"]
    if own is None:
        return None
    for name, make in WORDS.items():
        probe = Tokenizer(models.BPE())
        probe.pre_tokenizer = make()
        if _without_offsets(parse_json(probe.to_str(), "the tokenizer")["pre_tokenizer"]) == _without_offsets(own):
            if table["normalizer"] is None:
                return name
            break
    known = ", ".join(WORDS)
    raise UserError(f"GGUF files have no name for how this tokenizer cuts texts; those of {known} are written")


def _without_offsets(value: Any) -> Any:
    """Settings that change tokens: where a token begins and ends is not written."""
    if isinstance(value, dict):
        return {name: _without_offsets(one) for name, one in value.items() if name != "trim_offsets"}
    return [_without_offsets(one) for one in value] if isinstance(value, list) else value


def _prefix_field(table: Mapping[str, Any]) -> bool:
    """Whether a space stands before a text. Raises UserError for another tokenizer than SentencePiece's."""
    for prefix in (True, False):
        probe = Tokenizer(models.BPE())
        _spaces(probe, prefix)
        if (
            parse_json(probe.to_str(), "the tokenizer")["normalizer"] == table["normalizer"]
            and table["model"]["byte_fallback"]
        ):
            return prefix
    raise UserError("GGUF files have no fields for how this tokenizer changes texts before it cuts them")


def _ends(tokenizer: PublicTokenizer) -> dict[str, bool]:
    """Whether start and end stand around a text. Raises UserError for another form of the tokenizer's."""
    (ids,) = tokenizer.encode([""])
    (plain,) = tokenizer.encode_inside([""])
    start, end = ([tokenizer.special[role]] if role in tokenizer.special else [] for role in ("start", "end"))
    forms = {(bool(begin), bool(last)): [*begin, *plain, *last] for begin in ([], start) for last in ([], end)}
    found = next((name for name, form in forms.items() if form == ids), None)
    if found is None:
        raise UserError("GGUF files have no fields for what this tokenizer puts around a text")
    return {"tokenizer.ggml.add_bos_token": found[0], "tokenizer.ggml.add_eos_token": found[1]}
