"""Questions about texts: training, the folder, `foveate run`'s arguments, measures, baselines, looks, mistakes."""

from pathlib import Path

import pytest
import torch

from foveate import cli, tasks
from foveate.data.dataset import Dataset
from foveate.data.sources import Splits
from foveate.data.text.facts import TextQuestion, text_questions
from foveate.errors import TextError, UserError
from foveate.tasks.ask import Ask, Asked, Questions
from foveate.tasks.former.predictor import Predictor
from foveate.tasks.former.recipe import Training

COLOURS = ("red", "green", "blue")


def questions(name: str) -> Dataset[TextQuestion]:
    """The cat and the dog have a colour each; the question decides whose is asked for."""
    found = [
        TextQuestion(f"{cat} {dog}", f"The cat is {cat}. The dog is {dog}.", f"What is the {who}?", answer, who, place)
        for cat in COLOURS
        for dog in COLOURS
        for who, answer, place in (("cat", cat, 0), ("dog", dog, 1))
    ]
    return Dataset(name, found, "questions")


@pytest.fixture(scope="module")
def predictor(tmp_path_factory: pytest.TempPathFactory) -> Predictor:
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("runs") / "ask"
    task = Ask(
        out=out,
        examples=Questions(batch=18, validation_examples=8),
        training=Training(steps=80, learning_rate=1e-2, schedule="constant", warmup=5, validate_every=80, average=1),
        architecture={"width": 16, "embedding": 16, "dropout": 0.0},
    )
    task.learn(Splits(questions("train"), questions("dev"), questions("test")))
    return tasks.load(out)


def test_it_looks_for_what_is_asked(predictor: Predictor) -> None:
    measured = predictor.task.measure(predictor, [*questions("test")], Asked())
    assert measured.metrics["accuracy"] > 90
    assert 0 < measured.metrics["attention_in_sentence"] <= 100


def test_a_run_goes_on_with_another_answer(predictor: Predictor, tmp_path: Path) -> None:
    """The answers that it knows keep their places and weights, and a new one comes behind them."""
    grey = TextQuestion("grey", "The cat is grey. The dog is red.", "What is the cat?", "grey", "cat", 0)
    others = Dataset("others", [*list(questions("train"))[:4], grey], "questions")
    task = Ask(start=predictor.task.out, out=tmp_path / "next", training=Training(steps=1, validate_every=1, average=1))
    assert task.architecture.width == 16
    model = task.build(vocabulary=predictor.model.config.vocabulary, classes=4)
    rows = {name: tensor for name, tensor in model.state_dict().items() if tensor.shape[:1] == (4,)}
    assert rows
    for name, tensor in predictor.model.state_dict().items():
        assert torch.equal(model.state_dict()[name][: len(tensor)], tensor)
    found = task.learn(Splits(others, others, others))
    assert list(found.processor.answers) == ["blue", "green", "red", "grey"]
    assert str(predictor.task.out) in found.description["contents"]


def test_three_ways_to_ask(predictor: Predictor) -> None:
    text, question = "The cat is red. The dog is blue.", "What is the dog?"
    ways = [([text], Asked(question)), ([f"{text}\t{question}"], Asked()), ([f"{text} {question}"], Asked())]
    answers = [predictor.answer(texts, options)[0] for texts, options in ways]
    assert {(one.given, one.question, one.text) for one in answers} == {(text, question, "blue")}
    assert answers[0].line == f"{question}\tblue\t{answers[0].probability:.3f}"
    with pytest.raises(TextError, match="no question about the text: give --query"):
        predictor.answer([text], Asked())


def test_the_command_line(predictor: Predictor, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, text = str(predictor.task.out), "The cat is green. The dog is blue."
    picture = tmp_path / "ask.png"
    cli.main(["run", folder, text, "--query", "What is the cat?", "--picture", str(picture)])
    assert capsys.readouterr().out.startswith("What is the cat?\tgreen\t")
    assert picture.stat().st_size > 1000
    cli.main(["look", folder, f"{text} What is the cat?", "--out", str(tmp_path / "look.html")])
    assert "What is the cat? green" in (tmp_path / "look.html").read_text(encoding="utf-8")


def test_baselines(predictor: Predictor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(predictor.task), "open", lambda _: (questions("train"), questions("dev")))
    found = predictor.task.baselines(predictor, [*questions("test")], Asked())
    assert found["the most frequent answer"]["accuracy"] == pytest.approx(100 / 3)
    assert found["the last fitting word of the text"]["dog"] == 100


def test_tables(tmp_path: Path) -> None:
    path = tmp_path / "asked.tsv"
    path.write_text("The cat is red.\tWhat is the cat?\tred\n\n", encoding="utf-8")
    (one,) = text_questions([path])
    assert (one.place, one.text, one.answer) == ("line 1 of asked.tsv", "The cat is red.", "red")
    path.write_text("The cat is red.\tred\n", encoding="utf-8")
    with pytest.raises(UserError, match="line 1: tabs must stand between a text, a question and its answer"):
        text_questions([path])


def test_facts_answer_what_the_last_sentence_about_it_says() -> None:
    splits = tasks.task_class("ask")().open_source("facts")
    texts = [{one.text for one in part} for part in (splits.train, splits.dev, splits.test)]
    assert sum(map(len, texts)) == len(set.union(*texts))
    for one in list(splits.test)[:200]:
        sentences = one.text.split(". ")
        subject = one.question.rstrip("?").split()[-1]
        moves = ("took", "picked", "carries")
        about = [
            number
            for number, sentence in enumerate(sentences)
            if (sentence.startswith(subject) and not sentence.split()[1].startswith(moves))
            or sentence.rstrip(".").endswith(f"the {subject}")
        ]
        assert one.sentence == about[-1]
        assert one.answer in sentences[about[-1]]
