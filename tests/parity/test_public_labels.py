"""Hugging Face folders with heads for labels: transformers' logits, and the answers on the command line."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from public_models import CONFIGS, compare_gradients, word_tokenizer
from rich.console import Console
from torch.nn import functional

import foveate
from foveate.cli import main
from foveate.errors import UserError
from foveate.forms.answers import Failure, NoOptions
from foveate.interop.public_folder import read_folder

TEXTS = ["the keeper lit the lamp", "counting", "each dawn , up"]
NAMES = {"id2label": {0: "b", 1: "a", 2: "c"}, "label2id": {"b": 0, "a": 1, "c": 2}}
FAMILIES = ("gpt2", "gpt1", "gpt-neox", "llama")
TEXT, TOKENS = "AutoModelForSequenceClassification", "AutoModelForTokenClassification"
BERT = {"num_attention_heads": 5, "hidden_size": 20, "num_hidden_layers": 2, "intermediate_size": 28}
CLOSE = {"atol": 2e-5, "rtol": 0}


def made(config: Any, kind: str, place: Path) -> Any:
    """A random model of transformers, saved with a tokenizer of words."""
    torch.manual_seed(7)
    model = (
        getattr(transformers, kind).from_config(config)
        if kind.startswith("Auto")
        else getattr(transformers, kind)(config)
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-0.3, 0.3)
    model.eval().save_pretrained(place)
    word_tokenizer().save(str(place / "tokenizer.json"))
    return model


def of_family(name: str, kind: str, place: Path) -> Any:
    given = CONFIGS[name].to_dict() | NAMES | {"pad_token_id": 50}
    return made(type(CONFIGS[name])(**given), kind, place)


CASES = [(name, kind) for name in FAMILIES for kind in (TEXT, TOKENS) if (name, kind) != ("gpt1", TOKENS)]


@pytest.mark.parametrize(("name", "kind"), CASES)
@pytest.mark.parametrize("side", ["right", "left"])
def test_logits_and_gradients_with_padding(name: str, kind: str, side: str, tmp_path: Path) -> None:
    theirs, ours = of_family(name, kind, tmp_path), read_folder(tmp_path).model
    lengths, tokens = torch.tensor([11, 7, 4]), torch.randint(50, (3, 11))
    before = 11 - lengths[:, None] if side == "left" else torch.zeros(3, 1, dtype=torch.long)
    real = (torch.arange(11) >= before) & (torch.arange(11) < before + lengths[:, None])
    tokens[~real] = 50
    logits = ours(tokens, lengths, side).logits
    # rows by themselves: theirs gives padded rows on the left other positions in some families
    alone = [theirs(tokens[row : row + 1, real[row]]).logits for row in range(3)]
    found = logits[:, 0] if kind == TEXT else logits[real]
    expected = torch.cat(alone if kind == TEXT else [one[0] for one in alone])
    torch.testing.assert_close(found, expected, **CLOSE)
    for each in (found, expected):
        functional.cross_entropy(each, torch.arange(len(each)) % 3).backward()
    compare_gradients(tmp_path, ours, theirs)


@pytest.mark.parametrize("name", FAMILIES)
def test_labels_of_texts(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    theirs = of_family(name, TEXT, tmp_path)
    task = foveate.load(tmp_path)
    ids = [encoding.ids for encoding in word_tokenizer().encode_batch(TEXTS)]
    answers = task.answer([*TEXTS, ""], NoOptions())
    for decision, tokens in zip(answers, ids, strict=False):
        with torch.no_grad():
            shares = theirs(torch.tensor([tokens])).logits[0].softmax(-1).tolist()
        assert [*decision.probabilities] == ["b", "a", "c"]
        assert [*decision.probabilities.values()] == pytest.approx(shares, abs=2e-5)
    assert answers[-1].line == ""
    main(["run", str(tmp_path), *TEXTS])
    assert [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()] == [one.label for one in answers[:3]]
    data = tmp_path / "data.tsv"
    data.write_text("".join(f"{one.label}\t{text}\n" for one, text in zip(answers, TEXTS, strict=False)))
    main(["eval", str(tmp_path), "--data", str(data)])
    assert "100.00" in capsys.readouterr().out
    if name != "gpt1":  # transformers' tokenizer of a GPT-1 has a token <unk>, which these words lack
        main(["look", str(tmp_path), TEXTS[0], "--out", str(tmp_path / "look.html")])


@pytest.mark.parametrize("name", ["gpt2", "gpt-neox", "llama", "BertForTokenClassification"])
def test_tags_of_words(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if name.startswith("Bert"):
        words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "keep", "##er", "lit"]
        config = transformers.BertConfig(vocab_size=len(words), max_position_embeddings=17, **BERT, **NAMES)
        theirs = made(config, name, tmp_path)
        (tmp_path / "tokenizer.json").unlink()
        (tmp_path / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
        ids, first = [2, 4, 5, 6, 7, 3], [1, 2, 4]
    else:
        theirs = of_family(name, TOKENS, tmp_path)
        ids, first = word_tokenizer().encode("the keeper lit").ids, [0, 1, 2]
    with torch.no_grad():
        numbers = theirs(torch.tensor([ids])).logits[0, first].argmax(-1).tolist()
    tags = ["bac"[number] for number in numbers]
    (tagging, empty) = foveate.load(tmp_path).answer(["the keeper lit", " "], NoOptions())
    assert (tagging.tags, [*tagging.words], empty.line) == (tags, ["the", "keeper", "lit"], "")
    main(["run", str(tmp_path), "the keeper lit"])
    assert capsys.readouterr().out == f"the/{tags[0]} keeper/{tags[1]} lit/{tags[2]}\n"
    data = tmp_path / "data.tsv"
    data.write_text("".join(f"{word}\t{tag}\n" for word, tag in zip(tagging.words, tags, strict=True)))
    found = foveate.load(tmp_path).evaluate([data], NoOptions(), Console(file=StringIO()))
    assert "3 words, 3 tags" in found.notes
    (metrics,) = found.figures["ways"].values()
    assert metrics["accuracy"] == 100


def test_a_cpu_reads_few_tokens_together(tmp_path: Path) -> None:
    """Longest first, in batches that fit into its cache; the answers come in the order of the texts."""
    of_family("gpt2", TEXT, tmp_path)
    task, shapes = foveate.load(tmp_path), []
    texts = [" ".join(["lamp"] * (1 + number % 29)) for number in range(90)]
    alone = [task.run(text).probabilities for text in texts[:29]]
    task.model.register_forward_pre_hook(
        lambda model, given, named: shapes.append(named["tokens"].shape), with_kwargs=True
    )
    found = task.answer(texts, NoOptions())
    assert sum(rows for rows, _ in shapes) == 90
    assert all(rows * length <= 512 for rows, length in shapes)
    assert [length for _, length in shapes] == sorted((length for _, length in shapes), reverse=True)
    for number, one in enumerate(found):
        assert one.probabilities == pytest.approx(alone[number % 29], abs=2e-5)


def test_the_next_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "lamp", "lit"]
    config = transformers.BertConfig(vocab_size=len(words), max_position_embeddings=17, **BERT)
    theirs = made(config, "BertForNextSentencePrediction", tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    with torch.no_grad():
        given = {
            "input_ids": torch.tensor([[2, 4, 5, 3, 6, 3]]),
            "token_type_ids": torch.tensor([[0, 0, 0, 0, 1, 1]]),
        }
        shares = theirs(**given).logits[0].softmax(-1).tolist()
    (found,) = foveate.load(tmp_path).answer(["the lamp\tlit"], NoOptions())
    assert [*found.probabilities.values()] == pytest.approx(shares, abs=2e-5)
    assert [*found.probabilities] == ["next", "not next"]
    with pytest.raises(SystemExit) as ended:
        main(["run", str(tmp_path), "the lamp"])
    assert ended.value.code == 2
    assert "'the lamp' has 0 tabs, where one tab must separate two texts" in capsys.readouterr().err


def test_what_cannot_be(tmp_path: Path) -> None:
    of_family("gpt2", TEXT, tmp_path)
    task = foveate.load(tmp_path)
    found = task.answer(["the", "", " ".join(["lamp"] * 38)], NoOptions())
    assert [type(one) is Failure for one in found] == [False, False, True]
    assert "takes 38 positions, but the model learned only 37" in found[2].reason
    with pytest.raises(UserError, match="this model was trained elsewhere: give --data FILE"):
        task.evaluate([], NoOptions(), Console(file=StringIO()))
    config = (tmp_path / "config.json").read_text()
    wrong = config.replace("GPT2ForSequenceClassification", "GPT2ForQuestionAnswering")
    (tmp_path / "config.json").write_text(wrong)
    with pytest.raises(UserError, match=r"GPT2ForQuestionAnswering; foveate runs GPT2LMHeadModel, .*ForTokenClassif"):
        foveate.load(tmp_path)
    (tmp_path / "config.json").write_text(config.replace('"1": "a"', '"1": "b"'))
    with pytest.raises(UserError, match="has the label 'b' 2 times"):
        foveate.load(tmp_path)
    (tmp_path / "config.json").write_text(config.replace('"2": "c"', '"7": "c"'))
    with pytest.raises(UserError, match="but labels are numbered 0, 1, 2"):
        foveate.load(tmp_path)
