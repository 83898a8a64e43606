"""Questions with choices, scored as lm-evaluation-harness does."""

import json
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parent.parent / "parity"))

from public_models import folder_of

from foveate.cli import main
from foveate.errors import UserError
from foveate.tasks.completion.completer import Completer
from foveate.tasks.completion.multiple_choice import read_questions

QUESTIONS = [
    {"query": "the keeper lit", "choices": ["a lamp", "up", "stairs , dawn"], "gold": 0},
    {"question": "climbed ", "choices": ["up", "the lamp"], "label": 1},
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, nn.Module]:
    return folder_of("llama", tmp_path_factory.mktemp("llama"))


def write(path: Path, questions: list) -> Path:
    path.write_text("".join(f"{json.dumps(one)}\n" for one in questions) + "\n")
    return path


def test_scores_are_sums_of_log_probabilities(
    made: tuple[Path, nn.Module], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    folder, reference = made
    path, output = write(tmp_path / "task.jsonl", QUESTIONS), tmp_path / "answers.txt"
    main(["eval", str(folder), "--task", str(path), "--json", "--output", str(output)])
    ways = json.loads(capsys.readouterr().out)["ways"]
    assert ways["chance"]["acc"] == pytest.approx((1 / 3 + 1 / 2) / 2)
    tokenizer = Completer.load(folder).tokenizer
    right = 0
    for line, question in zip(filter(None, output.read_text().splitlines()), read_questions(path, []), strict=True):
        found = json.loads(line)
        for choice, score in zip(question.choices, found["scores"], strict=True):
            before, both = tokenizer.encode([question.text.rstrip(), f"{question.text.rstrip()} {choice}"])
            with torch.no_grad():
                shares = reference(torch.tensor([both])).logits[0].log_softmax(-1)
            places = range(len(before), len(both))
            assert score == pytest.approx(sum(float(shares[at - 1, both[at]]) for at in places), abs=1e-4)
        right += found["choice"] == question.right
    assert ways["this model"]["acc"] == right / 2


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("{", "Expecting property name"),
        ("[1]", "this is not an object"),
        ('{"query": "a", "choices": ["b", "c"]}', "no gold or label or answer"),
        ('{"query": "a", "gold": 0}', "no choices"),
        ('{"query": " ", "choices": ["b", "c"], "gold": 0}', "the query is not a text, or empty"),
        ('{"query": "a", "choices": ["b"], "gold": 0}', "choices are two texts or more"),
        ('{"query": "a", "choices": ["b", "c"], "gold": 2}', "gold is 2, but must be a number from 0 to 1"),
        ('{"query": "a", "choices": ["b", "c"], "gold": "b"}', "gold is 'b', but must be"),
    ],
)
def test_lines_of_another_form(line: str, wrong: str, tmp_path: Path) -> None:
    (tmp_path / "task.jsonl").write_text(f"\n{line}\n")
    with pytest.raises(UserError, match=rf'line 2: a question is {{"query": .*({wrong})'):
        read_questions(tmp_path / "task.jsonl", [])


def test_a_question_of_too_many_lists(tmp_path: Path) -> None:
    (tmp_path / "task.jsonl").write_text(f"{100_000 * '['}\n")
    with pytest.raises(UserError, match="line 1 is damaged: lists or tables are nested too deeply"):
        read_questions(tmp_path / "task.jsonl", [])


def test_no_questions_and_options_of_prompts(
    made: tuple[Path, nn.Module], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    with pytest.raises(UserError, match="has no questions"):
        read_questions(write(tmp_path / "none.jsonl", []), [])
    path = write(tmp_path / "task.jsonl", QUESTIONS)
    for more, wrong in (
        (["--choices", "a", "b"], "leave out the options of prompts"),
        (["--data", str(path)], "both --task and --data are given"),
    ):
        with pytest.raises(SystemExit):
            main(["eval", str(made[0]), "--task", str(path), *more])
        assert wrong in capsys.readouterr().err
