"""A recipe as plain values: to JSON and back, and what is said about mistakes in it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from foveate.data.text.documents import Paragraph, Prose
from foveate.data.text.labelled import Labelled, LabelledText
from foveate.errors import UserError
from foveate.models.text import rnn_seq2seq
from foveate.tasks.examples.data_options import held_out
from foveate.tasks.language import TASK as LANGUAGE
from foveate.tasks.learning import Lesson
from foveate.tasks.translate import TASK as TRANSLATE
from foveate.training import Training


@pytest.mark.parametrize("name", TRANSLATE.presets())
def test_a_recipe_survives_json(name: str) -> None:
    recipe = TRANSLATE.recipe(data=("a.en", "a.fr"), model=name, architecture={"dropout": 0.25})
    assert recipe.architecture.dropout == 0.25
    assert TRANSLATE.from_json(json.loads(json.dumps(recipe.as_json())), "here") == recipe


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"modle": "rnn"}, "unknown field in here 'modle'; did you mean model"),
        ({"examples": {"sources": "emoji"}}, "unknown field in here 'sources'; did you mean examples.source"),
        (
            {"training": {"learning_rat": 1}},
            "unknown field in here 'learning_rat'; did you mean training.learning_rate",
        ),
        ({"steps": 5}, "unknown field in here 'steps'; did you mean training.steps?"),
        ({"training": {"betas": {"a": 1}}}, "here: a list or a single value was expected, not a table"),
        ({"examples": {"data": {"a": 1}}}, "here: a list or a single value was expected, not a table"),
        ({"training": {"betas": 1}}, "here: training.betas is 1, but must be a list"),
        ({"examples": {"data": 5}}, "here: examples.data is 5, but must be a list"),
        ({"model": 5}, "here: model is 5, but must be a text"),
        ({"training": {"learning_rate": 10**400}}, "here: a number is too large"),
        ({"training": {"steps": "many"}}, "here: training.steps is 'many', but must be a whole number"),
        (
            {"training": {"schedule": "cos"}},
            "here: training.schedule is 'cos', but must be 'auto' or 'inverse-sqrt' or 'cosine'",
        ),
        ({"decoding": 5}, "here: writes.decoding is 5, but must be a table of fields"),
        ({"architecture": 5}, "here: architecture is 5, but must be a table of fields"),
        ({"architecture": {"widht": 5}}, "unknown field in transformer-tiny 'widht'; did you mean width"),
        ({"model": "rn"}, "unknown model 'rn'; did you mean rnn"),
    ],
)
def test_a_recipe_in_json_with_mistakes(values: dict, message: str) -> None:
    with pytest.raises(UserError) as caught:
        TRANSLATE.from_json(values, "here")
    assert str(caught.value).startswith(message)


def test_what_json_and_toml_cannot_say() -> None:
    """Whole numbers for floats, lists for tuples, text for paths; and one file needs no list."""
    values = {"training": {"clip": 2, "betas": [0, 0.5]}, "examples": {"data": ["a", "b"]}, "out": "here"}
    recipe = TRANSLATE.from_json(values, "here")
    assert (type(recipe.training.clip), recipe.training.betas) == (float, (0.0, 0.5))
    assert (recipe.examples.data, recipe.out) == ((Path("a"), Path("b")), Path("here"))
    assert TRANSLATE.from_json({"examples": {"data": "pairs.tsv"}}, "here").examples.data == (Path("pairs.tsv"),)


def test_what_a_table_leaves_out_is_as_the_task_has_it() -> None:
    recipe = LANGUAGE.from_json(
        {"training": {"steps": 7}, "decoding": {"top_k": 5}, "examples": {"vocabulary": 99}}, "here"
    )
    usual = LANGUAGE.recipe()
    assert recipe.training == replace(usual.training, steps=7)
    assert recipe.writes == replace(usual.writes, decoding=replace(usual.writes.decoding, top_k=5))
    assert recipe.reads == replace(usual.reads, vocabulary=99)
    assert (usual.objective.label_smoothing, usual.writes.decoding.method) == (0.0, "sample")


def test_a_preset_knows_how_it_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Better than the task does, and worse than the user."""
    monkeypatch.setitem(rnn_seq2seq.TRAINING, "rnn", {"learning_rate": 0.25})
    assert TRANSLATE.recipe(model="rnn").training == Training(learning_rate=0.25)
    assert TRANSLATE.from_json({"model": "rnn", "training": {"steps": 7}}, "here").training.learning_rate == 0.25
    assert TRANSLATE.from_json({"model": "rnn", "training": {"learning_rate": 1}}, "here").training.learning_rate == 1
    assert TRANSLATE.recipe(model="rnn", training=Training(steps=7)).training == Training(steps=7)


def test_what_is_held_out_of_a_file_with_a_pattern() -> None:
    """Labels take turns, or every second line is empty: one line of five all the same."""
    labels = ["good", "bad"] * 200
    for blank in ((), (None,)):
        step = 1 + len(blank)
        lines = [
            line for n, label in enumerate(labels) for line in (Labelled(step * n + 1, label, f"text {n}"), *blank)
        ]
        text = LabelledText("reviews", lambda lines=lines: lines)
        learn, check = held_out(text, "FILE", "texts")
        assert 60 <= check.check().kept <= 100
        assert learn.check().kept + check.check().kept == 400
        assert set(check.labels()) == {"good", "bad"}


def test_what_is_held_out_is_not_learned() -> None:
    """Also where texts repeat."""
    texts = [f"text {number % 150}" for number in range(400)]
    labelled = LabelledText.from_pairs([("ab"[number % 2], text) for number, text in enumerate(texts)])
    prose = Prose.from_paragraphs([Paragraph("here", "it", text) for text in texts])
    read = {
        "texts": (labelled, lambda part: part.texts()),
        "paragraphs": (prose, lambda part: (paragraph.text for paragraph in part)),
    }
    for unit, (text, what) in read.items():
        learn, check = (list(what(part)) for part in held_out(text, "FILE", unit))
        assert len(learn) + len(check) == 400
        assert check
        assert not set(learn) & set(check)


def test_a_label_that_occurs_once_is_learned() -> None:
    """Whichever text has it; and blank lines, however many, are not drawn."""
    for rare in range(20):
        pairs = [("rare" if n == rare else "ab"[n % 2], f"text {n}") for n in range(40)]
        lines = [line for n, pair in enumerate(pairs) for line in (*[None] * 9, Labelled(10 * n + 10, *pair))]
        learn, check = held_out(LabelledText("reviews", lambda lines=lines: lines), "FILE", "texts")
        assert learn.check().labels["rare"] == 1
        assert 5 <= check.check().kept <= 8
        assert learn.check().kept + check.check().kept == 40
    with pytest.raises(UserError, match="reviews: too few different texts to hold some out; give --validation"):
        held_out(LabelledText.from_pairs([(f"label {n}", f"text {n}") for n in range(40)], "reviews"), "FILE", "texts")


def test_what_is_read_of_folders_and_validated_on_decides_whether_a_training_goes_on(tmp_path: Path) -> None:
    prose, validation = tmp_path / "prose", tmp_path / "check.txt"
    (prose / "old").mkdir(parents=True)
    recipe = LANGUAGE.recipe(data=prose, validation=validation)

    def changed(file: Path, text: str) -> set[str]:
        before = Lesson(LANGUAGE, recipe).identity()
        file.write_text(text)
        return {name for name, value in Lesson(LANGUAGE, recipe).identity().items() if before.get(name) != value}

    assert changed(validation, "One.") == changed(validation, "Two.") == {f"examples (content of {validation})"}
    assert changed(prose / "old" / "a.txt", "A.") == {f"examples (content of {prose})"}
    assert changed(prose / "old" / "a.txt", "B.") == {f"examples (content of {prose})"}
    assert changed(prose / "metrics.jsonl", "{}") == set()


def test_an_unknown_field_names_fields_alone() -> None:
    with pytest.raises(
        UserError, match=r"unknown field in here .xyzzy.; known: architecture, .*training\.accumulate"
    ) as caught:
        TRANSLATE.from_json({"xyzzy": 1}, "here")
    assert "families" not in str(caught.value)
