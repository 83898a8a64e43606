"""Questions about texts: training, the folder, `foveate run`'s arguments, measures, baselines, looks, mistakes."""

from pathlib import Path

import pytest
import torch

import foveate
from foveate import cli, tasks
from foveate.data.dataset import Dataset
from foveate.data.sources.splits import Splits
from foveate.data.text.facts import TextQuestion, text_questions
from foveate.errors import UserError
from foveate.forms.answers import Failure, NoOptions
from foveate.forms.text_question import AskOptions
from foveate.tasks.ask import Answerer
from foveate.tasks.learning import Lesson, learn

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
def skill(tmp_path_factory: pytest.TempPathFactory) -> Answerer:
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("runs") / "ask"
    training = {"steps": 80, "learning_rate": 1e-2, "schedule": "constant", "warmup": 5, "validate_every": 80}
    architecture = {"width": 16, "embedding": 16, "dropout": 0.0}
    recipe = foveate.recipe(
        "ask", out=out, batch=18, validation_examples=8, architecture=architecture, average=1, **training
    )
    learn(recipe, Splits(questions("train"), questions("dev"), questions("test")))
    return tasks.load(out)


def test_it_looks_for_what_is_asked(skill: Answerer) -> None:
    _, metrics = skill.measure([*questions("test")], NoOptions())
    assert metrics["accuracy"] > 90
    assert 0 < metrics["attention_in_sentence"] <= 100


def test_a_run_goes_on_with_another_answer(skill: Answerer, tmp_path: Path) -> None:
    """The answers that it knows keep their places and weights, and a new one comes behind them."""
    grey = TextQuestion("grey", "The cat is grey. The dog is red.", "What is the cat?", "grey", "cat", 0)
    others = Dataset("others", [*list(questions("train"))[:4], grey], "questions")
    recipe = foveate.recipe("ask", start=skill.folder, out=tmp_path / "next", steps=1, validate_every=1, average=1)
    assert recipe.architecture.width == 16
    model = Lesson(tasks.find_task("ask"), recipe).build(vocabulary=skill.model.config.vocabulary, classes=4)
    rows = {name: tensor for name, tensor in model.state_dict().items() if tensor.shape[:1] == (4,)}
    assert rows
    for name, tensor in skill.model.state_dict().items():
        assert torch.equal(model.state_dict()[name][: len(tensor)], tensor)
    found = learn(recipe, Splits(others, others, others))
    assert list(found.processor.writes.labels) == ["blue", "green", "red", "grey"]
    assert str(skill.folder) in found.description["contents"]


def test_three_ways_to_ask(skill: Answerer) -> None:
    text, question = "The cat is red. The dog is blue.", "What is the dog?"
    ways = [([text], AskOptions(question)), ([f"{text}\t{question}"], None), ([f"{text} {question}"], None)]
    answers = [skill.answer(texts, options)[0] for texts, options in ways]
    assert {(*skill.processor.reads.open(one.given), one.label) for one in answers} == {(text, question, "blue")}
    assert answers[0].line == f"{question}\tblue\t{answers[0].probability:.3f}"
    assert skill.run(text, query=question).line == answers[0].line
    with pytest.raises(UserError, match="no question about the text: give --query"):
        skill.run(text)
    found = skill.answer([text, "", f"{text} {question}"])
    assert [type(one) is Failure for one in found] == [True, False, False]
    assert [one.line for one in found] == ["", "", answers[0].line]


def test_the_command_line(skill: Answerer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, text = str(skill.folder), "The cat is green. The dog is blue."
    picture = tmp_path / "ask.png"
    cli.main(["run", folder, text, "--query", "What is the cat?", "--picture", str(picture)])
    assert capsys.readouterr().out.startswith("What is the cat?\tgreen\t")
    assert picture.stat().st_size > 1000
    cli.main(["look", folder, f"{text} What is the cat?", "--out", str(tmp_path / "look.html")])
    page = (tmp_path / "look.html").read_text(encoding="utf-8")
    assert "What is the cat? green" in page
    capsys.readouterr()
    with pytest.raises(SystemExit) as exited:
        cli.main(["run", folder, text, f"{text} What is the cat?"])
    found = capsys.readouterr()
    assert exited.value.code == UserError.status
    assert found.out.startswith("\nWhat is the cat?\tgreen\t")
    assert "no question about the text" in found.err


def test_a_look_names_the_question_and_the_words(skill: Answerer) -> None:
    result = skill.look("The cat is green. The dog is blue. What is the cat?")
    (site,) = result.sight.sites
    question, words = result.tokens[site]
    assert question == ["What is the cat?"]
    assert [*words] == ["the", "cat", "is", "green", ".", "the", "dog", "is", "blue", "."]


def test_baselines(skill: Answerer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(skill), "train_examples", lambda _: questions("train"))
    found = skill.baselines([*questions("test")], NoOptions())
    assert found["the most frequent answer"]["accuracy"] == pytest.approx(100 / 3)
    assert found["the last fitting word of the text"]["dog"] == 100


def test_questions_about_one_text_are_on_one_side(tmp_path: Path) -> None:
    recipe = foveate.recipe("ask", out=tmp_path)
    lines = [f"The cat {number} is red.\tWhat is the cat{mark}?\tred" for number in range(40) for mark in ("", " now")]
    (tmp_path / "asked.tsv").write_text("\n".join(lines), encoding="utf-8")
    recipe.examples.data = (tmp_path / "asked.tsv",)
    train, held_out = Lesson(tasks.find_task("ask"), recipe).open()
    assert not {one.text for one in train} & {one.text for one in held_out}


def test_tables(tmp_path: Path) -> None:
    path = tmp_path / "asked.tsv"
    path.write_text("The cat is red.\tWhat is the cat?\tred\n\n", encoding="utf-8")
    (one,) = text_questions([path])
    assert (one.place, one.text, one.answer) == ("line 1 of asked.tsv", "The cat is red.", "red")
    path.write_text("The cat is red.\tred\n", encoding="utf-8")
    with pytest.raises(UserError, match="line 1: 1 tabs, but a line must be text<TAB>question<TAB>answer"):
        text_questions([path])


def test_facts_answer_what_the_last_sentence_about_it_says() -> None:
    recipe = foveate.recipe("ask")
    splits = tasks.find_task("ask").open_source("facts", recipe)
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
