"""Sentence embeddings of a BERT in a Hugging Face folder, against transformers."""

import json
from pathlib import Path

import pytest
import torch
import transformers
from tiny_bert import WORDS, write_folder

import foveate
from foveate.errors import UserError
from foveate.forms.answers import Failure
from foveate.forms.text_vector import NearOptions
from foveate.tasks.embedder import Embedder
from foveate.tasks.hf.fillers import WordFiller

TEXTS = ["the film was a great story", "dogs and cats!", "Bad", "a long, unheard-of story"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("bert"))


def expected(folder: Path, texts: list[str]) -> torch.Tensor:
    """The normalized mean of the encoded tokens, by transformers."""
    tokenizer = transformers.BertTokenizerFast(str(folder / "vocab.txt"))
    model = transformers.AutoModel.from_pretrained(folder).eval()
    given = tokenizer(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        hidden = model(**given).last_hidden_state
    real = given["attention_mask"][..., None]
    return torch.nn.functional.normalize((hidden * real).sum(1) / real.sum(1), dim=-1)


def test_vectors_equal_those_of_transformers(folder: Path) -> None:
    embedder = foveate.load(folder)
    vectors = embedder.embed(TEXTS)
    torch.testing.assert_close(vectors, expected(folder, TEXTS), atol=2e-5, rtol=0)
    assert embedder.run(TEXTS[0]).vector == pytest.approx(vectors[0].tolist(), abs=1e-6)
    numbers = [float(number) for number in embedder.run(TEXTS[0]).line.split()]
    assert numbers == pytest.approx(vectors[0].tolist(), abs=1e-6)


def test_the_first_token_without_a_norm(folder: Path, tmp_path: Path) -> None:
    other = write_folder(tmp_path / "cls")
    modules = [{"type": "x.Transformer", "path": ""}, {"type": "x.Pooling", "path": "1_Pooling"}]
    (other / "modules.json").write_text(json.dumps(modules))
    (other / "1_Pooling").mkdir()
    (other / "1_Pooling/config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    embedder = foveate.load(other)
    reads = embedder.processor.reads
    prepared = reads.prepare(TEXTS[1])
    hidden = embedder.model.encode(reads.tensors([prepared])[0]["tokens"])[0, 0]
    assert embedder.run(TEXTS[1]).vector == pytest.approx(hidden.tolist(), abs=1e-5)
    assert reads.names(prepared) == ["[CLS]", "dogs", "and", "cats", "!", "[SEP]"]
    (other / "1_Pooling/config.json").write_text(json.dumps({"pooling_mode_max_tokens": True}))
    with pytest.raises(UserError, match="names a way to make one vector that foveate has not"):
        foveate.load(other)
    for ways in ({"pooling_mode_lasttoken": True}, {"pooling_mode": "max"}):
        (other / "1_Pooling/config.json").write_text(json.dumps(ways))
        with pytest.raises(UserError, match="it has mean and first token"):
            foveate.load(other)
    (other / "modules.json").write_text(json.dumps([*modules, {"type": "x.Dense", "path": "2_Dense"}]))
    with pytest.raises(UserError, match=r"names a Dense; foveate reads Transformer, Pooling, Normalize"):
        foveate.load(other)
    (other / "modules.json").write_text("[1]")
    with pytest.raises(UserError, match=r"modules\.json is damaged"):
        foveate.load(other)


def test_modules_mean_an_embedder_whatever_the_head(folder: Path, tmp_path: Path) -> None:
    """A folder of sentence-transformers whose `config.json` names the head that its body was trained with."""
    other = write_folder(tmp_path / "words", "BertForMaskedLM")
    modules = [{"type": "x.Transformer", "path": ""}, {"type": "x.Pooling", "path": "1_Pooling"}]
    (other / "modules.json").write_text(json.dumps(modules))
    assert isinstance(foveate.load(other), Embedder)
    (other / "modules.json").unlink()
    assert isinstance(foveate.load(other), WordFiller)


def test_the_nearest_sentences(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "sentences.txt"
    file.write_text("\n".join([*TEXTS, "", "poor dogs"]), encoding="utf-8")
    embedder = foveate.load(folder)
    found, empty = embedder.answer([TEXTS[2], " "], NearOptions(near=file, count=2))
    cosines = expected(folder, [TEXTS[2]]) @ expected(folder, [*TEXTS, "poor dogs"]).T
    values, places = cosines[0].topk(2)
    assert [sentence for _, sentence in found.near] == [[*TEXTS, "poor dogs"][place] for place in places.tolist()]
    assert [cosine for cosine, _ in found.near] == pytest.approx(values.tolist(), abs=2e-5)
    assert found.line.startswith(f"1.000 {TEXTS[2]}\t")
    assert empty.line == ""


def test_a_tokenizer_as_transformers_has_it(folder: Path) -> None:
    theirs = transformers.BertTokenizerFast(str(folder / "vocab.txt"))
    ours = foveate.load(folder).processor.reads.tokenizer
    texts = ["The FILM wäs a stórys!", "dogs.cats  !\t日本 cats", "[SEP] [MASK] the", "", "\u0000 bad\u200b"]
    assert len(ours) == len(WORDS)
    for text in texts[:2] + texts[3:]:
        assert ours.encode([text])[0] == theirs(text, add_special_tokens=False)["input_ids"]
    assert WORDS.index("[SEP]") not in ours.encode(texts[2:3])[0]
    assert ours.pieces(ours.encode(["storys cats"])[0]) == ["story", "·s", "cats"]
    assert ours.decode(ours.encode(["bad storys"])) == ["bad storys"]


def test_what_cannot_be_embedded(folder: Path, tmp_path: Path) -> None:
    embedder = foveate.load(folder)
    with pytest.raises(UserError, match="takes 20 positions, but the model learned only 19"):
        embedder.embed(["the", " ".join(["dogs"] * 18)])
    read, long = embedder.answer(["the", " ".join(["dogs"] * 18)])
    assert len(read.vector) == 20
    assert isinstance(long, Failure)
    assert "takes 20 positions, but the model learned only 19" in long.reason
    with pytest.raises(UserError, match="count is 0, but must be at least 1"):
        embedder.answer(["the"], NearOptions(count=0))
    with pytest.raises(UserError, match="there is no file"):
        embedder.answer(["the"], NearOptions(near=tmp_path / "none.txt"))
