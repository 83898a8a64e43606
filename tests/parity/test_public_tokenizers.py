"""The tokenizers of public folders on 10,000 lines of mixed scripts, against those of transformers."""

import json
from pathlib import Path

import pytest
import transformers
from mixed_scripts import SCRIPTS, lines
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from foveate.data.tokens.bert_tokenizer import BertTokenizer
from foveate.data.tokens.public_tokenizer import PublicTokenizer


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
