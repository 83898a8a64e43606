"""Folders of models that foveate has none of: they answer through transformers, with its numbers."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from folders import FOLDERS as KNOWN
from folders import MASK, NAMES, Folder, scramble
from PIL import Image
from public_models import word_tokenizer

import foveate
from foveate.cli import main
from foveate.decoding import Decoding, generate
from foveate.errors import UserError
from foveate.interop.through_transformers import is_ours, read_through_transformers
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


def odd(kind: str, **fields: Any) -> Any:
    """A config of a kind that we have, with fields that ours has not."""
    return type(KNOWN[kind].config).from_dict({**KNOWN[kind].config.to_dict(), **fields})


SCALED = {"rope_type": "dynamic", "rope_theta": 77.0, "factor": 2.0}
LONG = {"short_factor": [1.0, 1.5, 2.0, 2.5], "long_factor": [2.0, 2.5, 3.0, 3.5]}
LONG |= {"rope_type": "longrope", "rope_theta": 77.0, "factor": 2.3, "original_max_position_embeddings": 16}

UNLIKE = {
    "a Llama of dynamic positions": ("llama", "words", {"rope_parameters": SCALED}),
    "a long Phi-3": ("phi3", "words", {"original_max_position_embeddings": 16, "rope_parameters": LONG}),
    "an OPT of norms after": ("opt", "words", {"do_layer_norm_before": False, "word_embed_proj_dim": 12}),
    "a scaled GPT-2": ("gpt2", "text", {"scale_attn_by_inverse_layer_idx": True}),
    "another activation": ("distilbert", "tokens", {"activation": "mish"}),
    "a DeBERTa with a convolution": ("deberta-v2", "text", {"conv_kernel_size": 3, "conv_act": "gelu"}),
    "some biases": ("modernbert", "words", {"mlp_bias": True}),
}
"""Kinds of ours with a part that our models have not."""


@pytest.mark.parametrize(("kind", "head", "fields"), UNLIKE.values(), ids=UNLIKE)
def test_what_is_almost_ours(kind: str, head: str, fields: dict[str, Any], tmp_path: Path, capsys: Any) -> None:
    """Whatever `look` opens, `run` runs: with transformers' numbers, where our model of the kind has other parts. What
    trains or writes such a folder names the part."""
    theirs = replace(KNOWN[kind], config=odd(kind, **fields)).write(head, tmp_path)
    with pytest.raises(UserError, match=r"foveate's models have|unknown field"):
        open_start(tmp_path)
    model: Any = foveate.load(tmp_path).model
    tokens = torch.randint(3, 50, (2, 9))
    with torch.no_grad():
        found = model(tokens, torch.tensor([9, 9])).logits
        expected = torch.cat([theirs(row[None]).logits for row in tokens])  # some have no padding
    torch.testing.assert_close(found[:, 0] if head == "text" else found, expected, atol=1e-5, rtol=0)
    blank = head == "words" and kind == "modernbert"
    main(["run", str(tmp_path), "the [MASK] lit" if blank else TEXTS[0]])
    main(["look", str(tmp_path), TEXTS[0], "--out", str(tmp_path / "look.html")])
    with pytest.raises(SystemExit):
        main(["export", str(tmp_path), "--out", str(tmp_path / "out")])
    capsys.readouterr()
    main(["size", str(tmp_path)])
    assert f" {sum(one.numel() for one in theirs.parameters()):,} " in capsys.readouterr().out


IMAGES = {"hidden_size": 20, "num_hidden_layers": 2, "num_attention_heads": 5, "intermediate_size": 28}
IMAGES |= {"image_size": 32, "patch_size": 8, "hidden_act": "mish"}

OBLONG = {**IMAGES, "hidden_act": "gelu", "image_size": [24, 40]}

IMAGE_READERS = {
    "a type that we have none of": ("MobileNetV2", {"image_size": 32, "depth_multiplier": 0.25}),
    "a ViT unlike ours": ("ViT", IMAGES),
    "a ViT of oblong images": ("ViT", OBLONG),
    "a ViT of oblong patches": ("ViT", {**OBLONG, "image_size": 32, "patch_size": [4, 8]}),
    "a DeiT of oblong images": ("DeiT", OBLONG),
    "a BEiT of oblong patches": ("Beit", {**OBLONG, "image_size": 32, "patch_size": [4, 8]}),
}


def height_and_width(sizes: dict[str, Any]) -> tuple[int, int]:
    given = sizes["image_size"]
    return (given, given) if isinstance(given, int) else tuple(given)


@pytest.mark.parametrize(("name", "sizes"), IMAGE_READERS.values(), ids=IMAGE_READERS)
def test_labels_of_images(name: str, sizes: dict[str, Any], tmp_path: Path, capsys: Any) -> None:
    config = getattr(transformers, f"{name}Config")(**sizes, **NAMES)
    theirs = scramble(getattr(transformers, f"{name}ForImageClassification")(config)).eval()
    theirs.save_pretrained(tmp_path)
    height, width = height_and_width(sizes)
    processor = transformers.ViTImageProcessorPil(size={"height": height, "width": width})
    processor.save_pretrained(tmp_path)
    image = Image.effect_noise((40, 52), 90).convert("RGB")
    image.save(tmp_path / "image.png")
    with torch.no_grad():
        logits = theirs(**processor(image, return_tensors="pt")).logits[0]
    main(["run", str(tmp_path), str(tmp_path / "image.png"), "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert answer["probability"] == pytest.approx(float(logits.softmax(-1).max()), abs=1e-4)
    attends = name != "MobileNetV2"
    if attends:
        main(["run", str(tmp_path), str(tmp_path / "image.png"), "--picture", str(tmp_path / "seen.png")])
        main(["look", str(tmp_path), str(tmp_path / "image.png"), "--out", str(tmp_path / "look.html")])
    (tmp_path / "preprocessor_config.json").unlink()
    assert foveate.load(tmp_path).run(tmp_path / "image.png")


def test_a_square_may_be_a_list(tmp_path: Path) -> None:
    """A height and a width that are equal, as some files have: the model is ours."""
    sizes = {**IMAGES, "hidden_act": "gelu", **NAMES}
    scramble(transformers.ViTForImageClassification(transformers.ViTConfig(**sizes))).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config |= {"image_size": [32, 32], "patch_size": [8, 8]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert is_ours(tmp_path)
    assert type(foveate.load(tmp_path).model).__name__ == "ViT"


@pytest.mark.parametrize("verb", ["run", "look"])
def test_no_progress_bar_is_printed(verb: str, tmp_path: Path) -> None:
    """In a process where nothing else has switched them off."""
    FOLDERS["text"].write("text", tmp_path / "folder")
    arguments = [verb, str(tmp_path / "folder"), TEXTS[0]]
    arguments += ["--out", str(tmp_path / "look.html")] if verb == "look" else []
    command = [sys.executable, "-m", "foveate", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""


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


@pytest.mark.parametrize("kind", ["roberta", "xlm-roberta", "mpnet"])
def test_positions_up_to_the_paddings_are_no_room(kind: str, tmp_path: Path) -> None:
    """RoBERTa and its kin count positions from their padding token on: a table of 12 has 10."""
    config = odd(kind, hidden_act="mish", max_position_embeddings=12)
    scramble(transformers.AutoModelForMaskedLM.from_config(config)).save_pretrained(tmp_path)
    public = read_through_transformers(tmp_path)
    assert public.model.config.max_length == 10 - (config.pad_token_id - 1)
    public.model(torch.full((1, public.model.config.max_length), 7))
    with pytest.raises((IndexError, RuntimeError)):
        public.model(torch.full((1, public.model.config.max_length + 1), 7))
