"""Trainings that begin from trained weights: a run of the task cloze, or a folder of transformers."""

import json
import shutil
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_prose
import torch
import verdicts
from rich.console import Console
from tiny_bert import write_folder

import foveate
from foveate import models
from foveate.cli import main
from foveate.data.images.labelled import images_of_arrays
from foveate.data.sources.splits import Splits
from foveate.data.text.labelled import LabelledText
from foveate.errors import UserError
from foveate.forms.answers import NoOptions
from foveate.forms.prose import passages_of
from foveate.interop.public_folder import read_folder
from foveate.tasks.classify import TASK as CLASSIFY
from foveate.tasks.classify_image import TASK as CLASSIFY_IMAGE
from foveate.tasks.language import TASK as LANGUAGE
from foveate.tasks.learning import Lesson, learn
from foveate.tasks.loading import recipe as make_recipe
from foveate.tasks.recipe import Recipe
from foveate.tasks.start.parts import FINE_TUNING
from foveate.tasks.start.weights import open_start
from foveate.tensor_files import read_tensors
from foveate.training import Training

CONSOLE = Console(file=StringIO())

SIZES = {
    "width": 20,
    "heads": 5,
    "layers": 2,
    "feedforward": 28,
    "max_length": 19,
    "dropout": 0.0,
    "attention_dropout": 0.0,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("bert"))


def recipe(out: Path, start: Path, steps: int = 40, **architecture: object) -> Recipe:
    training = Training(steps=steps, learning_rate=1e-2, schedule="constant", warmup=5, average=1, validate_every=20)
    training.save_every = 20
    return CLASSIFY.recipe(
        batch=256,
        model="bert-base",
        start=start,
        out=out,
        training=training,
        architecture=SIZES | architecture,
    )


def test_the_body_is_theirs_and_the_head_is_new(folder: Path, tmp_path: Path) -> None:
    task = recipe(tmp_path, folder)
    model = Lesson(CLASSIFY, task).build(vocabulary=1, classes=3)
    body = read_folder(folder, body=True).model.state_dict()
    assert len(body) > 30
    assert all(torch.equal(model.state_dict()[name], tensor) for name, tensor in body.items())
    assert (model.config.head, model.config.classes) == ("text", 3)
    assert model.head.output.weight.shape == (3, 20)
    text = task.reads.learn(verdicts.splits(30).train, task.architecture)
    assert text.max_length == 18  # and a start; a BERT's tokenizer adds two


@pytest.mark.parametrize("public", [False, True])
def test_a_head_of_the_same_classes_goes_on(public: bool, tmp_path: Path) -> None:
    """In the order that it knows, from a run and from a folder; for other classes it is new, and that is said."""
    known = ("praise", "blame")
    if public:
        labels = dict(enumerate(known))
        folder = write_folder(tmp_path / "first", "BertForSequenceClassification", id2label=labels)
    else:
        folder = tmp_path / "first"
        learn(recipe(folder, write_folder(tmp_path / "bert"), 1), verdicts.splits(), CONSOLE)
        known = tuple(foveate.load(folder).processor.writes.labels)
    head = open_start(folder).tensors["head.output.weight"]
    for names, goes_on in ((("blame", "praise"), True), (("blame", "thanks"), False)):
        pairs = [(names[label == "praise"], text) for label, text in verdicts.examples(60, 7)]
        begun = CLASSIFY.recipe(start=folder, out=tmp_path / names[1], training=Training(steps=1, learning_rate=0.0))
        lesson, said = Lesson(CLASSIFY, begun), Console(file=StringIO(), width=300)
        found = lesson.learn(Splits(*[LabelledText.from_pairs(pairs, "pairs")] * 3), said)
        assert (tuple(found.processor.writes.labels) == known) == goes_on
        assert torch.equal(found.model.state_dict()["head.output.weight"], head) == goes_on
        told = "its head has the same classes and goes on" if goes_on else "a new head is learned"
        assert f"begins with {folder}; {told}" in said.file.getvalue()


def test_it_learns_and_is_loaded_with_its_tokenizer(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "bert", initial=True)
    learn(recipe(tmp_path / "run", folder, 60, pooling="mean"), verdicts.splits(), CONSOLE)
    classifier = foveate.load(tmp_path / "run")
    reads = classifier.processor.reads
    assert reads.names(reads.prepare("bad dogs")) == ["[CLS]", "bad", "dogs", "[SEP]"]
    texts = [(label, text) for label, text in verdicts.examples(40, 7)]
    (tmp_path / "test.tsv").write_text("".join(f"{label}\t{text}\n" for label, text in texts))
    ways = classifier.evaluate([tmp_path / "test.tsv"], NoOptions(), CONSOLE).figures["ways"]
    assert ways["bert-base"]["accuracy"] > 90
    again = open_start(tmp_path / "run")
    assert again.family == "bert"
    assert not any(name.startswith("head.") for name in again.body)


def test_a_training_goes_on_only_from_the_same_weights(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / "start")
    learn(recipe(tmp_path / "run", copy, steps=20), verdicts.splits(), CONSOLE)
    other = write_folder(tmp_path / "other", "BertForMaskedLM")
    shutil.copy(other / "model.safetensors", copy / "model.safetensors")
    with pytest.raises(UserError, match="start"):
        learn(recipe(tmp_path / "run", copy), verdicts.splits(), CONSOLE)


def test_the_preset_and_the_training_that_suit_it(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setitem(foveate.models.FAMILIES["bert"].presets, "bert-smallest", (1, "2 blocks"))
    monkeypatch.setitem(foveate.models.family_module("bert").PRESETS, "bert-smallest", dict(SIZES))
    task = CLASSIFY.recipe(start=folder)
    assert task.model == "bert-smallest"
    assert {name: getattr(task.training, name) for name in vars(FINE_TUNING)} == vars(FINE_TUNING)


def test_on_the_command_line(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "texts.tsv"
    data.write_text("".join(f"{label}\t{text}\n" for label, text in verdicts.examples(60, 7)))
    flags = [f"--architecture.{name.replace('_', '-')}={value}" for name, value in SIZES.items()]
    arguments = ["--data", str(data), "--from", str(folder), "--model", "bert-base", *flags, "--steps", "2"]
    main(["train", "classify", *arguments, "--out", str(tmp_path / "run"), "--threads", "1"])
    assert "saved in" in capsys.readouterr().out
    assert json.loads((tmp_path / "run/config.json").read_text())["recipe"]["start"] == str(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "gpt2"}, "is a BertModel; foveate runs GPT2LMHeadModel"),
        ({"hidden_act": "swish"}, "has the hidden_act 'swish'; foveate's models have gelu, "),
        ({"is_decoder": True}, "is of a decoder"),
        ({"num_hidden_layers": 3}, r"lacks the tensor 'bert\.encoder\.layer\.2\.[a-zA-Z.]*' and 15 more"),
        ({"num_hidden_layers": 1}, r"has the unknown tensor 'bert\.encoder\.layer\.1\.[a-zA-Z.]*'"),
        ({"num_attention_heads": "five"}, "has the num_attention_heads 'five', which cannot be"),
    ],
)
def test_folders_that_cannot_be(folder: Path, tmp_path: Path, changes: dict, message: str) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | changes))
    with pytest.raises(UserError, match=message):
        open_start(copy)


def test_an_image_classifier_with_another_head(tmp_path: Path) -> None:
    """Begun with two labels, gone on with three."""
    generator = np.random.default_rng(1)

    def images(labels: str) -> Splits:
        parts = [images_of_arrays("noise", generator.integers(0, 255, (6, 12, 12)).astype(np.uint8), labels * 2)] * 3
        return Splits(*parts)

    def settings(name: str, start: Path | None, model: str = "cnn-attentive-tiny") -> Recipe:
        training = Training(steps=1, validate_every=1, save_every=1, average=1)
        out = tmp_path / name
        return make_recipe("classify-image", batch=6, model=model, out=out, training=training, start=start)

    first = learn(settings("first", None), images("abb"), CONSOLE)
    body = {name: value for name, value in first.model.state_dict().items() if not name.startswith("output.")}
    model = Lesson(CLASSIFY_IMAGE, settings("second", tmp_path / "first")).build(classes=3, channels=1)
    assert len(body) > 5
    assert all(torch.equal(model.state_dict()[name], value) for name, value in body.items())
    second = learn(settings("second", tmp_path / "first"), images("abc"), CONSOLE)
    assert second.model.output.weight.shape[0] == 3
    assert str(tmp_path / "first") in second.description["contents"]
    with pytest.raises(UserError, match="first is a cnn, which no resnet can begin from"):
        learn(settings("third", tmp_path / "first", "plain20"), images("abc"), CONSOLE)


def test_fewer_layers_are_the_first_ones(folder: Path, tmp_path: Path) -> None:
    """More than there are cannot be taken."""
    whole, shorter = (
        Lesson(CLASSIFY, recipe(tmp_path, folder, layers=layers)).build(vocabulary=1, classes=2) for layers in (2, 1)
    )
    found, known = shorter.state_dict(), whole.state_dict()
    body = [name for name in found if not name.startswith("head.")]
    assert any("blocks.0." in name for name in body)
    assert all(torch.equal(found[name], known[name]) for name in body)
    with pytest.raises(UserError, match=r"has no tensor 'stack\.blocks\.2\.[a-z.]*': it is another model"):
        Lesson(CLASSIFY, recipe(tmp_path, folder, layers=3)).build(vocabulary=1, classes=2)


def test_places_that_cannot_be(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^there is no folder .*none, nor trained weights of this name"):
        open_start("none")
    begun = CLASSIFY.recipe(start=folder)  # sizes that no preset has are the folder's
    assert (CLASSIFY.preset(begun.model).family, begun.architecture.width, begun.architecture.layers) == (
        "bert",
        20,
        SIZES["layers"],
    )
    with pytest.raises(UserError, match=r"'embedding\.weight' is \(23, 20\), but \(23, 30\) in the model"):
        Lesson(CLASSIFY, recipe(tmp_path, folder, width=30)).build(vocabulary=1, classes=2)
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / "vocab.txt").unlink()
    with pytest.raises(UserError, match="has no tokenizer: neither"):
        open_start(copy)


def test_low_rank_updates_leave_the_body_alone_and_are_merged(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "bert", initial=True)
    task = recipe(tmp_path / "run", folder, 40)
    task.lora = 2
    told = StringIO()
    trained = learn(task, verdicts.splits(), Console(file=told))
    assert "of them trained" in told.getvalue()
    state, theirs = trained.model.state_dict(), open_start(folder).body
    changed = {name for name, tensor in theirs.items() if not torch.equal(state[name], tensor)}
    assert changed == {f"stack.blocks.{block}.self.{layer}.weight" for block in (0, 1) for layer in ("query", "value")}
    loaded = foveate.load(tmp_path / "run")
    assert loaded.run("bad dogs").probability == trained.run("bad dogs").probability
    updates = read_tensors(tmp_path / "run/adapter.safetensors").tensors
    assert len(updates) == 8
    name = "stack.blocks.1.self.query"
    merged = theirs[f"{name}.weight"] + 2 * updates[f"{name}.up"] @ updates[f"{name}.down"]
    torch.testing.assert_close(state[f"{name}.weight"], merged)


def passages(recipe: Recipe, count: int, seed: int) -> Splits[Any]:
    """Passages of made-up prose, as a language model learns them."""
    prose = tiny_prose.prose(count, seed)
    found = passages_of(prose, recipe.reads.passages(prose))
    return Splits(found, found, found)


def test_a_language_model_of_any_sizes_learns_to_label_texts(tmp_path: Path) -> None:
    """Without --model, the classifier has the sizes of the run."""
    training = Training(steps=2, validate_every=2, save_every=2, average=1)
    sizes = SIZES | {"positions": "rotary"}
    writer = LANGUAGE.recipe(model="gpt-tiny", out=tmp_path / "gpt", training=training, architecture=sizes)
    learn(writer, passages(writer, 300, 1), CONSOLE)
    task = CLASSIFY.recipe(
        start=tmp_path / "gpt", out=tmp_path / "run", training=training, architecture={"pooling": "mean"}
    )
    assert task.model == "gpt-tiny"
    config: Any = task.architecture
    assert (config.width, config.positions, config.head, config.pooling) == (20, "rotary", "text", "mean")
    learn(task, verdicts.splits(), CONSOLE)
    classifier = foveate.load(tmp_path / "run")
    assert classifier.run("bad dogs").label in classifier.processor.writes.labels
    assert classifier.picture(classifier.run("bad dogs")) is not None


@pytest.mark.parametrize("tie", [True, False])
def test_a_language_model_goes_on_from_another_text(tmp_path: Path, tie: bool) -> None:
    """With its tokenizer, and with the layer that predicts words."""
    training = Training(steps=2, validate_every=2, save_every=2, average=1)
    sizes = SIZES | {"tie": tie}
    first = LANGUAGE.recipe(model="gpt-tiny", out=tmp_path / "gpt", training=training, architecture=sizes)
    learn(first, passages(first, 300, 1), CONSOLE)
    still = Training(steps=1, learning_rate=1e-12, validate_every=1, save_every=1, average=1)
    task = LANGUAGE.recipe(model="gpt-tiny", start=tmp_path / "gpt", out=tmp_path / "more", training=still)
    learn(task, passages(task, 200, 2), CONSOLE)
    before, after = foveate.load(tmp_path / "gpt"), foveate.load(tmp_path / "more")
    assert before.processor.reads.words.encode(["the dog"]) == after.processor.reads.words.encode(["the dog"])
    found, expected = after.model.state_dict(), before.model.state_dict()
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=0, atol=1e-9)
    assert str(tmp_path / "gpt") in after.description["contents"]


@pytest.fixture(scope="module")
def language_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recurrent language model of two layers."""
    out = tmp_path_factory.mktemp("language") / "run"
    training = Training(steps=2, validate_every=2, save_every=2, average=1)
    sizes = {"width": 14, "embedding": 10, "tie": False, "layers": 2}
    writer = LANGUAGE.recipe(out=out, training=training, architecture=sizes)
    learn(writer, passages(writer, 300, 1), CONSOLE)
    return out


@pytest.mark.parametrize("model", ["rnn-acceptor", "rnn-attentive-classifier"])
def test_a_recurrent_classifier_begins_from_a_recurrent_language_model(
    model: str, language_run: Path, tmp_path: Path
) -> None:
    """Its words, and the layers that read forward; sizes and cell are those of the language model."""
    training = Training(steps=2, validate_every=2, save_every=2, average=1)
    task = CLASSIFY.recipe(start=language_run, out=tmp_path / "run", training=training, model=model)
    both_ways = model != "rnn-acceptor"
    config: Any = task.architecture
    assert task.model == model
    assert (config.cell, config.embedding, config.bidirectional) == ("lstm", 10, both_ways)
    assert (config.layers, config.width) == ((1, 28) if both_ways else (2, 14))
    begun, body = Lesson(CLASSIFY, task).build(vocabulary=1, classes=3).state_dict(), open_start(language_run).body
    assert torch.equal(begun["embedding.weight"], body["embedding.weight"])
    for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", *(() if both_ways else ("weight_ih_l1", "bias_hh_l1"))):
        assert torch.equal(begun[f"recurrent.layer.{name}"], body[f"recurrent.layer.{name}"])
    learn(task, verdicts.splits(), CONSOLE)
    classifier = foveate.load(tmp_path / "run")
    assert classifier.run("The whale rests now.").label in classifier.processor.writes.labels
    assert len(classifier.processor.reads.tokenizer) == len(body["embedding.weight"])


def test_a_recurrent_classifier_begins_from_the_words_of_a_bert(folder: Path, tmp_path: Path) -> None:
    task = CLASSIFY.recipe(start=folder, out=tmp_path, model="rnn-acceptor")
    model: Any = Lesson(CLASSIFY, task).build(vocabulary=1, classes=2)
    assert model.config.embedding == 20
    assert torch.equal(model.embedding.weight, open_start(folder).body["embedding.weight"])
    assert task.training.learning_rate == CLASSIFY.training.learning_rate


def test_recurrent_layers_that_do_not_fit(language_run: Path, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has another architecture than bert-base: name a --model"):
        CLASSIFY.recipe(
            start=folder, out=tmp_path, model="bert-base", architecture=models.config_class("rnn-encoder")(9, 2)
        )
    task = CLASSIFY.recipe(start=language_run, out=tmp_path, model="rnn-acceptor", architecture={"width": 16})
    with pytest.raises(UserError, match=r"'recurrent\.layer\.weight_ih_l0' is \(56, 10\), but \(64, 10\) in the model"):
        Lesson(CLASSIFY, task).build(vocabulary=1, classes=2)
    task = CLASSIFY.recipe(start=language_run, out=tmp_path, model="transformer-classifier")
    with pytest.raises(UserError, match="is a rnn-language, which no transformer-encoder can begin from"):
        Lesson(CLASSIFY, task).build(vocabulary=1, classes=2)


def test_what_low_rank_updates_need(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data.tsv"
    data.write_text("".join(f"{label}\t{text}\n" for label, text in verdicts.examples(40, 7)))
    sizes = [f"--architecture.{name.replace('_', '-')}={value}" for name, value in SIZES.items()]
    command = ["train", "classify", "--data", str(data), "--model", "bert-base", "--out", str(tmp_path / "out"), *sizes]
    for arguments, message in (
        (["--lora", "4"], "lora adapts trained weights: name them with --from"),
        (["--from", str(folder), "--lora", "4", "--lora-layers", "selv.query"], "did you mean self.query"),
        (["--from", str(folder), "--freeze", "stak"], "unknown place of weights in the model 'stak'"),
    ):
        with pytest.raises(SystemExit) as exit:
            main([*command, *arguments])
        assert exit.value.code == 2
        assert message in capsys.readouterr().err


def test_validation_texts_that_fill_all_positions(folder: Path, tmp_path: Path) -> None:
    """A BERT's tokenizer adds two tokens: a text with one place less than the model has is left out."""
    parts, told = verdicts.splits(), StringIO()
    most = recipe(tmp_path, folder).architecture.max_length
    check = LabelledText.from_pairs([*verdicts.examples(40, 40), ("praise", "good " * (most - 1))], "check")
    learn(recipe(tmp_path, folder, 2), replace(parts, dev=check), Console(file=told, width=200))
    assert f"1 of 41 left out of validation for more than {most} positions" in told.getvalue()
