"""A trained translator: using it, saving and loading it, and folders that are damaged."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
import torch
import words

import foveate
from foveate.contracts import Hypothesis
from foveate.data.tokens.tokenizers import train_bpe
from foveate.decoding import Decoding
from foveate.errors import UserError
from foveate.forms.processor import Processor
from foveate.tasks.learning import learn

SENTENCES = ["big house", "", "red cat dog sea", "   ", "moon"]


@pytest.fixture
def copy(trained, tmp_path: Path) -> Path:
    """A copy of the trained folder, to damage."""
    return shutil.copytree(trained.folder, tmp_path / "copy")


def test_run(trained) -> None:
    found = trained.translator.run("big house")
    assert found.given == "big house"
    assert found.text == "grand maison"
    assert not trained.translator.model.training
    assert found.ended
    assert found.log_prob < 0
    assert found.others == []


def test_many_sentences_come_back_in_their_order(trained) -> None:
    """Empty ones stay empty; batches are of like length, and what stands in one changes nothing in another."""
    translator = trained.translator
    found = translator(SENTENCES)
    assert [prediction.given for prediction in found] == SENTENCES
    assert [bool(prediction.text) for prediction in found] == [True, False, True, False, True]
    assert (found[1].text, found[1].log_prob, found[1].line) == ("", 0.0, "")
    for sentence, prediction in zip(SENTENCES, found, strict=True):
        alone = translator.run(sentence)
        assert alone.text == prediction.text
        assert alone.log_prob == pytest.approx(prediction.log_prob, abs=1e-4)


def test_nothing_to_translate(trained) -> None:
    assert trained.translator([]) == []
    assert [prediction.text for prediction in trained.translator(["", " "])] == ["", ""]


def test_each_side_has_its_own_tokenizer(trained, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the search finds are tokens of the target's."""
    own = train_bpe(words.WORDS.values(), 60)
    forms = trained.translator.processor
    translator = replace(trained.translator, processor=Processor(forms.reads, replace(forms.writes, tokenizer=own)))
    found = [[Hypothesis(own.encode([text])[0], -1.0, -1.0) for text in ("rouge chat", "mer")]]
    monkeypatch.setattr("foveate.forms.written.decode_all", lambda *_: iter([found]))
    prediction = translator.run("red cat")
    assert (prediction.text, prediction.others) == ("rouge chat", ["mer"])


def test_n_best(trained) -> None:
    found = trained.translator.run("big house", n_best=3, width=4)
    assert found.text == "grand maison"
    assert len(found.others) == 2
    assert len({found.text, *found.others}) == 3


def test_the_ways_to_decode(trained) -> None:
    greedy = trained.translator.run("red cat", method="greedy")
    assert greedy.text == trained.translator.run("red cat", width=1).text
    drawn = trained.translator.run("red cat", method="sample", n_best=5, temperature=3.0)
    assert trained.translator.run("red cat", method="sample", n_best=5, temperature=3.0) == drawn
    assert trained.translator.run("red cat", method="sample", n_best=5, temperature=3.0, seed=2) != drawn
    assert len({drawn.text, *drawn.others}) > 1
    with pytest.raises(UserError, match="n_best must be from 1 to the beam width, 5; it is 7"):
        trained.translator.run("red cat", n_best=7)
    with pytest.raises(UserError, match="unknown option 'widht'; did you mean"):
        trained.translator.run("red cat", widht=7)


def test_a_translation_that_found_no_end(trained) -> None:
    found = trained.translator.run("big red dog", length_factor=0.0, length_extra=1)
    assert not found.ended


def test_log_prob_is_that_of_the_text(trained) -> None:
    translator = trained.translator
    found = translator.run("small moon")
    (source,), (target,) = (
        translator.processor.reads.tokenizer.encode(["small moon"]),
        translator.processor.writes.tokenizer.encode([found.text]),
    )
    with torch.no_grad():
        logits = translator.model(
            torch.tensor([[*source, 2]]), torch.tensor([len(source) + 1]), torch.tensor([[1, *target]])
        ).logits
    steps = logits[0].log_softmax(-1)[range(len(target) + 1), [*target, 2]]
    assert found.log_prob == pytest.approx(float(steps.sum()), abs=1e-4)


def test_sentences_longer_than_any_in_training(trained) -> None:
    """More than 128 tokens."""
    assert trained.translator.processor.reads.tokenizer.encode(["red"]) == [[ANY]]
    most = " ".join(["red"] * 128)
    found = trained.translator(["red cat", f"{most} red", "", most, f"{most} cat"], method="greedy", length_extra=1)
    assert [one.long for one in found] == [False, True, False, False, True]


def test_characters_that_were_never_seen(trained) -> None:
    assert isinstance(trained.translator.run("日本 🍎 cat").text, str)


def test_alignment(trained) -> None:
    """Each word looks where its translation stands; the sentences' ends are shown as ¶."""
    found = trained.translator.alignment("red cat dog sea", "rouge chat chien mer")
    assert found.source[-1] == found.target[-1] == "¶"
    assert found.weights.shape == (len(found.target), len(found.source))
    torch.testing.assert_close(found.weights.sum(-1), torch.ones(len(found.target)))
    assert found.title == "decoder"
    firsts = [place for place, piece in enumerate(found.source) if not piece.startswith("·")]
    begins = [place for place, piece in enumerate(found.target) if not piece.startswith("·")]
    assert len(firsts) == len(begins) == 5
    for number, (start, row) in enumerate(zip(firsts[:-1], begins[:-1], strict=True)):
        looked_at = int(found.weights[row].argmax())
        assert start <= looked_at <= firsts[number + 1], f"word {number}"


def test_alignment_of_several_layers_is_the_most_decided_one(tmp_path: Path) -> None:
    sizes = {"width": 16, "heads": 2, "feedforward": 16, "encoder_layers": 1, "decoder_layers": 3}
    # a seed with which that layer's heads look at words rather than at the end
    recipe = words.recipe(tmp_path / "run", steps=1, seed=2, model="transformer-tiny", architecture=sizes)
    translator = learn(recipe, words.splits(40))
    with torch.no_grad():  # large queries make the weights of one layer sharp
        translator.model.decoder[1].cross.query.weight.mul_(50)
    found = translator.alignment("red cat", "rouge chat")
    assert found.title == "decoder.1.cross, mean of 2 heads"
    torch.testing.assert_close(found.weights.sum(-1), torch.ones(len(found.target)))


def test_no_alignment(trained, tmp_path: Path) -> None:
    assert trained.translator.alignment("", "rouge") is None
    assert trained.translator.alignment("red", "") is None
    plain = learn(words.recipe(tmp_path / "run", steps=1, model="rnn"), words.splits(40))
    assert plain.alignment("red cat", "rouge chat") is None


def test_loaded_it_is_the_same(trained) -> None:
    loaded = foveate.load(trained.folder)
    assert loaded(SENTENCES) == trained.translator(SENTENCES)
    assert loaded.recipe.writes.decoding == trained.translator.recipe.writes.decoding
    assert not loaded.run("red cat").long
    assert not loaded.model.training
    one, other = (each.alignment("red cat", "rouge chat").weights for each in (loaded, trained.translator))
    assert torch.equal(one, other)


def test_a_folder_may_be_moved_and_lose_its_checkpoints(copy: Path, trained) -> None:
    shutil.rmtree(copy / "checkpoints")
    (copy / "metrics.jsonl").unlink()
    assert foveate.load(str(copy))(SENTENCES) == trained.translator(SENTENCES)


def test_the_folder_says_how_to_decode(copy: Path) -> None:
    config = json.loads((copy / "config.json").read_text())
    config["recipe"]["writes"]["decoding"]["method"] = "greedy"
    (copy / "config.json").write_text(json.dumps(config))
    assert foveate.load(copy).recipe.writes.decoding == Decoding(method="greedy")


def test_a_device_that_is_not_there(copy: Path) -> None:
    with pytest.raises(UserError, match="device 'cuda:77' cannot be used on this machine"):
        foveate.load(copy, device="cuda:77")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "source_tokenizer.json", "target_tokenizer.json"])
def test_a_missing_or_truncated_file(copy: Path, name: str) -> None:
    """Cut anywhere, or gone: one line that names the file."""
    whole = (copy / name).read_bytes()
    for size in (0, 1, len(whole) // 3, len(whole) - 2):
        (copy / name).write_bytes(whole[:size])
        assert name in refused(copy)
    shutil.rmtree(copy / "checkpoints")  # a config that is missing there means that the training has not ended
    (copy / name).unlink()
    assert name in refused(copy)


def refused(folder: Path) -> str:
    with pytest.raises(UserError) as caught:
        foveate.load(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_no_folder(tmp_path: Path) -> None:
    assert refused(tmp_path / "nowhere").startswith(f"there is no folder {tmp_path / 'nowhere'}, nor trained weights")
    assert "no model was ever saved there" in refused(tmp_path)


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        (
            ("architecture", "width"),
            46,
            "is (72, 32) there, but (69, 32) in the model: probably config.json and model.safetensors are",
        ),
        (("architecture", "layers"), 10_000, "config.json: layers is 10,000, but can be at most 2,000"),
        (("architecture", "layers"), 1_000, "config.json tells of a far larger model than model.safetensors holds"),
        (("architecture", "widht"), 46, "unknown field in"),
        (("architecture", "cell"), "lsmt", "config.json: cell is 'lsmt', but must be 'lstm' or"),
        (("task",), "translat", "translat"),
        (("family",), "rnn", "unknown family of models 'rnn'"),
        (("format",), "foveate/9", "this version of foveate reads 'foveate/2' only"),
    ],
)
def test_a_config_that_was_edited(copy: Path, where: tuple[str, ...], value: Any, message: str) -> None:
    edit(copy, where, value)
    assert message in refused(copy)


def test_a_tokenizer_of_another_training(copy: Path) -> None:
    train_bpe(["a few words", "of another text"], 40).save(copy / "target_tokenizer.json")
    assert "but the files beside it 18: probably they are of two different models" in refused(copy)


def test_what_is_saved_is_not_what_was_laid_out_for_running(copy: Path) -> None:
    translator = foveate.load(copy)
    translator.optimized()
    translator.save(copy)
    for name, weight in foveate.load(copy).model.state_dict().items():
        assert torch.equal(weight, translator.model.state_dict()[name])


def edit(folder: Path, where: tuple[str, ...], value: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    part = config
    for name in where[:-1]:
        part = part[name]
    part[where[-1]] = value
    (folder / "config.json").write_text(json.dumps(config))


def leaves(values: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every place in a tree of dictionaries."""
    for name, value in values.items():
        yield (*path, name)
        if isinstance(value, dict):
            yield from leaves(value, (*path, name))


def test_any_value_of_another_kind_is_told_in_one_line(trained, tmp_path: Path) -> None:
    """A list where something else stood, at each place of config.json that loading reads."""
    config = json.loads((trained.folder / "config.json").read_text())
    read = [
        place
        for place in leaves(config)
        if place[0] != "recipe" or place[1:3] in ((), ("writes",), ("writes", "decoding"))
    ]
    assert len(read) > 25
    for place in read:
        folder = tmp_path / "-".join(place)
        folder.mkdir()
        for path in trained.folder.glob("*.*"):
            (folder / path.name).symlink_to(path)
        (folder / "config.json").unlink()
        shutil.copy(trained.folder / "config.json", folder)
        edit(folder, place, [["?"]])
        assert "config.json" in refused(folder), place
