"""The task `classify`, from a file to a run folder to decisions: what it learns, measures, draws and refuses."""

import json
import shutil
from io import StringIO
from pathlib import Path

import pytest
import torch
import verdicts
from rich.console import Console

import foveate
from foveate.errors import UserError
from foveate.forms.answers import NoOptions
from foveate.forms.label import ShowLabels
from foveate.tasks.classify import TASK
from foveate.tasks.learning import learn
from foveate.tasks.skill import Skill
from foveate.tasks.viewers import open_model

SILENT = Console(file=StringIO())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("classify") / "run"


@pytest.fixture(scope="module")
def told() -> StringIO:
    return StringIO()


@pytest.fixture(scope="module")
def classifier(folder: Path, told: StringIO) -> Skill:
    torch.manual_seed(0)
    return learn(verdicts.recipe(folder), verdicts.splits(), Console(file=told, width=200))


def tsv(path: Path, examples: list[tuple[str, str]]) -> Path:
    path.write_text("".join(f"{label}\t{text}\n" for label, text in examples), encoding="utf-8")
    return path


def refused(call, *arguments: object) -> str:
    with pytest.raises(UserError) as caught:
        call(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_it_learns_and_finds_the_telling_word(classifier: Skill) -> None:
    found = classifier.run("the film was a great story")
    assert found.label == "praise"
    assert found.probability == found.probabilities["praise"] > 0.9
    assert sum(found.probabilities.values()) == pytest.approx(1)
    assert found.line == f"praise\t{found.probability:.3f}"
    reads = classifier.processor.reads
    prepared = reads.prepare("the film was a great story")
    assert reads.names(prepared) == ["<start>", "the", "film", "was", "a", "great", "story"]
    assert classifier.watch(reads.tensors([prepared])[0]).sites == ["pooling"]


def test_what_training_tells(classifier: Skill, told: StringIO) -> None:
    lines = told.getvalue().splitlines()
    parameters = sum(parameter.numel() for parameter in classifier.model.parameters())
    assert lines[:5] == [
        "verdicts.300: 300 texts (163 blame, 137 praise)",
        "verdicts.40: 40 texts (23 blame, 17 praise)",
        "300 texts are few to learn words from; English ones are better learned --from minilm",
        "verdicts.300: 0 of 300 texts left out for more than 64 tokens",
        f"rnn-attentive-classifier: {parameters:,} parameters, 2 classes, 19 words",
    ]
    assert "validation: accuracy 100  macro_f1 100" in told.getvalue()


def test_answers_in_order_and_nothing_for_nothing(classifier: Skill) -> None:
    texts = ["a bad story", "", "dogs and cats of the long film was fine", "  ", "poor dogs"]
    found = classifier(texts)
    assert [one.line.split("\t")[0] for one in found] == ["blame", "", "praise", "", "blame"]
    for text, answer in zip(texts, found, strict=True):
        if text.strip():
            assert classifier(text).probability == pytest.approx(answer.probability, abs=1e-5)
    assert classifier.answer([], ShowLabels()) == []
    assert [one.long for one in classifier(["a bad story", " ".join(["bad"] * 65)])] == [False, True]


def test_loaded_it_is_the_same(classifier: Skill, folder: Path) -> None:
    assert {path.name for path in folder.glob("*.*")} == {
        "config.json",
        "metrics.jsonl",
        "model.safetensors",
        "processor.json",
        "tokenizer.json",
    }
    loaded = foveate.load(folder)
    assert loaded.run("a fine film") == classifier.run("a fine film")
    assert loaded.processor.writes.labels == classifier.processor.writes.labels == {"blame": 163, "praise": 137}
    assert not loaded.model.training


def test_evaluation_beside_the_majority(classifier: Skill, tmp_path: Path) -> None:
    """By hand: of three blamed and one praised text "blame" is right three times; its F1 is 6/7, that of praise 0."""
    data = [("blame", "a bad film"), ("blame", "poor cats"), ("blame", "the film was good"), ("praise", "great dogs")]
    found = classifier.evaluate([tsv(tmp_path / "test.tsv", data)], NoOptions(), SILENT)
    majority = found.figures["ways"]["always blame"]
    assert majority == {"accuracy": 75.0, "macro_f1": pytest.approx(100 * 6 / 7 / 2)}
    ours = found.figures["ways"]["rnn-attentive-classifier"]
    assert ours == {"accuracy": 75.0, "macro_f1": pytest.approx(100 * (4 / 5 + 2 / 3) / 2)}
    assert [answer.split("\t")[0] for answer in found.answers] == ["blame", "blame", "praise", "praise"]
    first, *_, last = found.rows
    assert (first, last) == (["rnn-attentive-classifier", "75.00", "73.33"], ["always blame", "75.00", "42.86"])
    assert found.notes == ["4 texts", "2 labels"]
    others = [*data, ("odd", "x"), ("new", "y"), ("odd", "z")]
    found = classifier.evaluate([tsv(tmp_path / "test.tsv", others)], NoOptions(), SILENT)
    assert found.notes[2] == "3 of 7 have labels that the model did not learn: odd, new"


def test_evaluation_beside_counted_words(tmp_path: Path) -> None:
    """Where the training text is still there, as it was."""
    text, asked = (
        tsv(tmp_path / "text.tsv", verdicts.examples(60, 1)),
        tsv(tmp_path / "test.tsv", verdicts.examples(30, 2)),
    )
    trained = learn(verdicts.recipe(tmp_path / "run", steps=1, data=text, validation=text), console=SILENT)
    ways = trained.evaluate([asked], NoOptions(), SILENT).figures["ways"]
    counted = ["naive Bayes of words and pairs", "TF-IDF of words and pairs, logistic regression"]
    assert [*ways][1:3] == counted
    assert min(ways[way]["accuracy"] for way in counted) > 80
    text.write_text("praise\ta good film\nblame\ta bad film\n")
    for skill in (trained, foveate.load(trained.folder)):
        found = skill.evaluate([asked], NoOptions(), SILENT)
        assert not {*counted} & found.figures["ways"].keys()
        assert found.notes[-1].startswith("not compared with simple ways to learn it: ")


def test_evaluation_of_the_source_that_it_was_trained_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(
        "foveate.data.sources.named.open_source",
        lambda name, *_, task: asked.append((name, task)) or verdicts.splits(60),
    )
    made = learn(verdicts.recipe(tmp_path, steps=1, source="movie-sentiment"), console=SILENT)
    assert made.evaluate([], NoOptions(), SILENT).figures["texts"] == 50
    assert {*asked} == {("movie-sentiment", "classify")}


def test_a_picture_has_a_row_for_the_decision(classifier: Skill, tmp_path: Path) -> None:
    figure = classifier.picture(classifier.run("the film was a great story"))
    figure.savefig(tmp_path / "picture.png")
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()][1:] == ["the", "film", "was", "a", "great", "story"]
    (row,) = (label.get_text() for label in axes.get_yticklabels())
    assert row.startswith("praise 0.9") or row == "praise 1.00"


@pytest.mark.parametrize(
    ("model", "architecture", "title"),
    [
        ("rnn-acceptor", {}, None),
        ("transformer-classifier", {"pooling": "first"}, "encoder.blocks.1.self, mean of 3 heads"),
        ("transformer-classifier", {"pooling": "mean"}, "encoder.blocks.1.self, mean of 3 heads"),
        ("transformer-classifier", {"pooling": "attention"}, "pooling"),
    ],
)
def test_what_pictures_show(tmp_path: Path, model: str, architecture: dict, title: str | None) -> None:
    """The last place that attends; nothing for an acceptor, which cannot be looked at either."""
    sizes = {"width": 12, "heads": 3, "feedforward": 7} if model.startswith("transformer") else {"width": 12}
    recipe = verdicts.recipe(tmp_path, steps=1, model=model, architecture={**sizes, **architecture})
    made = learn(recipe, verdicts.splits(60), SILENT)
    figure = made.picture(made.run("bad cats"))
    if title is None:
        assert figure is None
        assert refused(open_model, tmp_path).endswith(
            "does not attend: there is nothing to see; "
            "presets of classify that do: rnn-attentive-classifier, rnn-own-query-classifier, transformer-classifier"
        )
    else:
        assert [text.get_text() for text in figure.texts] == [title]
        assert open_model(tmp_path).examples  # for the explorer


def test_looking_at_it(classifier: Skill, folder: Path) -> None:
    viewer = open_model(folder)
    seen = viewer.look("a good film", 100)
    assert seen.tokens == {"pooling": (None, ["<start>", "a", "good", "film"])}
    assert seen.notes[:2] == [
        f"rnn-attentive-classifier from {folder}",
        f"Answer: {classifier.run('a good film').line}".replace("\t", " "),
    ]
    assert len(seen.document().sites) == 1
    assert refused(viewer.look, "a good film", 3).startswith("the text has 4 tokens, but the limit is 3")
    assert refused(viewer.look, " ", 9) == "the text is empty: there is nothing to look at"
    long = viewer.look(" ".join(["bad"] * 65), 1000)
    assert long.notes[2] == "The text is longer than all of the training; the answer may be poor."


def test_a_resumed_training_ends_as_the_uninterrupted_one(tmp_path: Path) -> None:
    def trained(name: str, steps: int) -> dict[str, torch.Tensor]:
        recipe = verdicts.recipe(tmp_path / name, steps=steps, architecture={"width": 12, "dropout": 0.3})
        return learn(recipe, verdicts.splits(100), SILENT).model.state_dict()

    whole = trained("whole", 12)
    trained("parts", 5)
    resumed = trained("parts", 12)
    assert all(torch.equal(resumed[name], whole[name]) for name in whole)
    assert (tmp_path / "parts/tokenizer.json").read_bytes() == (tmp_path / "whole/tokenizer.json").read_bytes()


@pytest.mark.parametrize("tokens", ["subwords", "words", "characters"])
def test_own_text_in_a_file_cut_into(tmp_path: Path, tokens: str) -> None:
    recipe = verdicts.recipe(
        tmp_path / "run", steps=2, tokens=tokens, data=(tsv(tmp_path / "a.tsv", verdicts.examples(61, 1)),)
    )
    told = StringIO()
    learn(recipe, console=Console(file=told, width=200))
    lines = told.getvalue().splitlines()
    assert lines[0].startswith("a.tsv: 49 texts (")
    assert lines[1].startswith("a.tsv, held out: 12 texts (")
    assert "--from minilm" in lines[2]
    assert f" {tokens}" in lines[4]
    assert (
        foveate.load(tmp_path / "run").run("BAD cats").probabilities
        == foveate.load(tmp_path / "run").run("bad cats").probabilities
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "nothing to learn from: name a source (see `foveate data`) or give --data FILE"),
        ({"source": "emoji"}, "emoji is text for translate, match and embed; sources for classify: "),
        ({"data": (Path("a"), Path("b"))}, "labelled text is one file of label<TAB>text lines; 2 files were given"),
        ({"max_length": 0}, "max_length is 0, but must be at least 1"),
        ({"model": "rnn"}, "rnn is a model for another task; the task classify takes bert-tiny, "),
        ({"model": "rnn-acepter"}, "unknown model 'rnn-acepter'; did you mean rnn-acceptor"),
        ({"architecture": {"width": 7}}, "a bidirectional layer needs an even width, not 7"),
    ],
)
def test_a_recipe_that_cannot_be(tmp_path: Path, changes: dict, message: str) -> None:
    assert refused(lambda: learn(verdicts.recipe(tmp_path / "run", **changes), console=SILENT)).startswith(message)
    assert not (tmp_path / "run").exists()


def test_labels_that_cannot_be(tmp_path: Path) -> None:
    one = tsv(tmp_path / "one.tsv", [("same", f"text {number}") for number in range(30)])
    two = tsv(tmp_path / "two.tsv", [("praise", "text"), ("blame", "text")])
    other = tsv(tmp_path / "other.tsv", [("praise", "x"), ("censure", "y")])

    def said(*paths: Path) -> str:
        return refused(
            lambda: learn(verdicts.recipe(tmp_path / "run", data=paths[:1], validation=paths[1:]), None, SILENT)
        )

    assert said(one) == "one.tsv: every text has the label 'same'; deciding takes two labels"
    assert said(two, other) == "other.tsv has the label 'censure', which two.tsv does not have"
    assert said(two) == "two.tsv has 2 texts, too few to hold some out; give --validation FILE"


def test_nothing_to_measure_on(classifier: Skill) -> None:
    said = refused(classifier.evaluate, [], NoOptions(), SILENT)
    assert said == "this model was trained on files: give --data FILE to measure it on"


@pytest.fixture
def copy(classifier: Skill, folder: Path, tmp_path: Path) -> Path:
    return shutil.copytree(folder, tmp_path / "copy")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json", "processor.json"])
def test_a_missing_or_truncated_file(copy: Path, name: str) -> None:
    whole = (copy / name).read_bytes()
    for size in (0, 1, len(whole) // 3, len(whole) - 2):
        (copy / name).write_bytes(whole[:size])
        assert name in refused(foveate.load, copy)
    shutil.rmtree(copy / "checkpoints")  # a config that is missing there means that the training has not ended
    (copy / name).unlink()
    assert name in refused(foveate.load, copy)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"blame": 1}, "has the classes 2, but the files beside it 1: probably they are of two different"),
        ({"blame": "many", "praise": 1}, "labels is {'blame': 'many', 'praise': 1}, but must be"),
    ],
)
def test_labels_that_were_edited(copy: Path, labels: dict, message: str) -> None:
    values = json.loads((copy / "processor.json").read_text())
    (copy / "processor.json").write_text(json.dumps({**values, "writes": {"labels": labels}}))
    assert message in refused(foveate.load, copy)


def test_a_recipe_survives_json() -> None:
    for name in TASK.presets():
        recipe = TASK.recipe(data=Path("a.tsv"), model=name, architecture={"dropout": 0.25})
        assert TASK.from_json(json.loads(json.dumps(recipe.as_json())), "here") == recipe
