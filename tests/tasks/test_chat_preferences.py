"""Preferences and prompts that are conversations: `dpo`, `reward` and `rlhf` of a model that chats."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from test_conversations import CHATS, ENDS, MARKED, SHORT, SILENT, expected, openai, write, written

import foveate
from foveate.cli import main
from foveate.contracts import IGNORE, Hypothesis
from foveate.data.text.conversations import question_ids, read_questions_to_answer
from foveate.data.text.documents import Conversation
from foveate.data.text.preferences import PreferenceBatching, read_preferences
from foveate.errors import UserError
from foveate.tasks import find_task
from foveate.tasks.learning import Lesson, learn
from foveate.tasks.tuning import rollouts
from foveate.tasks.tuning.common import rewards
from foveate.tasks.tuning.rollouts import WritingPrompt

QUESTIONS = [
    [("user", "what is it?")],
    [("system", "be short"), ("user", "hello")],
    [("user", "a"), ("assistant", "é b"), ("user", "go on")],
]
ANSWERS = [("a lamp", "no idea at all"), ("good day", "go"), ("then", "th")]


def messages(chat: Any) -> list[dict[str, str]]:
    found: list[dict[str, str]] = openai(chat)["messages"]
    return found


def explicit(question: Any, better: str, worse: str) -> dict[str, Any]:
    """A prompt apart, as trl has it."""
    sides = {"chosen": better, "rejected": worse}
    return {"prompt": messages(question), **{name: messages([("assistant", text)]) for name, text in sides.items()}}


def implicit(question: Any, better: str, worse: str) -> dict[str, Any]:
    """The prompt within both, which trl takes out."""
    sides = {"chosen": better, "rejected": worse}
    return {name: messages([*question, ("assistant", text)]) for name, text in sides.items()}


def named_too(question: Any, better: str, worse: str) -> dict[str, Any]:
    """The same with the question as a text, as UltraFeedback has it."""
    return {"prompt": question[-1][1], **implicit(question, better, worse)}


FORMS = [explicit, implicit, named_too]


def pairs(path: Path, form: Any = explicit, times: int = 1) -> Path:
    return write(path, [form(one, *both) for one, both in zip(QUESTIONS, ANSWERS, strict=True)] * times)


@pytest.fixture(params=MARKED)
def known(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Any, Any]:
    """A folder, transformers' model and its tokenizer."""
    return tmp_path / "base", *written(request.param, tmp_path / "base", MARKED[request.param])


def tokenizer_of(folder: Path, data: Path) -> Any:
    return Lesson(find_task("dpo"), find_task("dpo").recipe(data=data, start=folder)).plan.weights.tokenizer


@pytest.mark.parametrize("form", FORMS)
def test_pairs_are_written_as_transformers_writes_them(known: tuple[Path, Any, Any], form: Any, tmp_path: Path) -> None:
    """All ids of both conversations; learned are those of the last answer that transformers marks."""
    folder, _, theirs = known
    data = pairs(tmp_path / "pairs.jsonl", form)
    batching = PreferenceBatching(tokenizer_of(folder, data))
    dataset = read_preferences([data])
    batch = batching.batch(batching.prepare(dataset), None)
    asked = [(question, answer) for question, both in zip(QUESTIONS, ANSWERS, strict=True) for answer in both]
    for row, (question, answer) in enumerate(asked):
        ids, mask = expected(theirs, [*question, ("assistant", answer)])
        length = int(batch.inputs["lengths"][row])
        assert batch.inputs["tokens"][row, :length].tolist() == ids[:-1]
        before = len(theirs.apply_chat_template(messages(question), add_generation_prompt=True)["input_ids"])
        labels = [one if learned and at >= before else IGNORE for at, (one, learned) in enumerate(zip(ids, mask))]  # noqa: B905
        assert batch.labels[row, :length].tolist() == labels[1:]
        assert (batch.labels[row, length:] == IGNORE).all()


def test_questions_are_written_as_transformers_writes_them(known: tuple[Path, Any, Any], tmp_path: Path) -> None:
    folder, _, theirs = known
    rows = [{"prompt": messages(QUESTIONS[0])}, openai(QUESTIONS[1]), openai([*QUESTIONS[2], ("assistant", "x")])]
    found = read_questions_to_answer([write(tmp_path / "asked.jsonl", rows)])
    tokenizer = tokenizer_of(folder, pairs(tmp_path / "pairs.jsonl"))
    for passage, question in zip(found, QUESTIONS, strict=True):
        ids = theirs.apply_chat_template(messages(question), add_generation_prompt=True)["input_ids"]
        assert question_ids(passage.conversation, tokenizer).tolist() == ids


def test_a_reward_model_reads_whole_conversations(
    known: tuple[Path, Any, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With transformers' ids; a list of messages on the command line is a conversation too."""
    folder, _, theirs = known
    data, out = pairs(tmp_path / "pairs.jsonl", times=2), tmp_path / "reward"
    recipe = {"data": data, "validation": data, "start": folder, "out": out, **SHORT}
    learn(find_task("reward").recipe(**recipe, learning_rate=1e-3), console=SILENT)
    judge = foveate.load(out)
    examples = read_preferences([data])
    for example, question, both in zip(examples, QUESTIONS, ANSWERS, strict=False):
        rows = judge.processor.reads.prepare(judge.processor.reads.value(example))
        for row, answer in zip(rows, both, strict=True):
            assert row.tolist() == expected(theirs, [*question, ("assistant", answer)])[0]
    (value,) = rewards(judge, [examples[0].conversations[0]])
    main(["run", str(out), json.dumps(messages([*QUESTIONS[0], ("assistant", ANSWERS[0][0])])), "--json"])
    assert json.loads(capsys.readouterr().out)["reward"] == pytest.approx(value, abs=1e-5)
    main(["eval", str(out), "--data", str(data), "--json"])
    assert json.loads(capsys.readouterr().out)["pairs"] == 6


@pytest.mark.parametrize("lora", [None, 2], ids=["whole", "lora"])
@pytest.mark.parametrize("judged", ["conversations", "texts"])
def test_a_model_stays_one_that_chats(
    lora: int | None, judged: str, known: tuple[Path, Any, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Straight from a folder of instructions, by pairs and then by rewards."""
    folder, *_ = known
    data, asked = pairs(tmp_path / "pairs.jsonl", times=3), write(tmp_path / "asked.jsonl", [*map(openai, CHATS)] * 2)
    own: dict[str, Any] = {**SHORT, "precision": "float32", "validation_examples": 3}
    if judged == "texts":  # which reads answers alone
        (tmp_path / "pairs.tsv").write_text("".join(f"good {n}\tbad {n}\n" for n in range(8)))
        sizes = {"width": 12, "heads": 2, "layers": 1}
        reward: dict[str, Any] = {
            "model": "transformer-classifier",
            "architecture": sizes,
            "data": tmp_path / "pairs.tsv",
        }
    else:
        reward = {"start": folder, "data": data}
    learn(
        find_task("reward").recipe(**reward, validation=reward["data"], out=tmp_path / "reward", **SHORT),
        console=SILENT,
    )
    more: list[tuple[str, Path, dict[str, Any]]] = [
        ("dpo", data, {}),
        ("rlhf", asked, {"reward": tmp_path / "reward", "batch": 4, "max_tokens": 5}),
    ]
    before = folder
    for task, given, settings in more:
        recipe = find_task(task).recipe(
            data=given, validation=given, start=before, out=tmp_path / task, lora=lora, **own, **settings
        )
        learn(recipe, console=SILENT)
        before = tmp_path / task
        main(["eval", str(before), "--data", str(given), "--json"])
        measured = json.loads(capsys.readouterr().out)
        assert all(
            way["kl"] == pytest.approx(0, abs=1e-3) for name, way in measured["ways"].items() if "before" in name
        )
        main(["run", str(before), "hello", "--chat", "--decoding.max-new-tokens", "4", "--json"])
        assert json.loads(capsys.readouterr().out)["prompt"] == "hello"
    main(["export", str(before), "--out", str(tmp_path / "back")])
    assert foveate.load(tmp_path / "back")("Say it.", chat=True, max_new_tokens=6).text == (
        foveate.load(before)("Say it.", chat=True, max_new_tokens=6).text
    )
    capsys.readouterr()


def test_an_answer_ends_where_the_template_ends_it(
    known: tuple[Path, Any, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In what is drawn and learned from, and in what a run replies: its sign is not the end of a text."""
    folder, theirs, tokenizer = known
    sign = tokenizer.convert_tokens_to_ids(next(name for name in ENDS if name in tokenizer.chat_template))
    own = tokenizer_of(folder, pairs(tmp_path / "pairs.jsonl"))
    question = Conversation("", tuple(QUESTIONS[0]), 1)
    prompt = WritingPrompt(question_ids(question, own).tolist(), question)
    model = foveate.load(folder).model

    def drawn(model: Any, inputs: Any, special: Any, *_: Any, **__: Any) -> Any:
        assert special.end == sign
        return [[Hypothesis([98, 99], 0.0, 0.0, True), Hypothesis([100], 0.0, 0.0, False)]]

    monkeypatch.setattr(rollouts, "sample", drawn)
    found = rollouts.write(model, model, own, [prompt], 2, 5, torch.Generator())
    ends = [row[row != IGNORE].tolist() for row in found.labels]
    assert ends == [[98, 99, sign], [100]]
    text = tokenizer.decode([98, 99])
    assert found.texts[0] == text
    assert found.judged[0] == replace(question, turns=(*question.turns, ("assistant", text)))
    with torch.no_grad():
        logits = theirs(torch.tensor([[*prompt.tokens, 98, 99]])).logits[0].log_softmax(-1)
    nats = logits[torch.arange(len(prompt.tokens) - 1, len(logits)), torch.tensor([98, 99, sign])]
    torch.testing.assert_close(found.log_prob[0, -3:], nats, atol=5e-5, rtol=0)
    monkeypatch.undo()
    data = tmp_path / "pairs.jsonl"
    learn(
        find_task("dpo").recipe(data=data, validation=data, start=folder, out=tmp_path / "run", **SHORT), console=SILENT
    )
    assert sign in foveate.load(tmp_path / "run").completer.processor.writes.ends


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"prompt": [], "chosen": [], "rejected": []}, "line 1: the better must be a list of messages, not"),
        (
            {"prompt": messages([("user", "a")]), "chosen": messages([("assistant", "b")]), "rejected": "c"},
            "the worse must",
        ),
        (explicit([("user", "a")], "b", "c") | {"chosen": messages([("user", "b")])}, "message 2 is of the user"),
        ({name: messages([("user", "a")]) for name in ("chosen", "rejected")}, "the better must end with what the"),
        (
            {"chosen": messages(CHATS[1]), "rejected": messages(CHATS[0])},
            "the two conversations must begin with the same messages, which are answered",
        ),
        (
            {"prompt": messages([("user", "a")]), "chosen": [{"role": "tool", "content": "b"}], "rejected": []},
            "is 'tool'",
        ),
    ],
)
def test_pairs_that_are_none(row: Any, told: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=told):
        read_preferences([write(tmp_path / "pairs.jsonl", [row])])


def test_plain_columns_are_read_as_before(tmp_path: Path) -> None:
    (one,) = read_preferences([write(tmp_path / "a.jsonl", [{"prompt": "x", "chosen": "y", "rejected": "z"}])])
    assert (one.better, one.worse, one.question) == ("x y", "x z", None)


def test_without_a_template_pairs_of_conversations_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written("chatml", tmp_path / "base", None)
    data = pairs(tmp_path / "pairs.jsonl")
    for task, start in (("dpo", ["--from", str(tmp_path / "base")]), ("reward", [])):
        given = ["--data", str(data), "--validation", str(data), "--out", str(tmp_path / "run"), "--steps", "1"]
        with pytest.raises(SystemExit) as stop:
            main(["train", task, *given, *start])
        assert stop.value.code == 2
        assert "conversations need a chat template" in capsys.readouterr().err.strip().splitlines()[-1]
