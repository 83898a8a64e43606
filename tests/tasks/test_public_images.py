"""Hugging Face folders of models that read images: run, measured, looked at, trained on and written back, with
transformers' numbers."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch

import foveate
from foveate.cli import main
from foveate.errors import UserError
from foveate.tasks.learning import learn
from foveate.tasks.loading import recipe
from foveate.tasks.start.weights import HEADS

transformers = pytest.importorskip("transformers")

LABELS = 5


def models() -> dict[str, Callable[[], tuple[Any, Any]]]:
    """A tiny model of odd sizes of each kind, and what prepares its images."""
    t, some = transformers, {"num_labels": LABELS}
    stages = {"depths": [1, 2], "hidden_sizes": [24, 48], "embedding_size": 6}
    basic = {"depths": [2, 2, 2, 2], "hidden_sizes": [64, 128, 256, 512], "layer_type": "basic"}
    widths = {"encoder_ffn_dim": 30, "decoder_ffn_dim": 30, "encoder_layers": 2, "decoder_layers": 2}
    heads = {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "d_model": 20, "num_queries": 7}
    vit = {"hidden_size": 21, "num_attention_heads": 3, "intermediate_size": 22, "num_hidden_layers": 3}
    cut = {"size": {"shortest_edge": 40}}
    middle = {"size": {"shortest_edge": 34}, "crop_size": {"height": 25, "width": 25}}
    small = {**vit, "patch_size": 5, "image_size": 25, "layer_norm_eps": 1e-3}
    windows = {"window_size": 3, "patch_size": 2, "pretrained_window_sizes": [5, 4]}
    dino = {**small, "mlp_ratio": 2, **some}
    return {
        "vit": lambda: (
            t.ViTForImageClassification(t.ViTConfig(**vit, patch_size=5, image_size=25, layer_norm_eps=1e-3, **some)),
            t.ViTImageProcessor(size={"height": 25, "width": 25}),
        ),
        "vit-body": lambda: (
            t.ViTModel(t.ViTConfig(**small)),
            t.ViTImageProcessor(size={"height": 25, "width": 25}),
        ),
        "deit": lambda: (
            t.DeiTForImageClassificationWithTeacher(t.DeiTConfig(**small, hidden_act="quick_gelu", **some)),
            t.DeiTImageProcessor(size={"height": 33, "width": 31}, crop_size={"height": 25, "width": 25}),
        ),
        "deit-plain": lambda: (
            t.DeiTForImageClassification(t.DeiTConfig(**small, **some)),
            t.DeiTImageProcessor(size={"height": 23, "width": 31}, crop_size={"height": 25, "width": 25}),
        ),
        "beit": lambda: (
            t.BeitForImageClassification(t.BeitConfig(**small, use_relative_position_bias=True, **some)),
            t.BeitImageProcessor(size={"height": 25, "width": 25}),
        ),
        "beit-token": lambda: (
            t.BeitForImageClassification(
                t.BeitConfig(**small, use_absolute_position_embeddings=True, use_mean_pooling=False, **some)
            ),
            t.BeitImageProcessor(size={"height": 25, "width": 25}),
        ),
        "dinov2": lambda: (
            t.Dinov2ForImageClassification(t.Dinov2Config(**{**dino, "image_size": 35})),
            t.BitImageProcessor(**middle),
        ),
        "dinov2-gated": lambda: (
            t.Dinov2ForImageClassification(t.Dinov2Config(**dino, use_swiglu_ffn=True)),
            t.BitImageProcessor(**middle),
        ),
        "dinov2-registers": lambda: (
            t.Dinov2WithRegistersForImageClassification(
                t.Dinov2WithRegistersConfig(**{**dino, "image_size": 35}, num_register_tokens=3)
            ),
            t.BitImageProcessor(**middle),
        ),
        "dinov2-body": lambda: (t.Dinov2Model(t.Dinov2Config(**dino)), t.BitImageProcessor(**middle)),
        "dinov3-body": lambda: (
            t.DINOv3ViTModel(
                t.DINOv3ViTConfig(**{**small, "hidden_size": 24}, num_register_tokens=2, use_gated_mlp=True)
            ),
            t.ViTImageProcessor(size={"height": 25, "width": 25}),
        ),
        "swin": lambda: (
            t.SwinForImageClassification(
                t.SwinConfig(embed_dim=14, depths=[2, 2], num_heads=[2, 4], window_size=3, patch_size=2, **some)
            ),
            t.ViTImageProcessor(size={"height": 24, "width": 24}, resample=3),
        ),
        "convnext": lambda: (
            t.ConvNextForImageClassification(
                t.ConvNextConfig(depths=[1, 2, 1], hidden_sizes=[8, 12, 20], num_stages=3, **some)
            ),
            t.ConvNextImageProcessor(**cut, crop_pct=0.8),
        ),
        "swinv2": lambda: (
            t.Swinv2ForImageClassification(
                t.Swinv2Config(embed_dim=14, depths=[2, 2], num_heads=[2, 4], image_size=24, **windows, **some)
            ),
            t.ViTImageProcessor(size={"height": 24, "width": 24}, resample=3),
        ),
        "convnextv2": lambda: (
            t.ConvNextV2ForImageClassification(
                t.ConvNextV2Config(depths=[1, 2, 1], hidden_sizes=[8, 12, 20], num_stages=3, **some)
            ),
            t.ConvNextImageProcessor(**cut, crop_pct=0.8),
        ),
        "resnet": lambda: (
            t.ResNetForImageClassification(t.ResNetConfig(**stages, **some)),
            t.ConvNextImageProcessor(**cut, crop_pct=0.875),
        ),
        "detr": lambda: (
            t.DetrForObjectDetection(
                t.DetrConfig(
                    backbone_config=t.ResNetConfig(**basic, out_features=["stage4"]), **widths, **heads, **some
                )
            ),
            t.DetrImageProcessor(size={"shortest_edge": 64, "longest_edge": 100}),
        ),
    }


KINDS = [*models()]


def scramble(model: torch.nn.Module) -> torch.nn.Module:
    """The model with weights that make a difference everywhere."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, value in model.state_dict().items():
            if value.is_floating_point() and ("var" in name or ("norm" in name and name.endswith("weight"))):
                value.uniform_(0.5, 1.5, generator=generator)
            elif value.is_floating_point():
                value.normal_(0, 0.2, generator=generator)
    return model.eval()


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Each model in a folder, with an image, what transformers makes of it, and classes of images to learn."""
    root, generator = tmp_path_factory.mktemp("public"), np.random.default_rng(3)
    PIL.Image.fromarray(generator.integers(0, 255, (61, 83, 3), np.uint8)).save(root / "x.png")
    for number in range(40):
        pixels = generator.integers(0, 120, (30, 34, 3), np.uint8)
        pixels[..., number % 2] += 120
        place = root / "classes" / "ab"[number % 2] / f"{number}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        PIL.Image.fromarray(pixels).save(place)
    for name, make in models().items():
        model, processor = make()
        scramble(model).save_pretrained(root / name)
        processor.save_pretrained(root / name)
    return {"root": root, **{name: root / name for name in KINDS}}


def reference(folder: Path, image: Path) -> tuple[torch.Tensor, Any]:
    """The pixels and the output of transformers."""
    (kind,) = json.loads((folder / "config.json").read_text())["architectures"]
    model = getattr(transformers, kind).from_pretrained(folder)
    inputs = transformers.AutoImageProcessor.from_pretrained(folder)(PIL.Image.open(image), return_tensors="pt")
    with torch.no_grad():
        found = model.eval()(**inputs)
    if kind.endswith("Model"):  # what a classifier would read
        states = found.last_hidden_state
        mean = [states[:, 1:].mean(1)] if kind == "Dinov2Model" else []
        found["logits"] = torch.cat([states[:, 0], *mean], -1)
    return inputs["pixel_values"], found


@pytest.mark.parametrize("name", KINDS)
def test_the_same_pixels_and_logits(name: str, folders: dict[str, Path]) -> None:
    image = folders["root"] / "x.png"
    skill = foveate.load(folders[name])
    reads = skill.processor.reads
    inputs = reads.tensors([reads.prepare(reads.open(str(image)))])[0]
    pixels, expected = reference(folders[name], image)
    torch.testing.assert_close(inputs["pixels"], pixels, atol=2e-6, rtol=0)
    output: Any = skill.forward(inputs)
    torch.testing.assert_close(output.logits, expected["logits"], atol=5e-5, rtol=0)
    if name == "detr":
        torch.testing.assert_close(output.boxes, expected.pred_boxes, atol=5e-5, rtol=0)


@pytest.mark.parametrize("name", KINDS)
def test_it_runs_beside_a_damaged_image_and_draws(
    name: str, folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image, bad = folders["root"] / "x.png", tmp_path / "bad.png"
    bad.write_bytes(b"no image")
    with pytest.raises(SystemExit) as ended:
        main(["run", str(folders[name]), str(bad), str(image), "--json"])
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    failed, answered = map(json.loads, out.splitlines())
    told = f"{bad} cannot be read as an image: cannot identify image file '{bad}'"
    assert failed == {"input": str(bad), "error": told}
    assert err.startswith(f"foveate: {bad} cannot be read")
    assert answered["input"] == str(image)
    if foveate.load(folders[name]).attends():
        picture = tmp_path / "x.png"
        main(["run", str(folders[name]), str(image), "--picture", str(picture)])
        with PIL.Image.open(picture) as drawn:
            assert drawn.width > 100


@pytest.mark.parametrize("name", [name for name in KINDS if not name.startswith(("detr", "dinov3"))])
def test_a_training_begins_from_it_with_its_sizes_and_is_written_back(
    name: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    """The body is the folder's, whatever presets there are; what is written back gives the same logits."""
    begun = recipe(
        "classify-image",
        data=folders["root"] / "classes",
        start=folders[name],
        out=tmp_path / "run",
        steps=1,
        validate_every=1,
        average=1,
        learning_rate=1e-9,
        device="cpu",
        precision="float32",
    )
    skill = learn(begun)
    before, after = foveate.load(folders[name]).model.state_dict(), skill.model.state_dict()
    bodies = [part for part in before if not part.startswith(HEADS) and before[part].is_floating_point()]
    still = [part for part in bodies if "running" not in part]  # statistics of batches move in training
    assert len(still) > 10
    for part in still:
        torch.testing.assert_close(after[part], before[part], atol=1e-6, rtol=0)
    assert skill.model.config.classes == 2
    main(["export", str(tmp_path / "run"), "--out", str(tmp_path / "back")])
    image = folders["root"] / "classes" / "a" / "0.png"
    _, expected = reference(tmp_path / "back", image)
    written = foveate.load(tmp_path / "back")
    assert written.run(image).label == max(zip(expected.logits[0].tolist(), "ab", strict=True))[1]
    pixels = skill.processor.reads.tensors([skill.processor.reads.prepare(PIL.Image.open(image))])[0]
    torch.testing.assert_close(written.forward(pixels).logits, skill.forward(pixels).logits, atol=1e-5, rtol=0)


def test_a_detector_is_written_back(folders: dict[str, Path], tmp_path: Path) -> None:
    main(["export", str(folders["detr"]), "--out", str(tmp_path / "back")])
    image = folders["root"] / "x.png"
    torch.testing.assert_close(
        reference(tmp_path / "back", image)[1].pred_boxes, reference(folders["detr"], image)[1].pred_boxes
    )


@pytest.mark.parametrize(
    ("name", "changes", "told"),
    [
        ("vit", {"hidden_act": "mish"}, "has the hidden_act 'mish'; foveate's models have gelu, gelu_new"),
        ("vit", {"qkv_bias": False}, "has qkv_bias False; foveate's models have True only"),
        ("vit-body", {"architectures": ["ViTForMaskedImageModeling"]}, "is a ViTForMaskedImageModeling; foveate runs"),
        ("beit", {"use_shared_relative_position_bias": True}, "has use_shared_relative_position_bias True"),
        ("beit", {"use_absolute_position_embeddings": True}, "has positions of both kinds"),
        ("dinov2-registers", {"num_register_tokens": 0}, "has num_register_tokens 0"),
        ("dinov3-body", {"value_bias": False}, "has value_bias False"),
        ("vit", {"hidden_size": 24}, "is \\(1, 1, 21\\), but \\(1, 1, 24\\) by its config.json"),
        ("vit", {"num_hidden_layers": 4}, "lacks the tensor 'vit.encoder.layer.3"),
        ("vit", {"num_hidden_layers": 2}, "has the unknown tensor 'vit.encoder.layer.2"),
        ("swin", {"num_heads": [2, 3]}, "has the num_heads .2, 3.; foveate's heads have one width"),
        ("swin", {"mlp_ratio": 1.5}, "has the mlp_ratio 1.5"),
        ("convnext", {"depths": "many"}, "has the depths 'many', which cannot be"),
        ("resnet", {"embedding_size": 7}, "has the embedding_size 7, but the hidden_sizes"),
        ("detr", {"backbone_config": {"model_type": "swin"}}, "has a backbone of the type 'swin'"),
    ],
)
def test_what_foveate_does_not_have(
    name: str, changes: dict[str, Any], told: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    """Never another network than the folder's, and no layer lost without a word."""
    for file in folders[name].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    values = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**values, **changes}))
    with pytest.raises(UserError, match=told):
        foveate.load(tmp_path)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"size": {"height": 0, "width": 9}}, "has the size"),
        ({"size": {"area": 9}}, "which foveate does not know"),
        ({"image_mean": [0.5]}, "has the image_mean \\[0.5\\]; the model reads 3 channels"),
        ({"image_std": [0.5, 0, 1]}, "by which nothing can be divided"),
        ({"resample": 99}, "has the resample 99, which cannot be"),
    ],
)
def test_damaged_numbers_of_images(
    changes: dict[str, Any], told: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    for file in folders["vit"].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    path = tmp_path / "preprocessor_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(UserError, match=told):
        foveate.load(tmp_path)
