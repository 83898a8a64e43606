"""Hugging Face folders of an XLNet with each head: transformers' logits and the answers on the command line."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from public_models import compare_gradients
from safetensors.torch import load_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors
from torch.nn.functional import one_hot

import foveate
from foveate.cli import main
from foveate.errors import UserError
from foveate.forms.answers import NoOptions
from foveate.forms.blanks import FillOptions
from foveate.interop.public_folder import read_folder, write_folder

CLOSE = {"atol": 2e-5, "rtol": 0}
SPECIAL = {"unk": "<unk>", "sep": "<sep>", "pad": "<pad>", "cls": "<cls>", "mask": "<mask>"}
PIECES = ["▁the", "▁keep", "er", "▁lit", "▁lamp", "▁up", "▁", "s"]
NAMES = {"id2label": {0: "b", 1: "a", 2: "c"}, "label2id": {"b": 0, "a": 1, "c": 2}}
SIZES = {"d_model": 20, "n_head": 5, "d_inner": 28, "n_layer": 3, "ff_activation": "gelu"}
HEADS = {
    "words": "LMHeadModel",
    "text": "ForSequenceClassification",
    "tokens": "ForTokenClassification",
    "none": "Model",
}


def tokenizer() -> Tokenizer:
    """Pieces of words, and behind each text <sep> and, as a segment of its own, <cls>: as XLNet's tokenizers do."""
    words = [*SPECIAL.values(), *PIECES]
    made = Tokenizer(models.Unigram([(word, -float(number)) for number, word in enumerate(words)], 0))
    made.pre_tokenizer, made.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    made.add_special_tokens([AddedToken(name, lstrip=name == "<mask>", special=True) for name in SPECIAL.values()])
    made.post_processor = processors.TemplateProcessing(
        single="$A:0 <sep>:0 <cls>:2",
        pair="$A:0 <sep>:0 $B:1 <sep>:1 <cls>:2",
        special_tokens=[(name, words.index(name)) for name in ("<sep>", "<cls>")],
    )
    return made


def folder_of(head: str, folder: Path) -> Any:
    torch.manual_seed(7)
    config = transformers.XLNetConfig(vocab_size=len(SPECIAL) + len(PIECES), **SIZES, **NAMES)
    model = getattr(transformers, f"XLNet{HEADS[head]}")(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-0.3, 0.3)
    model.save_pretrained(folder)
    tokenizer().save(str(folder / "tokenizer.json"))
    names = {f"{role}_token": name for role, name in SPECIAL.items()}
    (folder / "tokenizer_config.json").write_text(json.dumps(names), encoding="utf-8")
    return model


def given(text: str, second: str | None = None) -> dict[str, torch.Tensor]:
    found = tokenizer().encode(text, second)
    return {"input_ids": torch.tensor([found.ids]), "token_type_ids": torch.tensor([found.type_ids])}


@pytest.mark.parametrize("head", HEADS)
def test_logits_and_gradients_with_padding_and_segments(head: str, tmp_path: Path) -> None:
    theirs, ours = folder_of(head, tmp_path), read_folder(tmp_path).model
    lengths, tokens, segments = torch.tensor([11, 7, 2]), torch.randint(13, (3, 11)), torch.randint(3, (3, 11))
    found = ours(tokens, lengths, segments=segments).logits
    for row, length in enumerate(lengths.tolist()):
        part = slice(row, row + 1), slice(0, length)
        expected = theirs(tokens[part], token_type_ids=segments[part])[0]
        own = found[row : row + 1, 0] if head == "text" else found[part]
        torch.testing.assert_close(own, expected, **CLOSE)
        weights = torch.randn_like(expected) / 8
        for logits in (own, expected):
            (logits * weights).sum().backward(retain_graph=True)
    compare_gradients(tmp_path, ours, theirs)


@pytest.mark.parametrize("head", HEADS)
def test_written_back_with_the_same_bits(head: str, tmp_path: Path) -> None:
    theirs, found = folder_of(head, tmp_path / "theirs"), read_folder(tmp_path / "theirs")
    write_folder(tmp_path / "ours", found.family, found.model, NAMES)
    before, after = (load_file(tmp_path / place / "model.safetensors") for place in ("theirs", "ours"))
    assert before.keys() == after.keys()
    assert all(torch.equal(value, after[name]) for name, value in before.items())
    again = type(theirs).from_pretrained(tmp_path / "ours").eval()
    with torch.no_grad():
        torch.testing.assert_close(again(**given("the lamp"))[0], theirs(**given("the lamp"))[0], **CLOSE)


def test_words_in_blanks(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Nobody sees a blank, and it is predicted at its place."""
    theirs, text = folder_of("words", tmp_path), "the <mask> lit <mask> lamp"
    inputs = given(text)
    blanks = inputs["input_ids"][0] == tokenizer().token_to_id("<mask>")
    places, length = blanks.nonzero()[:, 0], len(blanks)
    with torch.no_grad():
        mapping = one_hot(places, length)[None].float()
        logits = theirs(**inputs, perm_mask=blanks.float().expand(1, length, length), target_mapping=mapping).logits
    shares, ids = logits[0].softmax(-1).topk(3)
    (found, empty) = foveate.load(tmp_path).answer(["the [MASK] lit [MASK] lamp", ""], FillOptions(3))
    assert len(places) == len(found.blanks) == 2
    for blank, expected, numbers in zip(found.blanks, shares.tolist(), ids.tolist(), strict=True):
        assert blank.probabilities == pytest.approx(expected, abs=2e-5)
        names = [tokenizer().id_to_token(number) for number in numbers]
        assert [word.lstrip("·") for word in blank.words] == [name.removeprefix("▁") or "▁" for name in names]
    assert empty.line == ""
    main(["run", str(tmp_path), "the [MASK] lit", "--best", "1"])
    assert capsys.readouterr().out.startswith("the ")
    main(["look", str(tmp_path), "the [MASK] lit [MASK]", "--out", str(tmp_path / "look.html")])
    assert "25 heads at 5 sites" in capsys.readouterr().out  # nothing reads the last content stream
    assert (tmp_path / "look.html").stat().st_size > 10_000
    with pytest.raises(SystemExit) as ended:
        main(["run", str(tmp_path), "the lamp"])
    assert ended.value.code == 2
    assert "'the lamp' has no [MASK]" in capsys.readouterr().err


def test_labels_of_texts(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    theirs, texts = folder_of("text", tmp_path), ["the keeper lit the lamp", "up", "the lamps"]
    answers = foveate.load(tmp_path).answer([*texts, ""], NoOptions())
    for text, decision in zip(texts, answers, strict=False):
        with torch.no_grad():
            shares = theirs(**given(text)).logits[0].softmax(-1).tolist()
        assert [*decision.probabilities] == ["b", "a", "c"]
        assert [*decision.probabilities.values()] == pytest.approx(shares, abs=2e-5)
    assert answers[-1].line == ""
    main(["look", str(tmp_path), texts[0], "--out", str(tmp_path / "look.html")])
    assert "15 heads at 3 sites" in capsys.readouterr().out


def test_labels_of_pairs(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Two texts with a tab between them, each a segment of its own."""
    theirs, pair = folder_of("text", tmp_path), ("the keeper lit", "the lamps")
    inputs = given(*pair)
    assert inputs["token_type_ids"][0].tolist() == [0] * 5 + [1] * 4 + [2]
    with torch.no_grad():
        shares = theirs(**inputs).logits[0].softmax(-1).tolist()
    task = foveate.load(tmp_path)
    (decision,) = task.answer(["\t".join(pair)], NoOptions())
    assert [*decision.probabilities.values()] == pytest.approx(shares, abs=2e-5)
    data = tmp_path / "pairs.tsv"
    data.write_text(f"{decision.label}\tthe keeper lit\tthe lamps\n", encoding="utf-8")
    main(["eval", str(tmp_path), "--data", str(data)])
    assert "100.00" in capsys.readouterr().out


def test_vectors(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Without a head: the normalized mean of a text's tokens, or what a folder of sentence-transformers says."""
    theirs, texts = folder_of("none", tmp_path), ["the keeper lit the lamp", "up", "the lamps"]
    task = foveate.load(tmp_path)
    with torch.no_grad():
        hidden = [theirs(**given(text)).last_hidden_state[0] for text in texts]
    expected = torch.nn.functional.normalize(torch.stack([one.mean(0) for one in hidden]), dim=-1)
    torch.testing.assert_close(task.embed(texts), expected, **CLOSE)
    assert task.embed([]).shape == (0, 20)
    main(["run", str(tmp_path), texts[1]])
    assert [float(one) for one in capsys.readouterr().out.split()] == pytest.approx(expected[1].tolist(), abs=2e-5)
    main(["look", str(tmp_path), texts[0], "--out", str(tmp_path / "look.html")])
    assert "15 heads at 3 sites" in capsys.readouterr().out
    modules = [{"type": "x.Transformer", "path": ""}, {"type": "x.Pooling", "path": "1_Pooling"}]
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling/config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    first = foveate.load(tmp_path).embed(texts)
    torch.testing.assert_close(first, torch.stack([one[0] for one in hidden]), **CLOSE)


@pytest.mark.parametrize("head", ["words", "none"])
def test_no_onnx(head: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    folder_of(head, tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["export", str(tmp_path), "--to", "onnx", "--out", str(tmp_path / "onnx")])
    assert ended.value.code == 2
    assert "an XLNet is not written as ONNX: language models, BERTs and" in capsys.readouterr().err


def test_tags_of_words(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    theirs = folder_of("tokens", tmp_path)
    with torch.no_grad():
        logits = theirs(**given("the keeper lit")).logits[0]
    tags = ["bac"[number] for number in logits[[0, 1, 3]].argmax(-1).tolist()]
    main(["run", str(tmp_path), "the keeper lit"])
    assert capsys.readouterr().out == f"the/{tags[0]} keeper/{tags[1]} lit/{tags[2]}\n"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"attn_type": "uni"}, "has attn_type 'uni'; foveate's models have 'bi' only"),
        ({"summary_type": "mean"}, "has summary_type 'mean'; foveate's models have 'last' only"),
        ({"d_head": 7}, "has heads of the width 7, but 5 of them must fill 20"),
        ({"ff_activation": "swish"}, "has the ff_activation 'swish'; foveate's models have gelu"),
        ({"architectures": ["XLNetForQuestionAnswering"]}, "is a XLNetForQuestionAnswering; foveate runs XLNetLMHead"),
        ({"d_inner": 29}, r"'transformer.layer.0.ff.layer_1.weight' is \(28, 20\), but \(29, 20\) by its config"),
        ({"vocab_size": 5}, r"'transformer.word_embedding.weight' is \(13, 20\)|'lm_loss.bias' is \(13,\)"),
    ],
)
def test_what_cannot_be(changed: dict[str, Any], message: str, tmp_path: Path) -> None:
    folder_of("words", tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))
    with pytest.raises(UserError, match=message) as told:
        foveate.load(tmp_path)
    assert "\n" not in str(told.value)


def test_a_tokenizer_without_a_mask(tmp_path: Path) -> None:
    folder_of("words", tmp_path)
    (tmp_path / "tokenizer_config.json").write_text("{}")
    with pytest.raises(UserError, match=r"names no mask_token in tokenizer_config.json"):
        foveate.load(tmp_path)
