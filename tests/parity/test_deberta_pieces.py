"""DeBERTa-v2 folders whose only tokenizer is `spm.model`: the ids of transformers, and the model runs."""

import json
from pathlib import Path
from typing import Any

import pytest
import transformers
from folders import FOLDERS
from spm_files import unigram_file

import foveate
from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.data.tokens.sentencepiece_model import read_model

WORDS = ["\u2581the", "\u2581lamp", "ing", "\u2581k"]

PIECES = ["[UNK]", "[CLS]", "[SEP]", "\u2581", *"abcdefghijklmnopqrstuvwxyz.,", *WORDS]

TEXTS = ["the keeper lit the lamp", " counting,  the\tkeeping. ", "The é lamp", "a\n\nb", ""]


@pytest.mark.parametrize("settings", [{}, {"do_lower_case": True}, {"split_by_punct": True}])
def test_ids_are_those_of_transformers(settings: dict[str, Any], tmp_path: Path) -> None:
    """Around one text and two."""
    unigram_file(tmp_path / "spm.model", PIECES)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    vocabulary = [(piece.text, piece.score) for piece in read_model(tmp_path / "spm.model")[0]]
    theirs = transformers.DebertaV2Tokenizer(vocab=vocabulary, **settings)
    ours = PublicTokenizer.load(tmp_path)
    assert ours.special.mask == theirs.mask_token_id == len(PIECES) + 1  # behind [PAD]
    assert ours.encode(TEXTS) == [theirs(text)["input_ids"] for text in TEXTS]
    expected = theirs(TEXTS[0], TEXTS[1])
    assert ours.pair(TEXTS[0], TEXTS[1]) == (expected["input_ids"], expected["token_type_ids"])
    assert ours.encode(["a [MASK] b"]) == [theirs("a [MASK] b")["input_ids"]]


@pytest.mark.parametrize("head", ["words", "text", "none"])
def test_a_model_runs(head: str, tmp_path: Path) -> None:
    FOLDERS["deberta-v2"].write(head, tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).unlink()
    unigram_file(tmp_path / "spm.model", PIECES)
    assert foveate.load(tmp_path).run("the [MASK] lamp").line
