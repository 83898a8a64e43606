"""Panics of tokenizers' library: one line each, and nothing that the library writes by itself."""

import json
import os
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models

from foveate.data.tokens.library_panics import panics_as_errors
from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.errors import UserError


def backtracking(folder: Path) -> Path:
    """A tokenizer whose regular expression tries 2^n ways to read a text of n letters."""
    whole = json.loads(Tokenizer(models.BPE({"a": 0, "b": 1}, [])).to_str())
    split = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
    (folder / "tokenizer.json").write_text(json.dumps(whole | {"pre_tokenizer": split}))
    return folder


def test_a_regular_expression_that_backtracks_without_end(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    tokenizer = PublicTokenizer.load(backtracking(tmp_path))
    assert tokenizer.encode(["ab"]) == [[0, 1]]
    for read in (tokenizer.encode, tokenizer.encode_inside):
        with pytest.raises(UserError, match=r"^the tokenizer cannot read the text: .*retry-limit-in-match over$"):
            read(["a" * 60 + "b"])
    assert capfd.readouterr().err == ""


def test_a_vocabulary_that_makes_the_library_panic(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    """A merge of a piece that is shorter than what continues a word."""
    whole = json.loads(Tokenizer(models.BPE({"a": 0, "": 1}, [], continuing_subword_prefix="##")).to_str())
    whole["model"]["merges"] = [["a", ""]]
    (tmp_path / "tokenizer.json").write_text(json.dumps(whole))
    with pytest.raises(UserError, match="is not a tokenizer, or is damaged: range end index"):
        PublicTokenizer.load(tmp_path)
    assert capfd.readouterr().err == ""


def test_what_else_is_written_comes_at_the_end(capfd: pytest.CaptureFixture) -> None:
    with panics_as_errors("reading"):
        os.write(2, b"a warning\n")

    def fail() -> None:
        os.write(2, b"another\n")
        raise ValueError("no panic")

    with pytest.raises(ValueError, match="no panic"), panics_as_errors("reading"):
        fail()
    assert capfd.readouterr().err == "a warning\nanother\n"
