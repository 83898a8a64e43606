"""Prompts of examples: which are drawn, and what a tiny model makes of them."""

import sys
from pathlib import Path

import pytest
import torch
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parent.parent / "parity"))

from public_models import folder_of

from foveate.data.sources.splits import Splits
from foveate.data.text.labelled import LabelledText
from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.errors import UserError
from foveate.experiments import compare, prompting
from foveate.experiments.prompting import PromptingExamples, draw_examples

PAIRS = [
    ("the lamp", "up"),
    ("of stairs", "dawn"),
    ("keeper lit", "up"),
    ("counting each", "dawn"),
    ("the keeper", "up"),
]


def test_examples_have_all_labels_in_turn() -> None:
    for seed in range(5):
        chosen = draw_examples(PAIRS, ("dawn", "up"), 4, seed)
        labels = [label for _, label in chosen]
        assert labels in (["dawn", "up"] * 2, ["up", "dawn"] * 2)
        assert set(chosen) <= set(PAIRS)
    assert draw_examples(PAIRS, ("dawn", "up"), 4, 1) == draw_examples(PAIRS, ("dawn", "up"), 4, 1)
    assert draw_examples(PAIRS, ("dawn", "up"), 0, 1) == []


def test_a_table_and_a_picture(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder, theirs = folder_of("gpt2", tmp_path)
    text = LabelledText.from_pairs([(label, text) for text, label in PAIRS], "words")
    monkeypatch.setattr(prompting, "open_source", lambda *_, **__: Splits(text, text, text))
    options = PromptingExamples(
        out=tmp_path / "out", model=folder, examples=(0, 2), draws=2, texts=5, form="{input} , {output}"
    )
    found = compare("prompting", options, Console(quiet=True))
    assert [(one["examples"], one["draw"]) for one in found.raw] == [(0, 0), (2, 0), (2, 1)]
    words = {"up": 7, "dawn": 12}
    tokenizer, right = PublicTokenizer.load(folder), 0
    assert [tokenizer.number(word) for word in words] == list(words.values())
    for given, label in PAIRS:
        with torch.no_grad():
            logits = theirs(torch.tensor(tokenizer.encode([f"{given} ,"]))).logits[0, -1]
        right += max(words, key=lambda word: float(logits[words[word]])) == label
    assert found.raw[0]["plain"] == right / 5
    assert found.tables[0].rows[0][0] == "0"
    assert list(found.figures) == [""]
    with pytest.raises(UserError, match="the number of examples is 1"):
        compare("prompting", PromptingExamples(out=tmp_path, model=folder, examples=(0,)), Console(quiet=True))
