"""Folders of models that foveate has none of: they answer through transformers, with its numbers."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from folders import MASK, Folder
from public_models import word_tokenizer

import foveate
from foveate.cli import main
from foveate.decoding import Decoding, generate
from foveate.errors import UserError
from foveate.tasks.start.weights import open_start

FALCON = transformers.FalconConfig(vocab_size=53, hidden_size=20, num_hidden_layers=2, num_attention_heads=5)

MEGATRON = transformers.MegatronBertConfig(
    vocab_size=53, hidden_size=20, num_hidden_layers=2, num_attention_heads=5, intermediate_size=28
)

FOLDERS = {
    "words": Folder(FALCON, {"words": "AutoModelForCausalLM"}),
    "text": Folder(FALCON, {"text": "AutoModelForSequenceClassification"}),
    "tokens": Folder(MEGATRON, {"tokens": "AutoModelForTokenClassification"}, ("<s>", "</s>"), MASK),
    "blanks": Folder(MEGATRON, {"words": "AutoModelForMaskedLM"}, ("<s>", "</s>"), MASK),
    "none": Folder(MEGATRON, {"none": "AutoModel"}, ("<s>", "</s>"), MASK),
}

TEXTS = ["the keeper lit the lamp", "each dawn", "up the stairs , up"]


@pytest.fixture(params=FOLDERS)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path, Any]:
    name = request.param
    (head,) = FOLDERS[name].heads
    return name, tmp_path, FOLDERS[name].write(head, tmp_path)


def tokens_of(text: str, name: str) -> torch.Tensor:
    words = word_tokenizer(mask=FOLDERS[name].special.get("mask_token"))
    ids = words.encode(text).ids
    return torch.tensor([[51, *ids, 52] if FOLDERS[name].around else ids])


def test_the_numbers_are_theirs(case: tuple[str, Path, Any]) -> None:
    name, folder, theirs = case
    skill = foveate.load(folder)
    if name == "blanks":
        answer = skill.run("the [MASK] lit")
        with torch.no_grad():
            logits = theirs(tokens_of("the <mask> lit", name)).logits[0, 2]
        assert answer.blanks[0].probabilities[0] == pytest.approx(float(logits.softmax(-1).max()), abs=1e-5)
        return
    for text, answer in zip(TEXTS, skill.answer(TEXTS), strict=True):
        with torch.no_grad():
            output = theirs(tokens_of(text, name))
        if name == "text":
            assert [*answer.probabilities.values()] == pytest.approx(output.logits[0].softmax(-1).tolist(), abs=1e-5)
        elif name == "tokens":
            numbers = output.logits[0, 1:-1].argmax(-1).tolist()
            assert list(answer.tags) == ["bac"[number] for number in numbers]
        elif name == "none":
            mean = output.last_hidden_state[0].mean(0)
            torch.testing.assert_close(torch.tensor(answer.vector), mean / mean.norm(), atol=1e-5, rtol=0)


def test_words_are_written_as_theirs(tmp_path: Path) -> None:
    theirs = FOLDERS["words"].write("words", tmp_path)
    model: Any = foveate.load(tmp_path).model
    prompts = [torch.randint(3, 50, (length,)).tolist() for length in (7, 2, 5)]
    written = generate(model, prompts, Decoding("greedy", max_new_tokens=9), {52})
    for prompt, output in zip(prompts, written, strict=True):
        given = torch.tensor([prompt])
        settings = {"max_new_tokens": 9, "do_sample": False, "pad_token_id": 0, "eos_token_id": 52}
        (row,) = theirs.generate(given, attention_mask=torch.ones_like(given), **settings).tolist()
        expected = row[len(prompt) :]
        assert output.tokens == (expected[: expected.index(52)] if 52 in expected else expected)


def test_run_and_json(case: tuple[str, Path, Any], capsys: pytest.CaptureFixture[str]) -> None:
    name, folder, _ = case
    text = "the [MASK] lit" if name == "blanks" else TEXTS[0]
    main(["run", str(folder), text, "--json"])
    assert json.loads(capsys.readouterr().out)


def test_it_is_neither_trained_nor_written(case: tuple[str, Path, Any], tmp_path: Path) -> None:
    _, folder, _ = case
    with pytest.raises(UserError, match=r"holds a model of the type '(falcon|megatron-bert)'; foveate runs"):
        open_start(folder)
    with pytest.raises((UserError, SystemExit)):
        main(["export", str(folder), "--out", str(tmp_path / "out")])


def test_a_class_that_no_task_has(tmp_path: Path) -> None:
    FOLDERS["none"].write("none", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"architectures": ["MegatronBertForMultipleChoice"]}))
    with pytest.raises(UserError, match=r"foveate runs \.\.\.ForCausalLM, .* through"):
        foveate.load(tmp_path)
