"""The tokenizers of public folders on 10,000 lines of mixed scripts, against those of transformers."""

import json
import random
from pathlib import Path

import pytest
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from foveate.data.tokens.bert_tokenizer import BertTokenizer
from foveate.data.tokens.public_tokenizer import PublicTokenizer

SCRIPTS = [
    *(range(0x20, 0x7F), range(0xA0, 0x250), range(0x300, 0x370), range(0x370, 0x530), range(0x590, 0x700)),
    *(range(0x900, 0xA00), range(0xE00, 0xE60), range(0x2000, 0x2070), range(0x3040, 0x3100), range(0x4E00, 0x4F00)),
    *(range(0xAC00, 0xAD00), range(0xFF00, 0xFF60), range(0x1F600, 0x1F650)),
]
"""Latin, combining marks, Greek and Cyrillic, Hebrew and Arabic, Devanagari, Thai, spaces and punctuation, kana,
Chinese, Hangul, full-width forms, emoji."""


def lines(count: int) -> list[str]:
    """Words of one script each, several scripts in a line."""
    draw, found = random.Random(5), []
    for _ in range(count):
        scripts = draw.choices(SCRIPTS, k=draw.randint(1, 4))
        found.append(draw.choice([" ", "  ", "\t"]).join("".join(map(chr, draw.choices(one, k=5))) for one in scripts))
    return found


@pytest.mark.parametrize("lowercase", [True, False])
def test_word_pieces(lowercase: bool, tmp_path: Path) -> None:
    letters = sorted({chr(code) for script in SCRIPTS for code in script if chr(code).isprintable() and code % 29})
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    (tmp_path / "vocab.txt").write_text("\n".join(dict.fromkeys(words)) + "\n", encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": lowercase}))
    theirs = transformers.BertTokenizerFast(str(tmp_path / "vocab.txt"), do_lower_case=lowercase)
    texts = lines(10_000)
    expected = theirs(texts, add_special_tokens=False)["input_ids"]
    assert BertTokenizer.load(tmp_path).encode(texts) == expected
    assert sum(map(len, expected)) > 75_000  # most words are known


def test_bytes(tmp_path: Path) -> None:
    texts = lines(10_000)
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=700, initial_alphabet=alphabet, special_tokens=["<|endoftext|>"], show_progress=False
    )
    trained.train_from_iterator(texts[:2000], trainer)
    trained.model.save(str(tmp_path))
    ours = PublicTokenizer.load(tmp_path)
    theirs = transformers.GPT2TokenizerFast(str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt"))
    assert ours.encode(texts) == theirs(texts)["input_ids"]
    assert ours.decode(ours.encode(texts)) == texts
