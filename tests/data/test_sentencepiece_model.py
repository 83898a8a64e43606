"""XLNet's tokenizer from `spiece.model`, against that which transformers makes of the same file."""

import json
import struct
from pathlib import Path
from types import SimpleNamespace

import pytest
from mixed_scripts import lines
from tokenizers import AddedToken
from transformers.convert_slow_tokenizer import XLNetConverter

from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.data.tokens.sentencepiece_model import fields
from foveate.errors import UserError

CONTROL = ["<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>"]
PIECES = {"▁the": -2.0, "▁keep": -3.5, "er": -4.0, "▁1,": -2.5, "▁1": -5.0, ",": -6.0, "▁": -7.0, "s": -6.5, "é": -8.0}
LETTERS = dict.fromkeys("abcdefghijklmnopqrstuvwxyz1\"'", -10.0)
TEXTS = [
    *("the keepers", "The  keeper, café ``the'' é", "1, the 1,000", "", " <mask> the<sep>s"),
    *("日本 the", "the\tkeep\n er", "<eop>the<eop> keep", "ﬁne ½ the"),
]


def field(number: int, value: bytes | int | float) -> bytes:
    """One field of a message, as protobuf writes it."""
    if isinstance(value, float):
        return integer(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return integer(number << 3) + integer(value)
    return integer(number << 3 | 2) + integer(len(value)) + value


def integer(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def write(path: Path, kind: int = 1) -> Path:
    """A model with the unknown token, special ones, one of a user's own, and pieces of words."""
    rows = [("<unk>", 0.0, 2), *((name, 0.0, 3) for name in CONTROL), ("<eop>", 0.0, 4)]
    rows += [(piece, score, 1) for piece, score in (PIECES | LETTERS).items()]
    pieces = [field(1, text.encode()) + field(2, score) + field(3, number) for text, score, number in rows]
    message = b"".join(field(1, piece) for piece in pieces)
    message += field(2, field(3, kind) + field(40, 0)) + field(3, field(1, b"nmt_nfkc"))
    path.write_bytes(message)
    return path


@pytest.mark.parametrize("settings", [{}, {"do_lower_case": True}, {"keep_accents": True}])
def test_it_reads_as_transformers_does(settings: dict[str, bool], tmp_path: Path) -> None:
    path = write(tmp_path / "spiece.model")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    ours = PublicTokenizer.load(tmp_path)
    ids = {text: number for number, text in enumerate(["<unk>", *CONTROL])}
    slow = SimpleNamespace(
        vocab_file=str(path),
        keep_accents=settings.get("keep_accents", False),
        do_lower_case=settings.get("do_lower_case", False),
        convert_tokens_to_ids=ids.__getitem__,
        add_prefix_space=True,
        legacy=True,
    )
    theirs = XLNetConverter(slow).converted()
    theirs.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True)])  # as its XLNetTokenizer does
    for text in TEXTS:
        found = theirs.encode(text)
        assert ours.encode([text]) == [found.ids], text
        assert ours.types(text) == found.type_ids
        assert ours.pair(text, "the") == (theirs.encode(text, "the").ids, theirs.encode(text, "the").type_ids)
    texts = lines(10_000)
    assert ours.encode(texts) == [found.ids for found in theirs.encode_batch(texts)]
    assert [ours.special[role] for role in ("unknown", "pad", "mask", "separator", "class")] == [0, 5, 6, 4, 3]
    assert ours.decode(ours.encode(["the keepers"])) == ["the keepers"]


def test_a_blank_takes_the_space_before_it(tmp_path: Path) -> None:
    write(tmp_path / "spiece.model")
    tokenizer = PublicTokenizer.load(tmp_path)
    assert tokenizer.pieces(tokenizer.encode(["the <mask> keep"])[0])[:3] == ["the", "<mask>", "keep"]


@pytest.mark.parametrize("cut", [1, 7, 40])
def test_a_damaged_file(cut: int, tmp_path: Path) -> None:
    path = write(tmp_path / "spiece.model")
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(UserError, match=r"the tokenizer in .* is damaged: it ends too early") as told:
        PublicTokenizer.load(tmp_path)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff" * 12, "ends no integer"),
        (b"\x0b", "begins no field"),
        (field(1, b""), "it has an entry without a text and a score"),
        (field(1, field(1, b"a") + field(2, 0.0)), "it has no token <sep>|unk_id"),
    ],
)
def test_what_is_no_model(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "spiece.model").write_bytes(content)
    with pytest.raises(UserError, match=message):
        PublicTokenizer.load(tmp_path)


def test_another_kind_of_model(tmp_path: Path) -> None:
    write(tmp_path / "spiece.model", kind=2)
    with pytest.raises(UserError, match="is a SentencePiece model of type 2; foveate reads unigrams, type 1"):
        PublicTokenizer.load(tmp_path)


def test_fields_of_all_kinds() -> None:
    message = field(1, 300) + integer(2 << 3 | 1) + bytes(8) + field(3, 1.5) + field(4, b"xy")
    assert list(fields(message)) == [(1, 300), (2, bytes(8)), (3, struct.pack("<f", 1.5)), (4, b"xy")]
