"""The task `match`, from pairs to a run folder to probabilities: what it learns, measures and refuses."""

import json
from io import StringIO
from pathlib import Path

import pytest
import torch
import words
from rich.console import Console

import foveate
from foveate import tasks
from foveate.errors import UserError
from foveate.forms.answers import Failure, NoOptions
from foveate.tasks.learning import Lesson, learn
from foveate.tasks.match import Matcher
from foveate.tasks.recipe import Recipe
from foveate.tasks.viewers import open_model


def recipe(out: Path, **changes) -> Recipe:
    settings = {"steps": 90, "learning_rate": 1e-2, "schedule": "linear", "warmup": 10, "average": 1, "device": "cpu"}
    settings |= {"vocabulary": 120, "batch": 256, "validation_examples": 20}
    settings |= {"architecture": {"width": 32, "dropout": 0.0}}
    return foveate.recipe("match", out=out, **{**settings, **changes})


@pytest.fixture(scope="module")
def matcher(tmp_path_factory: pytest.TempPathFactory) -> Matcher:
    torch.manual_seed(0)
    return learn(recipe(tmp_path_factory.mktemp("match") / "run"), words.splits(), Console(file=StringIO()))


def test_it_learns_which_texts_belong_together(matcher: Matcher) -> None:
    right = matcher.run("red cat\trouge chat")
    wrong = matcher.run("red cat\tmaison lune")
    assert right.probability > 0.8
    assert wrong.probability < 0.2
    assert right.line == f"{right.probability:.4f}\tred cat\trouge chat"


def test_answers_in_order_and_nothing_for_nothing(matcher: Matcher) -> None:
    texts = ["red cat\trouge chat", "", "small dog\tpetit chien", "red cat\t", "big sun\tgrand soleil"]
    found = matcher.answer(texts)
    assert [(each.source, each.target) for each in found] == [tuple((text or "\t").split("\t")) for text in texts]
    alone = [matcher.run(text).probability for text in texts]
    assert [each.probability for each in found] == pytest.approx(alone, abs=1e-5)
    assert found[1].line == ""
    assert found[3].line == "0.0000\tred cat\t"
    found = matcher.answer(["red\trouge", "red\t" + "rouge " * 129])
    assert [one.long for one in found] == [False, True]


@pytest.mark.parametrize(("text", "tabs"), [("red cat", 0), ("red\tcat\trouge", 2)])
def test_what_is_no_pair(matcher: Matcher, text: str, tabs: int) -> None:
    with pytest.raises(UserError, match=f"has {tabs} tabs, where one tab must separate two texts"):
        matcher.run(text)
    found = matcher.answer(["red cat\trouge chat", text])
    assert [type(one) is Failure for one in found] == [False, True]


def test_a_folder_gives_the_same_matcher(matcher: Matcher, tmp_path: Path) -> None:
    matcher.save(tmp_path / "copy")
    found = tasks.load(tmp_path / "copy")
    assert found.processor.writes.thresholds == matcher.processor.writes.thresholds
    assert found.run("sea moon\tmer lune") == matcher.run("sea moon\tmer lune")


def test_measures_beside_rules(matcher: Matcher, tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in dict.fromkeys(words.pairs(60, 9))))
    found = matcher.evaluate([path], NoOptions(), Console(file=StringIO()))
    assert [row[0] for row in found.rows] == [
        "siamese-bag",
        "length ratio",
        "shared letter triples",
        "cosine of TF-IDF",
        "cosine of LSA vectors",
        "always yes",
    ]
    own, length, *_, always = found.figures["ways"].values()
    assert own["accuracy"] > 90
    assert own["roc_auc"] > 95
    assert length["accuracy"] < 65
    assert 49 < always["accuracy"] < 55
    assert always["roc_auc"] == 50
    assert len(found.answers) == found.figures["pairs"]
    json.dumps(found.figures)
    assert found.notes[1].endswith("wrong ones with targets of about the same length")


def test_vectors_of_words_beside_the_model(tmp_path: Path) -> None:
    """They are counted in the training text: the words of a pair get near each other, those of both languages too."""
    train, validation = tmp_path / "train.tsv", tmp_path / "validation.tsv"
    for path, drawn in ((train, words.pairs(300, 3)), (validation, words.pairs(80, 4))):
        path.write_text("".join(f"{source}\t{target}\n" for source, target in dict.fromkeys(drawn)))
    changes = {"data": train, "validation": validation, "batch": 512, "steps": 1}
    learn(recipe(tmp_path / "run", **changes), console=Console(file=StringIO()))
    matcher = tasks.load(tmp_path / "run")
    ways = matcher.evaluate([validation], NoOptions(), Console(file=StringIO())).figures["ways"]
    assert [*ways][3:5] == ["cosine of TF-IDF", "cosine of LSA vectors"]
    assert ways["cosine of LSA vectors"]["accuracy"] > 85
    assert ways["cosine of LSA vectors"]["roc_auc"] > ways["cosine of TF-IDF"]["roc_auc"]
    train.unlink()
    found = tasks.load(tmp_path / "run").evaluate([validation], NoOptions(), Console(file=StringIO()))
    assert "cosine of LSA vectors" not in found.figures["ways"]
    assert "no vectors of words to compare with" in found.notes[-1]


def test_a_picture_of_both_texts(matcher: Matcher) -> None:
    figure = matcher.picture(matcher.run("red cat\trouge chat"))
    columns = [[label.get_text() for label in axes.get_xticklabels()] for axes in figure.axes[:2]]
    assert [" ".join(shown) for shown in columns] == ["red cat ¶", "rouge chat ¶"]


def test_texts_that_are_the_same_share_a_map(matcher: Matcher, tmp_path: Path) -> None:
    """Where one encoder reads both."""
    (axes, *_) = matcher.picture(matcher.run("red cat\tred cat")).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["red", "cat", "¶"]
    assert len(axes.get_yticklabels()) == 2
    matcher.save(tmp_path)
    (panel,) = open_model(tmp_path).look("red cat\tred cat", 10).document().sites
    assert [len(panel.queries.labels), len(panel.keys.labels)] == [2, 3]


def test_a_page_of_both_texts(matcher: Matcher, tmp_path: Path) -> None:
    matcher.save(tmp_path)
    seen = open_model(tmp_path).look("small red cat\tchat\n", 10)
    reader = "source_encoder.pooling"
    assert seen.tokens == {
        reader: (["query"], ["small", "red", "cat", "¶"]),
        f"{reader}#2": (["query"], ["chat", "¶"]),
    }
    probability = matcher.run("small red cat\tchat").probability
    assert seen.notes[:2] == [f"siamese-bag from {tmp_path}", f"Do they belong together? {probability:.4f}"]
    seen.document()
    with pytest.raises(UserError, match="the pair has 4 tokens, but the limit is 3"):
        open_model(tmp_path).look("small red cat\tchat", 3)
    assert open_model(tmp_path).look("small red cat\r\n\nchat", 10).tokens == seen.tokens
    with pytest.raises(UserError, match=r"reads two texts: separate them by a newline or a tab$"):
        open_model(tmp_path).look("small red cat", 10)
    with pytest.raises(UserError, match="has 2 tabs, where one tab must separate two texts"):
        open_model(tmp_path).look("small\tred\tcat", 10)


def test_a_model_that_does_not_attend_gives_none(tmp_path: Path) -> None:
    settings = recipe(tmp_path, model="siamese-acceptor", steps=1)
    acceptor = learn(settings, words.splits(), Console(file=StringIO()))
    assert acceptor.picture(acceptor.run("red cat\trouge chat")) is None
    with pytest.raises(
        UserError,
        match=r"siamese-acceptor from .* does not attend: there is nothing to see; .* siamese-attentive, siamese-bag$",
    ):
        open_model(tmp_path).look("red cat\trouge chat", 10)


def test_an_encoder_for_each_language(tmp_path: Path) -> None:
    text = {"vocabulary": 60, "batch": 512, "shared": False}
    with pytest.raises(UserError, match=r"needs one vocabulary: share it, or set --architecture\.no-one-encoder"):
        Lesson(tasks.find_task("match"), recipe(tmp_path / "one", **text)).check()
    sizes, told = {"width": 8, "one_encoder": False}, StringIO()
    settings = recipe(tmp_path / "two", **text, architecture=sizes, steps=1)
    found = learn(settings, words.splits(), Console(file=told, width=200))
    sides = [len(side) for side in found.processor.reads.tokenizers]
    assert "{} and {} tokens".format(*sides) in told.getvalue()
    assert tasks.load(tmp_path / "two").run("red\trouge") == found.run("red\trouge")
    seen = open_model(tmp_path / "two").look("red cat\tchat", 10, sites=["target_encoder*"])
    assert [keys[-1] for _, keys in seen.tokens.values()] == ["¶"]
    assert "".join(next(iter(seen.tokens.values()))[1]).replace("·", "").startswith("chat")


def test_a_matcher_of_files_has_no_test_text(matcher: Matcher) -> None:
    with pytest.raises(UserError, match="was trained on files: give --data SRC TGT"):
        matcher.evaluate([], NoOptions(), Console(file=StringIO()))


def test_a_matcher_goes_on_with_other_pairs(matcher: Matcher, tmp_path: Path) -> None:
    settings = foveate.recipe("match", start=matcher.folder, out=tmp_path / "next", steps=1, average=1, device="cpu")
    assert settings.architecture.width == 32
    assert settings.reads.vocabulary == 120
    found = learn(settings, words.splits(40), Console(file=StringIO()))
    assert found.processor.sizes() == matcher.processor.sizes()
    assert found.processor.writes.thresholds == matcher.processor.writes.thresholds
