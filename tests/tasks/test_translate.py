"""Training a translator: from text to a folder that can be used, resumed, and told what is wrong."""

import gzip
import json
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
import words
from rich.console import Console
from torch import nn

import foveate
from foveate.data.sources.splits import Splits
from foveate.data.text.parallel_corpus import ParallelText
from foveate.errors import UserError
from foveate.forms.translation import MeasureTranslations
from foveate.metrics.translation import quality
from foveate.tasks.learning import Lesson, learn
from foveate.tasks.recipe import Recipe
from foveate.tasks.translate import TASK
from foveate.training.validation import parts_to_validate


def train(recipe: Recipe, splits: Any = None) -> tuple[nn.Module, str]:
    """The trained model, and what was told meanwhile."""
    told = StringIO()
    return learn(recipe, splits, Console(file=told, width=200)).model, told.getvalue()


def same(one: nn.Module, other: nn.Module) -> bool:
    """Whether two models have the same weights."""
    first, second = one.state_dict(), other.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def rows(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def tsv(path: Path, count: int) -> Path:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in words.pairs(count, 1)), encoding="utf-8")
    return path


def test_a_translator_learns(trained) -> None:
    sources, references = map(list, zip(*words.pairs(60, 60), strict=True))
    found = [one.text for one in trained.translator(sources)]
    assert quality(found, references).bleu > 60
    losses = [row["loss"] for row in rows(trained.folder) if "loss" in row]
    assert losses[0] > 2
    assert losses[-1] < losses[0] / 10


def test_the_best_step_is_compared_on_pairs_that_it_was_not_picked_by() -> None:
    """Unless there are too few others."""
    few, many = words.pairs(39, 1), words.pairs(140, 1)
    often, others = parts_to_validate(few, 20, 4)
    assert (often, others) == (words.pairs(39, 1)[:20], words.pairs(39, 1))
    often, others = parts_to_validate(many, 20, 4)
    assert (often, others) == (words.pairs(140, 1)[:20], words.pairs(140, 1)[20:100])


def test_what_is_told(trained) -> None:
    lines = trained.told.splitlines()
    parameters = sum(parameter.numel() for parameter in trained.translator.model.parameters())
    assert lines[:4] == [
        "words.600: 600 pairs",
        "words.50: 50 pairs",
        "words.600: 0 of 600 pairs left out for more than 128 tokens on a side",
        f"rnn-attentive: {parameters:,} parameters, {len(trained.translator.processor.reads.tokenizer)} subwords",
    ]
    assert "validation: bleu" in lines[4]
    assert lines[-1].startswith("kept the weights of step 200; step 200: bleu")


def test_the_folder_holds_everything(trained) -> None:
    names = {path.name for path in trained.folder.iterdir()}
    assert names == {
        "config.json",
        "model.safetensors",
        "processor.json",
        "source_tokenizer.json",
        "target_tokenizer.json",
        "metrics.jsonl",
        "checkpoints",
    }
    description = json.loads((trained.folder / "config.json").read_text())
    assert {key: description[key] for key in ("format", "task", "family")} == {
        "format": "foveate/2",
        "task": "translate",
        "family": "rnn-seq2seq",
    }
    assert description["architecture"]["src_vocab"] == len(trained.translator.processor.reads.tokenizer)
    assert description["recipe"]["model"] == "rnn-attentive"
    assert description["recipe"]["training"]["steps"] == 200


def test_a_resumed_training_ends_as_the_uninterrupted_one(tmp_path: Path) -> None:
    """The model, the tokenizers and the figures; and what is finished is not trained again."""
    splits = words.splits(200)
    whole, _ = train(words.recipe(tmp_path / "whole", steps=24, validate_every=8), splits)
    train(words.recipe(tmp_path / "parts", steps=10, validate_every=8), splits)
    resumed, told = train(words.recipe(tmp_path / "parts", steps=24, validate_every=8), splits)
    assert "resuming from step 10" in told
    assert same(resumed, whole)
    again, _ = train(words.recipe(tmp_path / "parts", steps=24, validate_every=8), splits)
    assert same(again, whole)
    for name in ("source_tokenizer.json", "target_tokenizer.json"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_training_goes_on_with_no_other_text_by_the_same_name(tmp_path: Path) -> None:
    """As a source may give on another day: here the same pairs in another order."""
    splits = words.splits(40)
    train(words.recipe(tmp_path, steps=1), splits)
    other = ParallelText.from_pairs(list(splits.train)[::-1], splits.train.name)
    with pytest.raises(UserError, match=r"has a training that started with another words\.40: restore it"):
        train(words.recipe(tmp_path, steps=2), replace(splits, train=other))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"architecture": {**words.SIZES, "width": 24}},
            "has a training with architecture.width 48, not 24: resume it with 48",
        ),
        ({"vocabulary": 121}, "has a training with reads.vocabulary 120, not 121"),
        ({"learning_rate": 0.5}, "has a training with learning_rate 0.01, not 0.5"),
        ({"model": "rnn-bahdanau"}, "has a training with "),
    ],
)
def test_another_training_is_not_resumed(trained, change: dict, message: str) -> None:
    recipe = words.recipe(trained.folder, 300, **{"schedule": "linear", "log_every": 20, **change})
    before = (trained.folder / "model.safetensors").read_bytes()
    with pytest.raises(UserError, match="has a training") as caught:
        train(recipe, words.splits())
    assert message in str(caught.value)
    assert (trained.folder / "model.safetensors").read_bytes() == before


def test_two_trainings_with_one_seed_are_one(tmp_path: Path) -> None:
    first, second, other = (
        train(words.recipe(tmp_path / str(number), steps=3, seed=seed), words.splits(100))[0]
        for number, seed in enumerate((5, 5, 6))
    )
    assert same(first, second)
    assert not same(first, other)


def test_own_text_in_one_file_with_a_part_held_out(tmp_path: Path) -> None:
    """One pair in five: 12 of 61."""
    recipe = words.recipe(tmp_path / "run", steps=2, data=(tsv(tmp_path / "pairs.tsv", 61),))
    assert train(recipe)[1].splitlines()[:2] == [
        "pairs.tsv: 49 pairs; 7 share a sentence with others, on the same side as these",
        "pairs.tsv, held out: 12 pairs",
    ]
    assert foveate.load(tmp_path / "run").run("red cat").ended in (True, False)


def test_a_file_that_was_changed_is_no_longer_what_is_being_learned(tmp_path: Path) -> None:
    path = tsv(tmp_path / "pairs.tsv", 61)
    train(words.recipe(tmp_path / "run", steps=2, data=(path,)))
    path.write_text(path.read_text(encoding="utf-8").replace("cat", "bat"), encoding="utf-8")
    with pytest.raises(UserError, match=r"has a training that started with another .*pairs\.tsv: restore it, or"):
        train(words.recipe(tmp_path / "run", steps=3, data=(path,)))


def test_own_text_in_two_files_and_text_to_validate_on(tmp_path: Path) -> None:
    sources, targets = zip(*words.pairs(53, 1), strict=True)
    (tmp_path / "text.en").write_text("\n".join(sources) + "\n", encoding="utf-8")
    (tmp_path / "text.fr.gz").write_bytes(gzip.compress(("\n".join(targets) + "\n").encode()))
    recipe = words.recipe(
        tmp_path / "run",
        steps=2,
        data=(tmp_path / "text.en", tmp_path / "text.fr.gz"),
        validation=(tsv(tmp_path / "dev.tsv", 7),),
    )
    assert train(recipe)[1].splitlines()[:2] == ["text.en: 53 pairs", "dev.tsv: 7 pairs"]


def test_text_by_name_and_own_text_to_validate_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(
        "foveate.data.sources.named.open_source", lambda *names, **_: asked.append(names) or words.splits(40)
    )
    train(words.recipe(tmp_path / "one", steps=1, source="emoji", to_language="de"))
    own = words.recipe(tmp_path / "two", steps=1, source="emoji", validation=(tsv(tmp_path / "dev.tsv", 7),))
    assert train(own)[1].splitlines()[:2] == ["words.40: 40 pairs", "dev.tsv: 7 pairs"]
    assert asked == [("emoji", "en", "de"), ("emoji", "en", "fr")]


@pytest.mark.parametrize(
    ("kept", "most"), [(20, 4), (300, 60), (500, 100), (1_999, 105), (3_000, 150), (20_021, 1_000)]
)
def test_the_share_that_is_held_out_follows_the_size(kept: int, most: int) -> None:
    """A fifth at most, until there are 100; then one in twenty, and a thousand at most."""
    from foveate.data.text.parallel_corpus import ParallelText
    from foveate.tasks.examples.data_options import held_out

    learn, check = held_out(ParallelText.from_pairs([(f"a{n}", f"b{n}") for n in range(kept)]), "SRC TGT", "pairs")
    checked = check.check().kept
    assert learn.check().kept + checked == kept
    assert most * 0.9 - 1 <= checked <= most


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ({}, "nothing to learn from: name a source (see `foveate data`) or give --data SRC TGT"),
        ({"source": "emoji", "data": (Path("a"),)}, "both the source 'emoji' and files are given; choose one"),
        ({"source": "emojis"}, "unknown source 'emojis'; did you mean emoji"),
        ({"source": "emoji", "to_language": "fx"}, "unknown language of emoji 'fx'; did you mean fr"),
        (
            {"data": tuple(map(Path, "abc"))},
            "parallel text is one TSV file, or a source and a target file; 3 files were",
        ),
    ],
)
def test_text_that_cannot_be(tmp_path: Path, text: dict, message: str) -> None:
    with pytest.raises(UserError) as caught:
        train(TASK.recipe(**text, out=tmp_path))
    assert str(caught.value).startswith(message)


def test_too_little_text_to_hold_some_out(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"pairs.tsv has 19 pairs, too few to hold some out; give --validation SRC TGT"):
        train(words.recipe(tmp_path / "run", steps=1, data=(tsv(tmp_path / "pairs.tsv", 19),)))


def test_settings_are_checked_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"label_smoothing is 1\.5, but must be at least 0 and below 1"):
        train(words.recipe(tmp_path, steps=1, label_smoothing=1.5, data=(tmp_path / "missing.tsv",)))


@pytest.mark.parametrize(
    ("tokens", "entries", "read"),
    [
        ("words", 2 * len(words.WORDS), ["red", "cat"]),
        ("characters", 1 + len(set("".join([*words.WORDS, *words.WORDS.values()]))), list("red▁cat")),
    ],
)
def test_words_and_characters(tmp_path: Path, tokens: str, entries: int, read: list[str]) -> None:
    """Each word of both languages is known, or each character and the space; nothing else but the four special ones."""
    recipe = words.recipe(tmp_path / "run", steps=1, tokens=tokens, vocabulary=200)
    model, told = train(recipe, words.splits(300))
    assert f"{entries + 4} {tokens}" in told
    assert model.config.src_vocab == entries + 4
    tokenizer = foveate.load(tmp_path / "run").processor.reads.tokenizer
    (found,) = tokenizer.encode(["red cat"])
    assert [piece.strip("·") for piece in tokenizer.pieces(found)][-len(read) :] == read


def test_two_vocabularies(tmp_path: Path) -> None:
    recipe = words.recipe(tmp_path / "run", steps=1, shared=False)
    model, told = train(recipe, words.splits(100))
    sources, targets = model.config.src_vocab, model.config.tgt_vocab
    assert sources != targets
    assert f"{sources} and {targets} subwords" in told
    loaded = foveate.load(tmp_path / "run")
    assert (len(loaded.processor.reads.tokenizer), len(loaded.processor.writes.tokenizer)) == (sources, targets)
    tied = words.recipe(tmp_path / "tied", steps=1, shared=False, model="transformer-base", architecture={"width": 32})
    with pytest.raises(
        UserError, match="tie='all' shares one embedding, but each language has a vocabulary of its own"
    ):
        train(tied, words.splits(100))


def test_hard_attention_is_trained_too(tmp_path: Path) -> None:
    hard = {**words.SIZES, "select": "hard"}
    model, _ = train(words.recipe(tmp_path / "run", steps=2, architecture=hard), words.splits(40))
    untrained, _ = train(words.recipe(tmp_path / "none", steps=1, architecture=hard, warmup=10**9), words.splits(40))
    assert not torch.equal(model.decoder.combine.weight, untrained.decoder.combine.weight)


def test_lower_case(tmp_path: Path) -> None:
    train(words.recipe(tmp_path / "run", steps=1, lowercase=True), words.splits(40))
    translator = foveate.load(tmp_path / "run")
    assert translator.run("RED Cat").text == translator.run("red cat").text


def test_train_gives_what_load_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr("foveate.data.sources.named.open_source", lambda *_, **__: words.splits(40))
    recipe = words.recipe(tmp_path / "run", steps=1, source="emoji")
    rows: list[dict[str, Any]] = []
    made, loaded = foveate.train(recipe, callbacks=[rows.append]), foveate.load(tmp_path / "run")
    assert rows == [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert type(made) is type(loaded)
    assert same(made.model, loaded.model)
    assert made.description == loaded.description
    assert "kept the weights of step 1" in capsys.readouterr().err


def test_text_that_was_cut_into_pieces(tmp_path: Path) -> None:
    """The pieces are the vocabulary, translations and references are joined words."""
    cut = [(source.replace("o", "o@@ "), target.replace("o", "o@@ ")) for source, target in words.pairs(60, 1)]
    text = ParallelText.from_pairs(cut)
    skill = learn(words.recipe(tmp_path, 40, tokens="pieces"), Splits(text, text, text), Console(file=StringIO()))
    found = skill.compare(text, MeasureTranslations(), Console(file=StringIO()))
    assert not any("@@" in answer for answer in found.answers)
    sources, references = map(list, zip(*words.pairs(60, 1), strict=True))
    assert found.figures["ways"]["rnn-attentive"]["chrf"] == quality(found.answers, references).chrf
    copied = quality(sources, references)
    assert found.rows[-1] == ["the source, copied", "60", f"{copied.bleu:.1f}", f"{copied.chrf:.1f}"]


def test_a_translator_goes_on_with_other_sentences(tmp_path: Path) -> None:
    """With its vocabulary, its sizes and its letters, which are not asked for again."""
    settings = words.recipe(tmp_path / "first", steps=2, lowercase=True, shared=False)
    first = learn(settings, words.splits(100), Console(file=StringIO()))
    once = {"steps": 1, "validate_every": 1, "average": 1, "device": "cpu"}
    recipe = TASK.recipe(start=tmp_path / "first", out=tmp_path / "next", **once)
    assert (recipe.model, recipe.reads.lowercase, recipe.reads.shared) == ("rnn-attentive", True, False)
    begun = Lesson(TASK, recipe).build(**first.processor.sizes())
    assert all(torch.equal(one, first.model.state_dict()[name]) for name, one in begun.state_dict().items())
    found = learn(recipe, words.splits(40), Console(file=StringIO()))
    assert found.processor.sizes() == first.processor.sizes()
    assert str(tmp_path / "first") in found.description["contents"]


def test_a_language_is_no_folder() -> None:
    with pytest.raises(UserError, match=r"^there is no folder en to begin from; of a language, say --from-language$"):
        TASK.recipe(start=Path("en"))
