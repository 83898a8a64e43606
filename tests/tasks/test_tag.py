"""The task `tag`, from a file to a run folder to tags: what it learns, what it measures, and what it refuses."""

import json
import random
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
import torch
from rich.console import Console

import foveate
from foveate import tasks
from foveate.data.dataset import Dataset
from foveate.data.sources.splits import Splits
from foveate.data.text.tagged import Tagged, tagged_dataset
from foveate.errors import UserError
from foveate.forms.answers import NoOptions
from foveate.tasks.learning import learn
from foveate.tasks.recipe import Recipe
from foveate.tasks.skill import Skill

STEMS = ["walk", "talk", "jump", "play", "cook", "look", "help", "call"]


def sentences(count: int, seed: int) -> list[list[tuple[str, str]]]:
    """A stem is a noun after "the" and a verb after "they"; with "-ed" it is a verb anywhere."""
    generator, found = random.Random(seed), []
    for _ in range(count):
        verb, noun = generator.choice(STEMS), generator.choice(STEMS)
        found.append(
            [("they", "PRON"), (verb + generator.choice(["", "ed"]), "VERB"), ("the", "DET"), (noun, "NOUN")][
                generator.choice([0, 2]) :
            ]
        )
    return found


def recipe(out: Path, **changes) -> Recipe:
    settings = {"steps": 90, "learning_rate": 2e-2, "schedule": "linear", "warmup": 5, "average": 1, "device": "cpu"}
    settings |= {"batch": 256, "validation_examples": 20}
    settings |= {"architecture": {"width": 32, "embedding": 16, "dropout": 0.0}}
    if "start" not in changes:
        changes = {"model": "birnn-tagger", **changes}
    return foveate.recipe("tag", out=out, **{**settings, **changes})


def text(count: int) -> Dataset[Tagged]:
    tagged = [Tagged.of_pairs(line, pairs) for line, pairs in enumerate(sentences(count, count), 1)]
    return tagged_dataset(f"stems.{count}", tagged)


def splits() -> Splits[Dataset[Tagged]]:
    return Splits(*map(text, (300, 30, 40)))


@pytest.fixture(scope="module")
def told() -> StringIO:
    return StringIO()


@pytest.fixture(scope="module")
def tagger(tmp_path_factory: pytest.TempPathFactory, told: StringIO) -> Skill:
    torch.manual_seed(0)
    return learn(recipe(tmp_path_factory.mktemp("tag") / "run"), splits(), Console(file=told, width=200))


def test_it_learns_context_and_spelling(tagger: Skill) -> None:
    assert tagger.run("they help the help").line == "they/PRON help/VERB the/DET help/NOUN"
    assert tagger.run("they smoked the call").tags[1] == "VERB"  # never seen; spelt like a verb


def test_what_training_tells(tagger: Skill, told: StringIO) -> None:
    lines = told.getvalue().splitlines()
    assert lines[0].startswith("stems.300: 300 sentences (")
    assert lines[2] == "stems.300: 0 of 300 sentences left out for more than 128 words"
    assert lines[3].startswith("birnn-tagger: ")
    assert lines[3].endswith("18 words of 18 known by themselves, the others by their spelling")


def test_answers_in_order_and_nothing_for_nothing(tagger: Skill) -> None:
    found = tagger.answer(["the walk", "", "  they  walked   the play ", "they call the help"], NoOptions())
    assert [each.line for each in found] == [
        "the/DET walk/NOUN",
        "",
        "they/PRON walked/VERB the/DET play/NOUN",
        "they/PRON call/VERB the/DET help/NOUN",
    ]
    assert [one.long for one in tagger.answer(["they " * 128, "they " * 129])] == [False, True]


def test_a_folder_gives_the_same_tagger(tagger: Skill, tmp_path: Path) -> None:
    tagger.save(tmp_path / "copy")
    found = tasks.load(tmp_path / "copy")
    assert found.processor.writes.lexicon == tagger.processor.writes.lexicon
    assert found.run("they play the jump") == tagger.run("they play the jump")
    replace(tagger.processor.writes.lexicon, repeated=3).save(tmp_path / "copy" / "lexicon.json")
    with pytest.raises(UserError, match="has the vocabulary 22, but the files beside it 7: probably"):
        tasks.load(tmp_path / "copy")
    (tmp_path / "copy" / "lexicon.json").unlink()
    with pytest.raises(UserError, match=r"there is no lexicon\.json"):
        tasks.load(tmp_path / "copy")


def test_measures_beside_baselines(tagger: Skill, tmp_path: Path) -> None:
    path = tmp_path / "test.tsv"
    path.write_text("they\tPRON\nsmoked\tVERB\nthe\tDET\nhelp\tNOUN\n\nthe\tDET\nhelp\tNOUN\n")
    found = tagger.evaluate([path], NoOptions(), Console(file=StringIO()))
    assert found.figures["sentences"] == 2
    assert found.notes[1] == "6 words, 4 tags; 1 unknown words, which the training text lacks"
    assert [row[0] for row in found.rows] == ["birnn-tagger", "each word's most frequent tag", "always DET"]
    own, unigram, majority = found.figures["ways"].values()
    assert own == {"accuracy": 100, "accuracy_unknown": 100, "macro_f1": 100}
    right = 5 if tagger.processor.writes.lexicon.words["help"] == "NOUN" else 3
    assert unigram["accuracy"] == pytest.approx(100 * right / 6)
    assert unigram["accuracy_unknown"] == 0
    assert majority["accuracy"] == pytest.approx(100 * 2 / 6)
    assert found.headings[2] == "accuracy unknown"
    assert found.answers == ["they/PRON smoked/VERB the/DET help/NOUN", "the/DET help/NOUN"]
    json.dumps(found.figures)
    verb = next(word for word, tag in tagger.processor.writes.lexicon.words.items() if tag == "VERB")
    path.write_text(f"they\tPRONOUN\n{verb}\tVERB\n")
    found = tagger.evaluate([path], NoOptions(), Console(file=StringIO()))
    assert found.headings[1:] == ["accuracy", "macro F1"]
    assert found.notes[2] == "1 of 2 have tags that the model did not learn: PRONOUN"


def test_a_tagger_of_files_has_no_test_text(tagger: Skill) -> None:
    with pytest.raises(UserError, match="was trained on files: give --data FILE"):
        tagger.evaluate([], NoOptions(), Console(file=StringIO()))


def test_only_a_model_that_attends_gives_a_picture(tagger: Skill, tmp_path: Path) -> None:
    assert tagger.picture(tagger.run("they help")) is None
    sizes = {"width": 12, "heads": 2, "feedforward": 8}
    changes = {"model": "transformer-tagger", "architecture": sizes, "steps": 1}
    attentive = learn(recipe(tmp_path, **changes), splits(), Console(file=StringIO()))
    figure = attentive.picture(attentive.run("they help the call"))
    rows, columns = figure.axes[0].get_yticklabels(), figure.axes[0].get_xticklabels()
    assert [label.get_text().split("/")[0] for label in rows] == ["they", "help", "the", "call"]
    assert [label.get_text() for label in columns] == ["they", "help", "the", "call"]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({}, "nothing to learn from: name a source (see `foveate data`) or give --data FILE"),
        ({"source": "emoji"}, "emoji is text for translate"),
        ({"source": "brown", "batch": 0}, "batch is 0, but must be at least 1"),
        ({"source": "brown", "data": (Path("a"),)}, "both the source 'brown' and files are given"),
    ],
)
def test_recipes_that_cannot_work(changes, complaint, tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        learn(recipe(tmp_path, **changes), console=Console(file=StringIO()))
    assert str(caught.value).startswith(complaint)


def test_a_translator_is_no_tagger(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"rnn is a model for another task; the task tag takes .*, birnn-tagger"):
        recipe(tmp_path, model="rnn")
    with pytest.raises(UserError, match=r"^rnn-acceptor is a model for another task; the task tag takes bert-tiny"):
        recipe(tmp_path, model="rnn-acceptor")
    with pytest.raises(UserError, match=r"^architecture.head is 'text', but the task tag needs 'tokens'$"):
        recipe(tmp_path, architecture={"head": "text"})


def test_a_bert_tags_words_by_their_first_pieces(tmp_path: Path) -> None:
    """From nothing, then from its own weights with another head's tags."""
    sizes = {"width": 24, "layers": 1, "heads": 2, "feedforward": 31}
    console = Console(file=StringIO())
    learn(recipe(tmp_path / "bert", model="bert-mini", architecture=sizes), splits(), console)
    tagger = tasks.load(tmp_path / "bert")
    assert tagger.run("they walked the talk").line == "they/PRON walked/VERB the/DET talk/NOUN"
    assert tagger.answer(["the xyzzy walk", ""], NoOptions())[0].tags[0] == "DET"
    reads = tagger.processor.reads
    prepared = reads.prepare(reads.open("the xyzzy walk"))
    assert reads.tensors([prepared])[0]["places"].shape == (1, 3)
    assert len(reads.names(prepared)) > 5
    assert tagger.picture(tagger.run("the walk")) is not None
    again = recipe(tmp_path / "again", start=tmp_path / "bert", architecture=None)
    assert (again.model, again.architecture.width, again.architecture.head) == ("bert-mini", 24, "tokens")
    console = Console(file=StringIO())
    begun = learn(replace(again, training=replace(again.training, steps=1, learning_rate=1e-9)), splits(), console)
    torch.testing.assert_close(begun.model.embedding.weight, tagger.model.embedding.weight, atol=1e-6, rtol=0)


def test_sentences_of_more_pieces_than_a_bert_has_positions_for(tmp_path: Path) -> None:
    """They are left out of training and validation, and are told when they are to be tagged."""
    sizes = {"width": 24, "layers": 1, "heads": 2, "feedforward": 31, "max_length": 12, "positions": "learned"}
    told, parts = StringIO(), splits()
    long = Tagged(31, ("the", "klawpmujkoocplehyalpklatkool"), ("DET", "NOUN"))
    check = Dataset(parts.dev.name, [*parts.dev, long], parts.dev.unit)
    small = recipe(tmp_path, model="bert-mini", architecture=sizes)
    tagger = learn(small, replace(parts, dev=check), Console(file=told, width=200))
    assert "0 of 300 sentences left out for more than 10 words or 12 positions" in told.getvalue()
    assert "1 of 16 left out of validation for more than 12 positions" in told.getvalue()
    with pytest.raises(UserError, match=r"takes \d+ positions, but the model learned only 12"):
        tagger.run(" ".join(long.words))
    batches = tagger.batches(check)
    assert batches.report.startswith(f"{check.name}: 1 of {len(check)} sentences left out")
    assert sum(len(batch.inputs["tokens"]) for batch in batches.epoch(0)) == len(parts.dev)
