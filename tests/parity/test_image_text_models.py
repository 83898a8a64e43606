"""Models of transformers that write about an image and a text: they answer through transformers, with its tokens."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
import transformers
from folders import scramble
from public_models import word_tokenizer
from tokenizers import AddedToken

import foveate
from foveate.cli import main
from foveate.errors import UserError
from foveate.tasks.start.weights import open_start

QUESTION = "the keeper lit the lamp"

VISION = {"hidden_size": 20, "num_hidden_layers": 2, "num_attention_heads": 5, "intermediate_size": 28}

TEXT = {
    "vocab_size": 61,
    "hidden_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 5,
    "num_key_value_heads": 5,
    "intermediate_size": 28,
    "max_position_embeddings": 128,
    "bos_token_id": 51,
    "eos_token_id": 52,
    "pad_token_id": 50,
}


def tokenizer(*signs: str, **more: Any) -> Any:
    words = word_tokenizer()
    words.add_special_tokens([AddedToken(sign, special=True, normalized=False) for sign in signs])
    special = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "z", "pad_token": ":"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=words, **special, **more)


def llava(place: Path) -> Any:
    config = transformers.LlavaConfig(
        vision_config=transformers.CLIPVisionConfig(**VISION, image_size=12, patch_size=3),
        text_config=transformers.LlamaConfig(**TEXT),
        image_token_id=53,
        image_seq_length=16,
        vision_feature_layer=-1,
    )
    images = transformers.CLIPImageProcessor(size={"height": 12, "width": 12}, do_center_crop=False)
    processor = transformers.LlavaProcessor(
        images, tokenizer("<image>"), patch_size=3, vision_feature_select_strategy="default", image_token="<image>",
        num_additional_image_tokens=1,
    )  # fmt: skip
    processor.save_pretrained(place)
    return transformers.LlavaForConditionalGeneration(config)


def git(place: Path) -> Any:
    sizes = {name: value for name, value in TEXT.items() if name != "num_key_value_heads"}
    config = transformers.GitConfig(**sizes, vision_config={**VISION, "image_size": 12, "patch_size": 3})
    images = transformers.CLIPImageProcessor(size={"height": 12, "width": 12}, do_center_crop=False)
    transformers.GitProcessor(images, tokenizer(cls_token="<s>", sep_token="</s>")).save_pretrained(place)
    return transformers.GitForCausalLM(config)


def qwen2_vl(place: Path) -> Any:
    signs = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
    config = transformers.Qwen2VLConfig(
        vision_config={"depth": 2, "embed_dim": 20, "hidden_size": 20, "num_heads": 5, "patch_size": 4, "mlp_ratio": 2},
        text_config={
            **TEXT,
            "rope_parameters": {"type": "default", "mrope_section": [1, 1, 0], "rope_theta": 10_000.0},
        },
        vision_start_token_id=53,
        vision_end_token_id=54,
        image_token_id=55,
        video_token_id=56,
    )
    images = transformers.Qwen2VLImageProcessorPil(patch_size=4, size={"shortest_edge": 64, "longest_edge": 2048})
    images.save_pretrained(place)
    template = (
        "{% for one in messages %}{% for part in one['content'] %}{% if part['type'] == 'image' %}"
        "<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ part['text'] }}{% endif %}{% endfor %}{% endfor %}"
    )
    tokenizer(*signs).save_pretrained(place)
    (place / "chat_template.jinja").write_text(template)
    return transformers.Qwen2VLForConditionalGeneration(config)


def vit_msn(place: Path) -> Any:
    """Two parts, of which foveate has no equal of the first."""
    encoder = transformers.ViTMSNConfig(**VISION, image_size=12, patch_size=3)
    decoder = transformers.GPT2Config(
        vocab_size=61, n_embd=20, n_layer=2, n_head=5, n_positions=41, add_cross_attention=True
    )
    transformers.ViTImageProcessor(size={"height": 12, "width": 12}).save_pretrained(place)
    tokenizer().save_pretrained(place)
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    model = transformers.VisionEncoderDecoderModel(config)
    model.generation_config.decoder_start_token_id = 51
    return model


KINDS = {"llava": llava, "git": git, "qwen2_vl": qwen2_vl, "vit_msn": vit_msn}

ALONE = ("git", "vit_msn")
"""Those that are given an image alone."""


@pytest.fixture(params=KINDS)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path, Path, Any]:
    """A kind, its folder, an image, and transformers' model."""
    torch.manual_seed(5)
    folder = tmp_path / request.param
    folder.mkdir()
    model = scramble(KINDS[request.param](folder))
    for name, value in {"bos_token_id": 51, "eos_token_id": 52, "pad_token_id": 50}.items():
        setattr(model.generation_config, name, value)
    model.generation_config.max_length = None
    model.generation_config.max_new_tokens = 7
    model.save_pretrained(folder)
    picture = tmp_path / "photo.png"
    pixels = np.random.default_rng(3).integers(0, 255, (24, 36, 3), np.uint8)
    PIL.Image.fromarray(pixels).save(picture)
    return request.param, folder, picture, model.eval()


def expected_tokens(kind: str, folder: Path, picture: Path, theirs: Any) -> list[int]:
    with PIL.Image.open(picture) as opened:
        image = opened.convert("RGB")
    if kind == "qwen2_vl":  # whose own processor needs torchvision
        reads = foveate.load(folder).processor.reads
        inputs = reads.prepare(reads.open(f"{picture}\t{QUESTION}")).inputs
        _, rows, columns = inputs["image_grid_thw"][0].tolist()
        assert int((inputs["input_ids"] == 55).sum()) == rows * columns // 4 == 12
    elif kind == "vit_msn":
        inputs = transformers.AutoImageProcessor.from_pretrained(folder)(images=image, return_tensors="pt")
    elif kind == "git":
        inputs = transformers.AutoProcessor.from_pretrained(folder)(images=image, return_tensors="pt")
    else:
        processor = transformers.AutoProcessor.from_pretrained(folder)
        inputs = processor(images=image, text=f"<image>\n{QUESTION}", return_tensors="pt")
    with torch.no_grad():
        (row,) = theirs.generate(**inputs).tolist()
    return row[inputs["input_ids"].shape[1] if "input_ids" in inputs else 1 :]


def test_the_text_is_theirs(case: tuple[str, Path, Path, Any], capsys: pytest.CaptureFixture[str]) -> None:
    kind, folder, picture, theirs = case
    asked = [str(picture)] if kind in ALONE else [str(picture), QUESTION]
    main(["run", str(folder), *asked, "--json"])
    found = foveate.load(folder).run("\t".join(asked))
    assert found.tokens == expected_tokens(kind, folder, picture, theirs)
    assert json.loads(capsys.readouterr().out)["text"] == found.text


def test_it_is_looked_at(case: tuple[str, Path, Path, Any], tmp_path: Path) -> None:
    kind, folder, picture, _ = case
    asked = [str(picture)] if kind in ALONE else [str(picture), QUESTION]
    main(["look", str(folder), *asked, "--out", str(tmp_path / "look.html")])
    if kind == "vit_msn":
        assert "decoder.transformer.h.1.crossattention" in (tmp_path / "look.html").read_text()
        return
    page = (tmp_path / "look.html").read_text()
    assert "[IMAGE 2]" in page
    assert kind != "git" or "git.encoder.layer.1.attention.self" in page
    drawn = tmp_path / "seen.png"
    main(["run", str(folder), *asked, "--picture", str(drawn)])
    assert drawn.stat().st_size > 1000


def test_it_is_measured(case: tuple[str, Path, Path, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kind, folder, picture, _ = case
    table = tmp_path / "table.tsv"
    columns = [picture.name, "a lamp"] if kind in ALONE else [picture.name, QUESTION, "up"]
    table.write_text("\t".join(columns) + "\n")
    (metrics,) = foveate.load(folder).evaluate([table]).figures["ways"].values()
    assert ("cider" if kind in ALONE else "accuracy") in metrics


def test_it_is_neither_trained_nor_written(case: tuple[str, Path, Path, Any], tmp_path: Path) -> None:
    kind, folder, _, _ = case
    reason = "has the encoder 'vit_msn'" if kind == "vit_msn" else f"holds a model of the type '{kind}'; foveate runs"
    with pytest.raises(UserError, match=reason):
        open_start(folder)
    with pytest.raises((UserError, SystemExit)):
        main(["export", str(folder), "--out", str(tmp_path / "out")])


def test_a_question_is_needed(case: tuple[str, Path, Path, Any]) -> None:
    kind, folder, picture, _ = case
    if kind not in ALONE:
        with pytest.raises(UserError, match="no question"):
            foveate.load(folder).run(str(picture))
