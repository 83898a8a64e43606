"""Exported classifiers and taggers give transformers the logits that they have here."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
import verdicts
from rich.console import Console
from tiny_bert import WORDS, write_folder
from tokenizers import Tokenizer, models, pre_tokenizers

import foveate
from foveate.cli import main
from foveate.data.dataset import Dataset
from foveate.data.sources.splits import Splits
from foveate.data.text.labelled_pairs import LabelledPair
from foveate.data.text.tagged import Tagged
from foveate.errors import UserError
from foveate.forms.answers import NoOptions
from foveate.tasks.export.labels import export_labels
from foveate.tasks.learning import learn

TEXTS = ["the film was a great story", "bad dogs", "the cats of the story"]
SIZES = {"width": 20, "heads": 5, "layers": 2, "feedforward": 28, "max_length": 19}
SETTINGS = {"batch": 256, "steps": 20, "learning_rate": 3e-2, "warmup": 2, "average": 1}
SETTINGS |= {"validate_every": 20, "save_every": 20}
RMS = {"key_value_heads": 1, "head_width": 4}
"""Of models whose norms have no bias, so that their labels have none: transformers has no place for one."""

CLOSE = {"atol": 2e-5, "rtol": 0}


def trained(out: Path, model: str, start: Path | None = None, **more: Any) -> Path:
    """A classifier of verdicts."""
    recipe = foveate.recipe(
        "classify", out=out, start=start, model=model, architecture={**SIZES, **more}, vocabulary=60, **SETTINGS
    )
    learn(recipe, verdicts.splits(), Console(file=StringIO()))
    return out


def exported(run: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    out = run.parent / "exported"
    main(["export", str(run), "--out", str(out)])
    assert f"from_pretrained('{out}')" in capsys.readouterr().out
    return out


def opened(out: Path, kind: str) -> tuple[Any, Any]:
    model = getattr(transformers, f"AutoModelFor{kind}Classification").from_pretrained(out).eval()
    automatic = "qwen" not in model.config.model_type  # of which it takes another class than the folder names
    reader = transformers.AutoTokenizer if automatic else transformers.PreTrainedTokenizerFast
    return model, reader.from_pretrained(out)


@pytest.mark.parametrize(
    ("model", "more"),
    [
        *(("bert-base", {}), ("bert-base", {"activation": "silu"}), ("gpt-tiny", {}), ("gpt-tiny", {"norm": "post"})),
        *((name, RMS) for name in ("smollm2-135m", "mistral-7b", "qwen2-0.5b", "qwen3-0.6b", "gemma2-2b", "phi3-mini")),
    ],
)
def test_a_classifier(model: str, more: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With padding in one batch, by transformers' tokenizer; and the folder is one that foveate runs."""
    if more.get("norm") == "post":
        more = {**more, "feedforward": 80, "activation": "gelu-tanh"}
    run = trained(tmp_path / "run", model, **more)
    out = exported(run, capsys)
    theirs, tokenizer = opened(out, "Sequence")
    ours, again = foveate.load(run), foveate.load(out)
    inputs = tokenizer(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        shares = theirs(**inputs).logits.softmax(-1)
        lengths = inputs["attention_mask"].sum(1)
        logits = ours.model(inputs["input_ids"], lengths).logits[:, 0]
        torch.testing.assert_close(theirs(**inputs).logits, logits, **CLOSE)
    for task in (ours, again):
        for decision, expected in zip(task.answer(TEXTS, NoOptions()), shares.tolist(), strict=True):
            named = dict(zip(theirs.config.id2label.values(), expected, strict=True))
            assert decision.probabilities == pytest.approx(named, abs=2e-5)


def test_labels_have_a_bias_where_there_is_a_place_for_it(tmp_path: Path) -> None:
    """Of an RMS norm only where it is asked for, which no export takes; from a run as from nothing."""

    def biased(name: str, **given: Any) -> Any:
        return foveate.recipe("reward", model=name, **given).architecture.label_bias

    assert biased("gpt-tiny")
    assert not biased("smollm2-135m")
    assert biased("smollm2-135m", architecture={"label_bias": True})
    assert foveate.recipe("tag", model="smollm2-135m").architecture.label_bias
    run = trained(tmp_path / "run", "smollm2-135m", **RMS)
    again = foveate.recipe("reward", start=run)
    assert (again.model, again.architecture.label_bias) == ("smollm2-135m", False)
    recipe = foveate.recipe(
        "classify",
        out=tmp_path / "biased",
        model="smollm2-135m",
        architecture={**SIZES, **RMS, "label_bias": True},
        vocabulary=60,
        export=("hf",),
        **SETTINGS,
    )
    with pytest.raises(UserError, match=r"has no bias of labels: train with --architecture\.no-label-bias"):
        learn(recipe, verdicts.splits(), Console(file=StringIO()))
    assert not (tmp_path / "biased").exists()


def test_a_public_bert_that_was_fine_tuned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = trained(tmp_path / "run", "bert-base", write_folder(tmp_path / "base", initial=True))
    out = exported(run, capsys)
    theirs, tokenizer = opened(out, "Sequence")
    answers = foveate.load(run).answer(TEXTS, NoOptions())
    with torch.no_grad():
        shares = theirs(**tokenizer(TEXTS, padding=True, return_tensors="pt")).logits.softmax(-1)
    for decision, expected in zip(answers, shares.tolist(), strict=True):
        assert [*decision.probabilities.values()] == pytest.approx(expected, abs=2e-5)
    base = transformers.BertTokenizerFast(str(tmp_path / "base" / "vocab.txt"))
    assert tokenizer(TEXTS)["input_ids"] == base(TEXTS)["input_ids"]


def write_roberta(folder: Path) -> Path:
    """A RoBERTa of transformers with random weights: padding has the id 1, and there is one type of tokens."""
    words = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *WORDS[5:]]
    sizes = {"hidden_size": 20, "num_attention_heads": 5, "num_hidden_layers": 2, "intermediate_size": 28}
    config = transformers.RobertaConfig(
        vocab_size=len(words), max_position_embeddings=21, type_vocab_size=1, layer_norm_eps=1e-5, **sizes
    )
    transformers.RobertaModel(config).save_pretrained(folder)
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, "<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(words[:5])
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


@pytest.mark.parametrize("model", ["bert-base", "public", "roberta-base"])
def test_pairs(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With padding, by transformers' tokenizer; and the folder is one that foveate runs."""
    starts = {
        "public": lambda: write_folder(tmp_path / "base", initial=True),
        "roberta-base": lambda: write_roberta(tmp_path / "base"),
    }
    start = starts[model]() if model in starts else None
    preset = "bert-base" if model == "public" else model
    settings = {**SETTINGS, "architecture": dict(SIZES), "max_length": 14, "vocabulary": 60}
    recipe = foveate.recipe("pair", out=tmp_path / "run", start=start, model=preset, **settings)
    pairs = [
        LabelledPair(str(at), label, f"{text} dogs", text) for at, (label, text) in enumerate(verdicts.examples(90, 3))
    ]
    parts = Splits(*(Dataset("pairs", part) for part in (pairs[:60], pairs[60:], pairs[60:])))
    learn(recipe, parts, Console(file=StringIO()))
    out = exported(tmp_path / "run", capsys)
    theirs, tokenizer = opened(out, "Sequence")
    firsts, seconds = ["bad dogs", "the cats of the story", "cats"], ["great cats", "dogs", "the film was"]
    inputs = tokenizer(firsts, seconds, padding=True, return_tensors="pt")
    ours, again = foveate.load(tmp_path / "run"), foveate.load(out)
    reads = ours.processor.reads
    own, _ = reads.tensors([reads.prepare(pair) for pair in zip(firsts, seconds, strict=True)])
    assert torch.equal(own["tokens"], inputs["input_ids"])
    assert ("token_type_ids" in inputs) == ("token_types" in own)
    with torch.no_grad():
        logits = theirs(**inputs).logits
        torch.testing.assert_close(logits, ours.model(**own).logits[:, 0], **CLOSE)
    texts = ["\t".join(pair) for pair in zip(firsts, seconds, strict=True)]
    for task in (ours, again):
        for decision, shares in zip(task.answer(texts, NoOptions()), logits.softmax(-1).tolist(), strict=True):
            named = dict(zip(theirs.config.id2label.values(), shares, strict=True))
            assert decision.probabilities == pytest.approx(named, abs=2e-5)


@pytest.mark.parametrize("public", [False, True])
def test_a_tagger(public: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tags = dict.fromkeys(verdicts.OTHERS, "other") | dict.fromkeys(verdicts.TELLING["praise"], "telling")
    sentences = [
        Tagged(place, tuple(text.split()), tuple(tags.get(word, "bad") for word in text.split()))
        for place, (_, text) in enumerate(verdicts.examples(200, 3))
    ]
    start = write_folder(tmp_path / "base", initial=True) if public else None
    settings = {**SETTINGS, "architecture": dict(SIZES)}
    recipe = foveate.recipe("tag", out=tmp_path / "run", start=start, model="bert-base", **settings)
    parts = Splits(*(Dataset("sentences", part) for part in (sentences[:150], sentences[150:], sentences[150:])))
    learn(recipe, parts, Console(file=StringIO()))
    out = exported(tmp_path / "run", capsys)
    theirs, tokenizer = opened(out, "Token")
    ours = foveate.load(tmp_path / "run")
    for text in TEXTS:
        words = text.split()
        inputs = tokenizer(words, is_split_into_words=True, return_tensors="pt")
        reads = ours.processor.reads
        given, _ = reads.tensors([reads.prepare(tuple(words))])
        assert torch.equal(given["tokens"], inputs["input_ids"])
        with torch.no_grad():
            logits = theirs(**inputs).logits[:, given["places"][0]]
            torch.testing.assert_close(logits, ours.model(**given).logits, **CLOSE)
        named = [theirs.config.id2label[number] for number in logits[0].argmax(-1).tolist()]
        assert named == list(ours.answer([text], NoOptions())[0].tags)


@pytest.mark.parametrize(
    ("model", "more", "message"),
    [
        (
            "bert-mini",
            {},
            "this BERT has the positions rotary, but transformers' BERT learned: it has no public layout",
        ),
        ("bert-base", {"pooling": "mean"}, "transformers' BERT reads a text's first token: train with --architecture"),
        (
            "gpt-tiny",
            {"pooling": "mean"},
            "GPT2ForSequenceClassification labels a text by its last token: train",
        ),
        ("gpt-tiny", {"positions": "rotary"}, "only a GPT with learned positions, plain attention and layer norms"),
        ("transformer-classifier", {}, "transformers has no model like a transformer-encoder: it has no public layout"),
        ("roberta-base", {}, "transformers' RoBERTa counts positions from its padding token, 1, but here it is 0"),
    ],
)
def test_models_that_transformers_lacks(model: str, more: dict[str, Any], message: str, tmp_path: Path) -> None:
    sizes = SIZES if model != "transformer-classifier" else {"width": 20, "heads": 5, "layers": 1}
    settings = {**SETTINGS, "steps": 1, "architecture": {**sizes, **more}}
    recipe = foveate.recipe("classify", out=tmp_path / "run", model=model, **settings)
    learn(recipe, verdicts.splits(60), Console(file=StringIO()))
    with pytest.raises(UserError, match=message):
        export_labels(foveate.load(tmp_path / "run"), tmp_path / "out")
    assert not (tmp_path / "out" / "config.json").exists()


def test_more_labels_than_the_model_is_wide(tmp_path: Path) -> None:
    """Then no bias of the last norm stands for that of the labels."""
    run = trained(tmp_path / "run", "gpt-tiny")
    predictor = foveate.load(run)
    wide = foveate.create("gpt-tiny", vocabulary=50, classes=31, head="text", **SIZES)
    with torch.no_grad():
        wide.output.bias.uniform_(-1, 1)
    predictor.model = wide
    with pytest.raises(
        UserError, match="transformers' GPT has no bias for labels, and 31 labels need one at this width"
    ):
        export_labels(predictor, tmp_path / "out")
