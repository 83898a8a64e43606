"""What tokens are called in pictures, whatever a tokenizer marks words by: spaces before them, or pieces inside."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.tasks.viewers.texts import FolderTokenizer

transformers = pytest.importorskip("transformers")

PIECES = ["<unk>", "<s>", "</s>", *(f"<0x{n:02X}>" for n in range(256)), "▁the", "▁cat", "▁sat", "s", "ting", "▁", ","]

NUMBERS = {piece: number for number, piece in enumerate(PIECES)}


def llama() -> Tokenizer:
    made = Tokenizer(models.BPE(vocab=NUMBERS, merges=[], byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    strip = decoders.Strip(" ", 1, 0)
    made.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), strip])
    return made


def metaspace() -> Tokenizer:
    made = Tokenizer(models.Unigram([(piece, -1.0) for piece in PIECES], 0, False))
    made.pre_tokenizer, made.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    return made


def byte_level() -> Tokenizer:
    words = ["<unk>", "<s>", "</s>", "the", "Ġcat", "Ġsat", "s", "ting", ",", "é"]
    made = Tokenizer(models.BPE(vocab={word: n for n, word in enumerate(words)}, merges=[]))
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    return made


def word_pieces() -> Tokenizer:
    words = ["<unk>", "<s>", "</s>", "the", "cat", "sat", "##s", "##ting", ","]
    made = Tokenizer(models.WordPiece({word: n for n, word in enumerate(words)}, unk_token="<unk>"))
    made.pre_tokenizer, made.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    return made


KINDS: dict[str, tuple[Callable[[], Tokenizer], str]] = {
    "Llama": (llama, "▁the ▁cat s , ▁sat ting"),
    "T5, XLNet": (metaspace, "▁the ▁cat s , ▁sat ting"),
    "GPT-2": (byte_level, "the Ġcat s , Ġsat ting"),
    "BERT": (word_pieces, "the cat ##s , sat ##ting"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_word_and_a_later_piece_are_told_apart(kind: str, tmp_path: Path) -> None:
    make, pieces = KINDS[kind]
    library = make()
    library.add_special_tokens(["<s>", "</s>"])
    tokens = [library.token_to_id(piece) for piece in ["<s>", *pieces.split(), "</s>"]]
    wrapped = transformers.PreTrainedTokenizerFast(
        tokenizer_object=library, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )
    (tmp_path / "config.json").write_text("{}")
    wrapped.save_pretrained(tmp_path)
    names = ["<s>", "the", "cat", "·s", ",", "sat", "·ting", "</s>"]
    assert PublicTokenizer(library).pieces(tokens) == names
    assert PublicTokenizer.load(tmp_path).pieces(tokens) == names
    assert FolderTokenizer.of(wrapped).pieces(tokens) == names


def test_the_bytes_of_a_character_have_the_names_of_the_vocabulary() -> None:
    tokens = [NUMBERS[piece] for piece in ("▁cat", "<0xC3>", "<0xA9>", "▁sat")]
    assert PublicTokenizer(llama()).pieces(tokens) == ["cat", "<0xC3>", "<0xA9>", "sat"]
