"""Exported models that fill in words give transformers the logits that they have here."""

from pathlib import Path
from typing import Any

import pytest
import tiny_bert
import tiny_prose
import torch
import transformers

import foveate
from foveate.cli import main
from foveate.errors import UserError
from foveate.forms.blanks import FillOptions
from foveate.interop.keys import bert

SMALL = ["--architecture.width", "24", "--architecture.layers", "2", "--vocabulary", "90", "--max-length", "32"]
TRAINING = ["--batch", "256", "--steps", "3", "--average", "1", "--threads", "1", "--validation-examples", "5"]
CLOSE = {"atol": 2e-5, "rtol": 0}


def exported(model: str, folder: Path, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[Any, Path, str]:
    """The trained model, its exported folder, and what the command says."""
    files = tiny_prose.write_files(folder)
    heads = ["--architecture.heads", "2"] if model != "elmo-tiny" else []
    command = ["train", "cloze", "--data", *map(str, files), "--model", model, "--out", str(folder / "run")]
    main([*command, *SMALL, *heads, *TRAINING, *more])
    capsys.readouterr()
    main(["export", str(folder / "run"), "--out", str(folder / "out")])
    return foveate.load(folder / "run"), folder / "out", capsys.readouterr().out


@pytest.mark.parametrize("more", [[], ["--architecture.no-tie"]], ids=["tied", "untied"])
def test_a_bert(more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours, out, said = exported("bert-tiny", tmp_path, capsys, *more)
    assert "AutoModelForMaskedLM.from_pretrained" in said
    theirs, loaded = transformers.AutoModelForMaskedLM.from_pretrained(out, output_loading_info=True)
    assert not loaded["missing_keys"]
    assert not loaded["unexpected_keys"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(out)
    text = "The whale [MASK] home. The [MASK] sings"
    tokens, places, _ = ours.reads.prepare(text)
    assert [at for at, token in enumerate(tokens) if token == tokenizer.mask_token_id] == places
    assert tokenizer("The whale comes home.")["input_ids"] == ours.reads.prepare("The whale comes home.").tokens
    given = torch.tensor([tokens])
    with torch.no_grad():
        torch.testing.assert_close(theirs.eval()(given).logits, ours.model(given).logits, **CLOSE)


def test_an_xlnet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its exported folder also fills in words here, by the probabilities of transformers."""
    ours, out, said = exported("xlnet-tiny", tmp_path, capsys)
    assert "XLNetLMHeadModel.from_pretrained" in said
    theirs = transformers.XLNetLMHeadModel.from_pretrained(out).eval()
    tokens = torch.tensor([ours.reads.prepare("The whale comes home.").tokens])
    with torch.no_grad():
        torch.testing.assert_close(theirs(tokens).logits, ours.model(tokens).logits, **CLOSE)
    (found,) = foveate.load(out).answer(["The [MASK] comes home."], FillOptions(3))
    assert len(found.blanks[0].words) == 3


def test_an_elmo_is_not_of_transformers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        exported("elmo-tiny", tmp_path, capsys)
    assert ended.value.code == 2
    assert "transformers has no model like elmo-tiny: a BERT and an XLNet are exported" in capsys.readouterr().err


@pytest.mark.parametrize("activation", ["gelu_new", "relu", "silu"])
def test_the_activation_before_words(activation: str, tmp_path: Path) -> None:
    """transformers' BERT has that of its layers there, its RoBERTa always GELU."""
    config = transformers.BertConfig(**{**tiny_bert.SIZES, "hidden_act": activation})
    theirs = transformers.BertForMaskedLM(config).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.uniform_(-0.5, 0.5)
    theirs.save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join(tiny_bert.WORDS), encoding="utf-8")
    ours, tokens = foveate.load(tmp_path).model, torch.randint(23, (3, 11))
    with torch.no_grad():
        torch.testing.assert_close(ours(tokens).logits, theirs(tokens).logits, **CLOSE)
    ours.config.word_activation = "gelu"
    with pytest.raises(UserError, match="before its words too, but this one gelu"):
        bert.write_config(ours.config)
