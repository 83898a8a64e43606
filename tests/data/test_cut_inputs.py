"""What is longer than a model reads is left out or cut, and either is told."""

import sys
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "parity"))

from public_models import folder_of

import foveate
from foveate.data.dataset import Dataset
from foveate.data.text.preferences import Preference, PreferenceBatching
from foveate.data.tokens.tokenizers import train_words
from foveate.errors import UserError
from foveate.forms.processor import Processor
from foveate.forms.reading import WordLine
from foveate.forms.reward import JudgedText, Reward
from foveate.tasks.completion.choices import ChoiceScorer, Prompting
from foveate.tasks.completion.multiple_choice import ChoiceQuestion, choice_rows, multiple_choice

LONG = " ".join("abcdefgh")

PAIRS = [
    Preference("line 1", f"{LONG} i", f"{LONG} j"),
    Preference("line 2", "a b", "a c"),
    Preference("line 3", f"b {LONG}", LONG),
    Preference("line 4", "a b", "a  b"),
]


def words() -> object:
    return train_words([f"{LONG} i j", f"{LONG} j i"], 20)


def test_preferences_that_are_equal_after_cutting_are_left_out_and_counted() -> None:
    dataset = Dataset("pairs", PAIRS, "pairs")
    pairs = PreferenceBatching(words(), 8)
    found = pairs.different(dataset)
    assert [one.place for one in found] == ["line 2", "line 3"]
    assert found.notes == (
        "2 have a text that is cut after 8 tokens",
        "left out: 2 whose texts are equal in the first 8 tokens, which the model reads",
    )
    for one, other in pairs.prepare(found):  # eight tokens are read, and the one behind them is learned
        assert one.tolist() != other.tolist()
        assert max(len(one), len(other)) <= 9
    everything = PreferenceBatching(words()).different(dataset)
    assert everything.notes == ("left out: 1 whose texts are equal to the model",)
    some = Dataset("pairs", PAIRS[1:2], "pairs")
    assert pairs.different(some) is some
    with pytest.raises(
        UserError, match="equal in the first 8 tokens, which the model reads: there is nothing to learn"
    ):
        pairs.different(Dataset("pairs", PAIRS[:1], "pairs"))


def test_a_reward_model_learns_from_different_texts_alone() -> None:
    reads = JudgedText(max_length=8, tokenizer=words())
    buckets = reads.buckets(Dataset("pairs", PAIRS, "pairs"), Processor(reads, Reward()))
    assert buckets.report == (
        "pairs: of 4 pairs left out: 2 for more than 8 tokens in a text, 1 whose two texts are equal to the model"
    )
    with pytest.raises(UserError, match="the two texts of each pair are equal to the model: there is nothing to learn"):
        reads.buckets(Dataset("pairs", PAIRS[3:], "pairs"), Processor(reads, Reward()))


def test_a_line_of_text_that_is_squeezed_is_longer_than_what_was_learned() -> None:
    form = WordLine(height=32, width=100)
    for width, squeezed in ((90, False), (100, False), (103, True), (900, True)):
        image = PIL.Image.fromarray(np.zeros((32, width), np.uint8))
        prepared = form.prepare(image)
        assert prepared.pixels.shape == (32, min(width, 100))
        assert form.longer_than_training(prepared) is squeezed


def test_questions_whose_beginnings_are_not_read_are_counted(tmp_path: Path) -> None:
    folder, _ = folder_of("llama", tmp_path)  # it has 37 positions
    task = foveate.load(folder)
    scorer = ChoiceScorer(task.model, task.tokenizer, Prompting())
    long = ChoiceQuestion(" ".join(["lamp"] * 37), ("up", "the lamp"), 0)
    short = ChoiceQuestion(" ".join(["lamp"] * 36), ("up", "the lamp"), 0)
    assert [[row.cut for row in rows] for rows in choice_rows(scorer, [long, short])] == [[False, True], [False, False]]
    table = tmp_path / "task.jsonl"
    table.write_text(
        "".join(f'{{"query": "{one.text}", "choices": ["up", "the lamp"], "gold": 0}}\n' for one in (long, short))
    )
    assert "1 of them take more positions" in multiple_choice(scorer, table).notes[1]
