"""Hugging Face folders of models that read images: run, measured, looked at, trained on and written back, with
transformers' numbers."""

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
import transformers
from image_folders import Folders, models, reference, timm_models
from made_examples import boxed_images, examples_of

import foveate
from foveate.cli import main
from foveate.errors import UserError
from foveate.models.vision.image_encoder import encoder_of
from foveate.tasks import TASKS, find_task
from foveate.tasks.learning import Lesson, learn
from foveate.tasks.loading import recipe
from foveate.tasks.start.image_part import body_field
from foveate.tasks.start.image_writers import ImageWriterOrEncoder
from foveate.tasks.start.parts import DetectorOrEncoder, ImageEncoder
from foveate.tasks.start.weights import HEADS
from foveate.training import Interrupted

KINDS = [*models(), *timm_models()]

WITHOUT_LAYOUT = (
    *("dinov3-body", "timm-deit3", "timm-efficientnet"),
    *("timm-vit-mean", "timm-vit-clip", "timm-vit-registers"),
)
"""Kinds that transformers has no classifier of, so that trained ones are not written."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """Each model in a folder, with an image, what transformers makes of it, and classes of images to learn."""
    root, generator = tmp_path_factory.mktemp("public"), np.random.default_rng(3)
    PIL.Image.fromarray(generator.integers(0, 255, (61, 83, 3), np.uint8)).save(root / "x.png")
    for number in range(40):
        pixels = generator.integers(0, 120, (30, 34, 3), np.uint8)
        pixels[..., number % 2] += 120
        place = root / "classes" / "ab"[number % 2] / f"{number}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        PIL.Image.fromarray(pixels).save(place)
    return Folders(root=root)


def test_a_folder_without_an_image_processor_says_so(
    folders: Folders, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = shutil.copytree(folders["vit"], tmp_path / "vit")
    (place / "preprocessor_config.json").unlink()
    read = foveate.load(place).processor.reads
    assert f"{place} has no preprocessor_config.json: {read.height} pixels" in capsys.readouterr().err


@pytest.mark.parametrize("name", KINDS)
def test_the_same_pixels_and_logits(name: str, folders: Folders) -> None:
    image = folders["root"] / "x.png"
    skill = foveate.load(folders[name])
    reads = skill.processor.reads
    inputs = reads.tensors([reads.prepare(reads.open(str(image)))])[0]
    pixels, expected = reference(folders[name], image)
    torch.testing.assert_close(inputs["pixels"], pixels, atol=2e-6, rtol=0)
    output: Any = skill.forward(inputs)
    torch.testing.assert_close(output.logits, expected["logits"], atol=5e-5, rtol=0)
    if "detr" in name:
        torch.testing.assert_close(output.boxes, expected.pred_boxes, atol=5e-5, rtol=0)


@pytest.mark.parametrize("name", KINDS)
def test_it_runs_beside_a_damaged_image_and_draws(
    name: str, folders: Folders, tmp_path: Path, capsys: pytest.CaptureFixture[str]
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


@pytest.mark.parametrize("name", [name for name in KINDS if not name.startswith("detr") and name != "timm-mvit"])
def test_a_training_begins_from_it_with_its_sizes_and_is_written_back(
    name: str, folders: Folders, tmp_path: Path
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
    assert_reads_as_the_folder(skill, folders[name])
    if name in WITHOUT_LAYOUT:
        with pytest.raises(SystemExit):
            main(["export", str(tmp_path / "run"), "--out", str(tmp_path / "back")])
        return
    main(["export", str(tmp_path / "run"), "--out", str(tmp_path / "back")])
    image = folders["root"] / "classes" / "a" / "0.png"
    _, expected = reference(tmp_path / "back", image)
    written = foveate.load(tmp_path / "back")
    assert written.run(image).label == max(zip(expected.logits[0].tolist(), "ab", strict=True))[1]
    pixels = skill.processor.reads.tensors([skill.processor.reads.prepare(PIL.Image.open(image))])[0]
    torch.testing.assert_close(written.forward(pixels).logits, skill.forward(pixels).logits, atol=1e-5, rtol=0)


def assert_reads_as_the_folder(skill: Any, folder: Path) -> None:
    """Pixels are standardised by the folder's numbers, and images are of its size, or of that of its positions."""
    theirs, ours = foveate.load(folder).processor.reads, skill.processor.reads
    assert (ours.pixel_mean, ours.pixel_deviation) == (theirs.mean, theirs.spread)
    learned = getattr(skill.model.config, "image_size", None)
    assert ours.sizes()["image_size"] == (learned or theirs.longest or theirs.height)
    grey = np.full((1, 3, 2, 2), 100, np.uint8)
    mean, spread = (np.array(one)[:, None, None] for one in (theirs.mean, theirs.spread))
    np.testing.assert_allclose(ours.standardise(grey)[0], np.broadcast_to((100 / 255 - mean) / spread, (3, 2, 2)), 1e-5)


DETECTORS = [name for name in KINDS if name.startswith("detr")]


@pytest.mark.parametrize("name", DETECTORS)
def test_a_detector_is_trained_further_with_new_classes_and_written_back(
    name: str, folders: Folders, tmp_path: Path
) -> None:
    """All but the classes is the folder's; what is written back finds the same."""
    skill = learn(
        recipe(
            "detect",
            data=boxed_images(tmp_path).data,
            start=folders[name],
            out=tmp_path / "run",
            batch=4,
            steps=1,
            validate_every=1,
            average=1,
            learning_rate=1e-9,
            device="cpu",
            precision="float32",
        )
    )
    before, after = foveate.load(folders[name]).model.state_dict(), skill.model.state_dict()
    still = [part for part in before if not part.startswith(HEADS) and "running" not in part and "num_" not in part]
    assert len(still) > 50
    for part in still:
        torch.testing.assert_close(after[part], before[part], atol=1e-6, rtol=0)
    assert_reads_as_the_folder(skill, folders[name])
    main(["export", str(tmp_path / "run"), "--out", str(tmp_path / "back")])
    image = folders["root"] / "x.png"
    pixels, expected = reference(tmp_path / "back", image)
    found: Any = skill.model(pixels)
    torch.testing.assert_close(found.logits, expected.logits, atol=5e-5, rtol=0)
    torch.testing.assert_close(found.boxes, expected.pred_boxes, atol=5e-5, rtol=0)


@pytest.mark.parametrize("name", DETECTORS)
def test_a_detector_learns_by_updates_resumes_and_is_measured(
    name: str, folders: Folders, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --lora all but the classes stays; a training that was stopped ends with the same weights."""
    made = boxed_images(tmp_path)
    shared: dict[str, Any] = {"data": made.data, "validation": made.data, "start": folders[name], "lora": 2}
    shared |= {"batch": 4, "save_every": 1, "validate_every": 2, "average": 1, "warmup": 1, "device": "cpu"}
    shared |= {"precision": "float32", "validation_examples": 3, "steps": 3, "log_every": 1}

    def stop(row: Any) -> None:
        if row["step"] == 1:
            os.kill(os.getpid(), signal.SIGINT)

    whole = learn(recipe("detect", out=tmp_path / "whole", **shared))
    with pytest.raises(Interrupted):
        learn(recipe("detect", out=tmp_path / "run", **shared), callbacks=[stop])
    run = learn(recipe("detect", out=tmp_path / "run", **shared))
    before = foveate.load(folders[name]).model.state_dict()
    for part, value in run.model.state_dict().items():
        torch.testing.assert_close(value, whole.model.state_dict()[part])
        changed = part.rpartition(".")[0].endswith(("query", "value")) or "running" in part or "num_" in part
        if not part.startswith(HEADS) and not changed:
            torch.testing.assert_close(value, before[part], msg=part)
    main(["eval", str(tmp_path / "run"), "--data", *map(str, made.data), "--json"])
    assert "AP50" in next(iter(json.loads(capsys.readouterr().out)["ways"].values()))


@pytest.mark.parametrize("name", ["deit", "dinov2"])
def test_it_is_exported_with_what_prepares_its_images(name: str, folders: Folders, tmp_path: Path) -> None:
    main(["export", str(folders[name]), "--out", str(tmp_path / "back")])
    before, after = (reference(place, folders["root"] / "x.png") for place in (folders[name], tmp_path / "back"))
    torch.testing.assert_close(after[0], before[0], atol=2e-6, rtol=0)
    torch.testing.assert_close(after[1].logits, before[1].logits, atol=5e-5, rtol=0)


@pytest.mark.parametrize("name", DETECTORS)
def test_a_detector_is_written_back(name: str, folders: Folders, tmp_path: Path) -> None:
    main(["export", str(folders[name]), "--out", str(tmp_path / "back")])
    image = folders["root"] / "x.png"
    torch.testing.assert_close(
        reference(tmp_path / "back", image)[1].pred_boxes, reference(folders[name], image)[1].pred_boxes
    )


@pytest.mark.parametrize(
    ("name", "changes", "told"),
    [
        ("vit", {"hidden_act": "mish", "num_hidden_layers": 2}, "has the hidden_act 'mish'; foveate's models have"),
        ("vit", {"hidden_act": "mish", "num_hidden_layers": 4}, "has the hidden_act 'mish'; foveate's models have"),
        ("vit", {"qkv_bias": False}, "has the unknown tensor 'vit.encoder.layer.0.attention.attention.key.bias'"),
        ("deit", {"qkv_bias": False}, "has qkv_bias False; foveate's models have True only"),
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
    name: str, changes: dict[str, Any], told: str, folders: Folders, tmp_path: Path
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
def test_damaged_numbers_of_images(changes: dict[str, Any], told: str, folders: Folders, tmp_path: Path) -> None:
    for file in folders["vit"].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    path = tmp_path / "preprocessor_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(UserError, match=told):
        foveate.load(tmp_path)


@pytest.mark.parametrize("name", DETECTORS)
def test_a_detector_is_looked_at(name: str, folders: Folders, tmp_path: Path) -> None:
    """Each layer is seen, those that look at points too, whose weights sum to less than 1 at an edge."""
    page = tmp_path / "look.html"
    main(["look", str(folders[name]), str(folders["root"] / "x.png"), "--out", str(page)])
    assert page.stat().st_size > 10_000
    skill: Any = foveate.load(folders[name])
    inputs = skill.processor.reads.tensors([skill.processor.reads.prepare(PIL.Image.open(folders["root"] / "x.png"))])[
        0
    ]
    with torch.inference_mode(), foveate.look(skill.model) as sight:
        skill.model(**inputs)
    for site in sight.sites:
        sums = sight[site].weights().sum(-1)
        assert float(sums.max()) <= 1 + 1e-5
        assert float(sums.min()) > (0.0 if not sight[site].has_sinks else -1e-6)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a ResNet-18, with statistics of pixels of its own."""
    place, stages = tmp_path_factory.mktemp("encoder"), {"depths": [2, 2, 2, 2], "hidden_sizes": [64, 128, 256, 512]}
    config = transformers.ResNetConfig(**stages, layer_type="basic", num_labels=3)
    transformers.ResNetForImageClassification(config).save_pretrained(place)
    own = {"image_mean": [0.3, 0.4, 0.6], "image_std": [0.2, 0.3, 0.1], "size": {"shortest_edge": 64}}
    transformers.ConvNextImageProcessor(**own).save_pretrained(place)
    return place


ENCODERS = (ImageEncoder, ImageWriterOrEncoder, DetectorOrEncoder)


def builds_on_an_encoder(name: str) -> bool:
    """Whether a task begins with the part of a model that reads images, and its usual preset has a choice of it."""
    task = find_task(name)
    return isinstance(task.start, ENCODERS) and body_field(task.preset(task.model).family) is not None


@pytest.mark.parametrize("name", [name for name in TASKS if builds_on_an_encoder(name)])
def test_an_image_encoder_reads_as_its_folder(name: str, encoder: Path, tmp_path: Path) -> None:
    """What begins with the encoder of a folder standardises pixels by the folder's numbers, and keeps them."""
    task = find_task(name)
    made = examples_of(task, tmp_path / "examples")
    part = body_field(task.preset(task.model).family)
    begun = task.recipe(
        data=made.data,
        validation=made.data,
        start=encoder,
        architecture={part: "resnet18"},
        out=tmp_path / "run",
        batch=4,
        steps=1,
        validate_every=1,
        validation_examples=2,
        average=1,
        warmup=1,
        size=64,
        precision="float32",
    )
    learn(begun)
    skill: Any = foveate.load(tmp_path / "run")
    theirs: Any = foveate.load(encoder).processor.reads
    assert (skill.processor.reads.pixel_mean, skill.processor.reads.pixel_deviation) == (theirs.mean, theirs.spread)
    assert skill.processor.reads.sizes()["image_size"] == 64
    taken: Any = encoder_of(Lesson(task, begun).model_of(skill.processor.sizes()))
    own = foveate.load(encoder).model.state_dict()
    assert len(taken.state_dict()) > 50
    for tensor, value in taken.state_dict().items():
        torch.testing.assert_close(value, own[tensor])
