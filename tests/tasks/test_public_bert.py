"""BERTs in Hugging Face folders, by their head: the answers of transformers' pipelines."""

import json
import shutil
from io import StringIO
from pathlib import Path

import pytest
import torch
import transformers
from rich.console import Console
from tiny_bert import WORDS, write_folder

import foveate
from foveate.cli import main
from foveate.errors import UserError
from foveate.forms.answers import NoOptions
from foveate.forms.blanks import FillOptions

CONSOLE = Console(file=StringIO())


@pytest.fixture(scope="module")
def filler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("words"), "BertForMaskedLM")


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_folder(tmp_path_factory.mktemp("text"), "BertForSequenceClassification")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"id2label": {"1": "praise", "0": "blame"}}))
    return folder


def test_words_and_probabilities_are_those_of_transformers(filler: Path) -> None:
    """Two texts, a mask in each; the second has token type 1."""
    model = transformers.BertForMaskedLM.from_pretrained(filler).eval()
    tokenizer = transformers.BertTokenizerFast(str(filler / "vocab.txt"))
    given = tokenizer("the film was [MASK]!", "poor [MASK].", return_tensors="pt")
    with torch.no_grad():
        expected = model(**given).logits[0].softmax(-1)
    places = (given["input_ids"][0] == tokenizer.mask_token_id).nonzero()[:, 0].tolist()
    task = foveate.load(filler)
    (found, none) = task.answer(["the film was [MASK]! [SEP] poor [MASK].", ""], FillOptions(best=3))
    assert [len(blank.words) for blank in found.blanks] == [3, 3]
    for blank, place in zip(found.blanks, places, strict=True):
        shares, ids = expected[place].topk(3)
        assert blank.probabilities == pytest.approx(shares.tolist(), abs=2e-5)
        assert [word.replace("·", "##") for word in blank.words] == [WORDS[number] for number in ids.tolist()]
    assert (none.line, none.blanks) == ("", [])


def test_labels_and_probabilities_are_those_of_transformers(classifier: Path, tmp_path: Path) -> None:
    model = transformers.BertForSequenceClassification.from_pretrained(classifier).eval()
    tokenizer = transformers.BertTokenizerFast(str(classifier / "vocab.txt"))
    texts = ["the film was a great story", "bad dogs"]
    with torch.no_grad():
        expected = model(**tokenizer(texts, padding=True, return_tensors="pt")).logits.softmax(-1)
    task = foveate.load(classifier)
    for decision, shares in zip(task.answer(texts, NoOptions()), expected.tolist(), strict=True):
        assert [*decision.probabilities] == ["blame", "praise"]
        assert [*decision.probabilities.values()] == pytest.approx(shares, abs=2e-5)
    data = tmp_path / "texts.tsv"
    data.write_text("blame\tbad dogs\npraise\tgreat cats\n")
    assert task.evaluate([data], NoOptions(), CONSOLE).figures["texts"] == 2


def test_on_the_command_line(filler: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", str(filler), "the [MASK] was long", "--best", "2"])
    text, blank = capsys.readouterr().out.rstrip("\n").split("\t")
    assert text == f"the {blank.split()[0]} was long"
    assert len(blank.split(", ")) == 2


def test_what_cannot_be(filler: Path, tmp_path: Path) -> None:
    task = foveate.load(filler)
    with pytest.raises(UserError, match=r"'no blanks' has no \[MASK\]"):
        task.run("no blanks")
    with pytest.raises(UserError, match="takes 20 positions, but the model learned only 19"):
        task.run(" ".join(["[MASK]"] * 18))
    copy = shutil.copytree(filler, tmp_path / "copy")
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"architectures": ["BertForMultipleChoice"]}))
    with pytest.raises(UserError, match="copy is a BertForMultipleChoice; foveate runs "):
        foveate.load(copy)
    (copy / "config.json").write_text(json.dumps(config | {"hidden_size": 30}))
    with pytest.raises(UserError, match=r"is \(\d*,? ?20,?\), but \(\d*,? ?30,?\) by its config\.json"):
        foveate.load(copy)
    (copy / "config.json").write_text(json.dumps(config))
    words = [word for word in WORDS if word != "[MASK]"]
    (copy / "vocab.txt").write_text("\n".join(words))
    with pytest.raises(UserError, match=r"the vocabulary has neither \[MASK\] nor <mask>"):
        foveate.load(copy).run("the [MASK]")
