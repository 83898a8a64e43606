"""Tokenizers of files that fail, or make texts longer and longer, end in one line."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models

from foveate.data.tokens.bert_tokenizer import BertTokenizer, load_text_tokenizer
from foveate.data.tokens.library import check_length_of_tokens, encode, open_library
from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.data.tokens.tokenizers import SPECIAL, train_bpe
from foveate.errors import UserError


def replace(content: str, pattern: dict[str, str] | None = None) -> dict[str, Any]:
    return {"type": "Replace", "pattern": pattern or {"String": "a"}, "content": content}


def sequence(*parts: Any) -> dict[str, Any]:
    return {"type": "Sequence", "normalizers": [*parts]}


def table(*texts: bytes) -> str:
    """SentencePiece's table of characters, with an empty tree."""
    return base64.b64encode(bytes(4) + b"\0".join(texts)).decode()


TOKEN = {"SpecialToken": {"id": "<pad>", "type_id": 0}}

HOSTILE: dict[str, tuple[dict[str, Any], str]] = {
    "one replacement": ({"normalizer": replace("b" * 10**6)}, "normalizer could make a text more than 256 times"),
    "several": ({"normalizer": sequence(*[replace("aaaa")] * 9)}, "normalizer could make a text more than 256 times"),
    "nested": ({"normalizer": sequence(sequence(replace("a" * 300)))}, "normalizer could make a text more than 256"),
    "everywhere": ({"normalizer": replace("b" * 300, {"Regex": "x*"})}, "normalizer could make a text more than 256"),
    "prepended": ({"normalizer": {"type": "Prepend", "prepend": "b" * 10**6}}, "normalizer adds more than 1,000 char"),
    "table": (
        {"normalizer": {"type": "Precompiled", "precompiled_charsmap": table(b"a" * 9000)}},
        "normalizer could make a text more than 256 times",
    ),
    "decoder": ({"decoder": replace("b" * 10**6)}, "decoder could make a text more than 256 times as long"),
    "template": (
        {
            "post_processor": {
                "type": "TemplateProcessing",
                "single": [TOKEN] * 2000,
                "pair": [],
                "special_tokens": {"<pad>": {"id": "<pad>", "ids": [0], "tokens": ["<pad>"]}},
            }
        },
        "post_processor adds more than 1,000 tokens to a text",
    ),
    "a part of another type": ({"normalizer": {"type": "Grow"}}, "is not a tokenizer, or is damaged"),
    "no number": ({"model": {"type": "BPE", "vocab": {"a": True}, "merges": []}}, "is not a tokenizer, or is damaged"),
    "a negative number": ({"model": {"type": "WordLevel", "vocab": {"a": -1}, "unk_token": "a"}}, "is not a tokenizer"),
}

OPENERS: dict[str, Callable[[Path], object]] = {
    "own": lambda folder: load_text_tokenizer(folder / "tokenizer.json"),
    "bert": BertTokenizer.load,
    "public": PublicTokenizer.load,
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("opener", OPENERS)
def test_a_hostile_tokenizer(kind: str, opener: str, tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    """Of a run of our own too."""
    path = tmp_path / "tokenizer.json"
    train_bpe(["a keeper lit the lamp"] * 3, 60).save(path)
    changes, message = HOSTILE[kind]
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(UserError, match=message) as caught:
        OPENERS[opener](tmp_path)
    assert len(str(caught.value).splitlines()) == 1
    assert capfd.readouterr().err == ""


def test_nothing_is_padded_or_cut(tmp_path: Path) -> None:
    tokenizer = Tokenizer(models.WordLevel({"a": 0, "<pad>": 1}, unk_token="a"))
    tokenizer.enable_padding(length=10**6, pad_id=1, pad_token="<pad>")
    tokenizer.enable_truncation(1)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert PublicTokenizer.load(tmp_path).encode(["a"]) == [[0]]


def test_what_the_library_raises_while_it_encodes(tmp_path: Path) -> None:
    vocabulary = {name: number for number, name in enumerate(SPECIAL)}
    Tokenizer(models.WordLevel(vocabulary, unk_token="lost")).save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(UserError, match=r"^the tokenizer cannot read the text: .*Missing \[UNK\] token"):
        encode(open_library(tmp_path / "tokenizer.json"), ["keeper"])


def test_more_tokens_than_a_text_can_have() -> None:
    check_length_of_tokens(2_000, "four")
    with pytest.raises(UserError, match="it gives 3,000 tokens for 4 bytes"):
        check_length_of_tokens(3_000, "four")
