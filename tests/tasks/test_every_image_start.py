"""Tasks on images begin from all kinds of models that read images: trained, measured and asked, and their image
encoder is really that of the folder."""

import json
import sys
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import PIL.Image
import pytest
import torch
from image_folders import Folders, matchers, models, timm_models, write_matcher
from made_examples import Made, examples_of
from rich.console import Console

import foveate
from foveate.cli import main
from foveate.data.images.labelled import ImageFormat
from foveate.errors import UserError
from foveate.forms.caption_match import CaptionedImages
from foveate.forms.form import setting_names
from foveate.forms.image import ImageForm, SquareImage
from foveate.forms.question import ImageWithText
from foveate.interop.public_folder import MODEL_TYPES, layout_at
from foveate.models import multimodal, vision
from foveate.models.vision.image_encoder import ImageBody, image_encoder
from foveate.tasks import TASKS, find_task
from foveate.tasks.learning import Lesson, learn
from foveate.tasks.recipe import Recipe
from foveate.tasks.run_config import ADAPTER
from foveate.tasks.start.image_part import image_part, part_path
from foveate.tasks.start.weights import open_start
from foveate.tasks.task import Task
from foveate.tensor_files import read_tensors

sys.path.append(str(Path(__file__).parent.parent / "parity"))
from image_writers import IMAGE_WRITERS

WRITES_PIXELS = ("complete-image",)
"""Tasks on images whose models read pixels as words, and have no part that others could give."""

IMAGE_TASKS = [
    name
    for name in TASKS
    if isinstance(find_task(name).reads, ImageForm | ImageWithText | CaptionedImages) and name not in WRITES_PIXELS
]

WRITERS = ("trocr", "donut", "blip")

RUN = "run of mvitv2-nano"
"""A run of ours, which classifies images: the folders of its family have the sizes of a real model."""

KINDS = [*models(), *timm_models(), *matchers(), *WRITERS, RUN]

OF_EACH_FAMILY = (
    *("vit", "dinov3-body", "swin", "convnext", "resnet", "efficientnet"),
    *("clip", "trocr", "detr", RUN),
)
"""A kind of each family, from which tasks begin in turn; from the others `SIMPLEST` does: they differ in their names.
"""

TURN = 3
"""Of so many families a task begins from one: what a family gives, an image body, is the same for all tasks."""

SIMPLEST = "segment"

PAIRS = [
    (kind, name)
    for kind in KINDS
    for number, name in enumerate(IMAGE_TASKS)
    if name == SIMPLEST or (kind in OF_EACH_FAMILY and (OF_EACH_FAMILY.index(kind) + number) % TURN == 0)
]

LARGE = ("timm-mvit", "timm-efficientnet")
"""Kinds that have the sizes of a real model, so that small images must do."""

SILENT = Console(file=StringIO())


class AllFolders(Folders):
    """Those of all kinds, also of models that compare images with texts, and that write about images."""

    def __missing__(self, name: str) -> Path:
        place = self["root"] / name
        if name in matchers():
            write_matcher(name, place)
        elif name in WRITERS:
            IMAGE_WRITERS[name].write(place)
        elif name == RUN:
            made, task = examples_of(find_task("classify-image"), self["root"] / "classes"), find_task("classify-image")
            learn(short(task, made, out=place, model="mvitv2-nano", size=16), console=SILENT)
        else:
            return super().__missing__(name)
        self[name] = place
        return place


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> AllFolders:
    return AllFolders(root=tmp_path_factory.mktemp("kinds"))


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Made]:
    root = tmp_path_factory.mktemp("examples")
    return {name: examples_of(find_task(name), root / name) for name in IMAGE_TASKS}


def short(task: Task, made: Made, **settings: Any) -> Recipe:
    """The recipe of one step, at a rate at which nothing moves."""
    usual = {"batch": 4, "steps": 1, "validate_every": 1, "validation_examples": 3, "average": 1, "warmup": 1}
    usual |= {"learning_rate": 1e-9, "weight_decay": 0.0, "precision": "float32", "device": "cpu"}
    return task.recipe(data=made.data, validation=made.data, **{**usual, **settings})


def begin(task: Task, made: Made, start: Path, out: Path, **changes: Any) -> Any:
    """The skill of a short training that begins from a folder."""
    if start.name in LARGE and "size" in setting_names(type(task.reads)):
        changes["size"] = 32
    learn(short(task, made, start=start, out=out, **changes), console=SILENT)
    return foveate.load(out)


def kept(skill: Any, start: Path) -> tuple[int, list[str]]:
    """How many tensors of its image encoder a skill has, and those that are not the folder's."""
    part: Any = image_part(open_start(start))
    encoder = skill.model.get_submodule(part_path(skill.model) or "")
    names = [
        name for name in part.body if name in encoder.state_dict() and "running" not in name and "num_" not in name
    ]
    close = partial(torch.allclose, atol=1e-6, rtol=0)
    return len(names), [name for name in names if not close(encoder.state_dict()[name], part.body[name])]


def test_every_family_is_here(folders: AllFolders) -> None:
    """Also of detectors, which all are built on ResNets."""
    families = {open_start(folders[kind]).family for kind in OF_EACH_FAMILY}
    reading = {row.name for kind in (vision, multimodal) for row in kind.FAMILIES}
    public = {layout_at(place).family for place in MODEL_TYPES.values()}
    assert families | {"deformable-detr", "rt-detr"} == public & reading


@pytest.mark.parametrize("name", [name for name in IMAGE_TASKS if isinstance(find_task(name).reads, SquareImage)])
def test_images_of_different_sizes_take_that_of_the_run(name: str, folders: AllFolders, tmp_path: Path) -> None:
    """Images that are alike keep their own, unless the task is the run's, which goes on with what it reads."""
    task, made = find_task(name), examples_of(find_task(name), tmp_path / "made")

    def read() -> ImageFormat:
        recipe = task.recipe(data=made.data, start=folders[RUN])
        return Lesson(task, recipe).processor_of(task.read(made.data, recipe)).reads.square

    for path in sorted(tmp_path.rglob("*.png")):
        PIL.Image.open(path).convert("L").resize((24, 24)).save(path)
    assert read() == ImageFormat(16 if name == "classify-image" else 24, 3)
    PIL.Image.open(path).resize((24, 20)).save(path)
    assert read() == ImageFormat(16, 3)


@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_a_training_begins_from_every_kind(
    kind: str,
    name: str,
    folders: AllFolders,
    examples: dict[str, Made],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    task, made = find_task(name), examples[name]
    skill = begin(task, made, folders[kind], tmp_path / "run")
    count, others = kept(skill, folders[kind])
    assert count > 10
    assert not others
    main(["eval", str(tmp_path / "run"), "--data", *map(str, made.data), "--json"])
    assert json.loads(capsys.readouterr().out)["ways"]
    given = skill.processor.reads.place(next(iter(task.read(made.data, skill.recipe))))
    (answer,) = skill([given])
    assert not isinstance(answer, UserError)
    main(["run", str(tmp_path / "run"), *given.split("\t"), "--json"])
    assert "error" not in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, ("dinov2", "swin")[number % 2]) for number, name in enumerate(IMAGE_TASKS) if name != "classify-image"],
)
def test_low_rank_updates_leave_the_encoder_alone(
    kind: str, name: str, folders: AllFolders, examples: dict[str, Made], tmp_path: Path
) -> None:
    """All that is not of the folder is trained as a whole."""
    changes = {"lora": 2, "learning_rate": 1e-2, "steps": 2, "validate_every": 2}
    skill = begin(find_task(name), examples[name], folders[kind], tmp_path / "run", **changes)
    _, others = kept(skill, folders[kind])
    assert others
    assert all(part.endswith(("query.weight", "value.weight")) for part in others)
    updated = {part.rpartition(".")[0] for part in read_tensors(tmp_path / "run" / ADAPTER).tensors}
    place = part_path(skill.model)
    assert {f"{place}.{part.removesuffix('.weight')}" for part in others} <= updated
    assert all(part.startswith(f"{place}.") for part in updated)


def test_convolutions_have_no_such_updates(folders: AllFolders, examples: dict[str, Made], tmp_path: Path) -> None:
    """Only the linear layers of a ConvNeXt can be named; a ResNet has none."""
    task, made = find_task("segment"), examples["segment"]
    with pytest.raises(UserError, match=r"linear layer for low-rank updates 'self.query'; known: .*inner, .*outer"):
        begin(task, made, folders["convnext"], tmp_path / "a", lora=2)
    begin(task, made, folders["convnext"], tmp_path / "b", lora=2, lora_layers=("inner", "outer"))
    with pytest.raises(UserError, match="no linear layers, which low-rank updates are for: train them all"):
        begin(task, made, folders["resnet"], tmp_path / "c", lora=2)


@pytest.mark.parametrize(
    ("task", "kind", "settings", "told"),
    [
        ("segment", "vit", {"architecture": {"backbone": "resnet18"}}, "vit, but the image encoder another: leave out"),
        ("keypoints", "vit", {"architecture": {"backbone": "vit-tiny"}, "size": 28}, "give the model its sizes"),
        ("classify-image", "vit", {"model": "resnet18"}, "is a vit, which no resnet can begin from"),
        ("detect", "vit", {"size": 26}, "26 x 26 pixels .* multiples of 5"),
        ("detect", "vit", {"model": "rt-detr-tiny", "architecture": {"backbone_stages": 2}}, "has 1 feature map, but"),
    ],
)
def test_what_cannot_be(
    task: str,
    kind: str,
    settings: dict[str, Any],
    told: str,
    folders: AllFolders,
    examples: dict[str, Made],
    tmp_path: Path,
) -> None:
    with pytest.raises(UserError, match=told) as error:
        begin(find_task(task), examples[task], folders[kind], tmp_path / "run", **settings)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("model", ["deformable-detr-tiny", "rt-detr-tiny", "detr-lite0-tiny"])
@pytest.mark.parametrize("kind", ["vit", "swin", "convnext"])
def test_detectors_of_every_kind(
    kind: str, model: str, folders: AllFolders, examples: dict[str, Made], tmp_path: Path
) -> None:
    """Those that read several feature maps read as many as the folder has."""
    skill = begin(find_task("detect"), examples["detect"], folders[kind], tmp_path / "run", model=model)
    assert not kept(skill, folders[kind])[1]
    stages = {"deformable-detr-tiny": 2, "rt-detr-tiny": 3}.get(model, 1)
    maps = {"vit": 1, "swin": 2, "convnext": 3}[kind]
    assert getattr(skill.model.config, "backbone_stages", 1) == min(stages, maps)


@pytest.mark.parametrize("kind", ["swin", "convnext", "resnet", "efficientnet", RUN])
def test_stages_that_are_too_coarse_are_left_out(kind: str, folders: AllFolders) -> None:
    """What is left has the folder's weights, and gives the map of that stage."""
    part: Any = image_part(open_start(folders[kind]))
    whole: Any = image_encoder(ImageBody.of(part.config), 3, 64)
    stride = whole.stride // 2
    cut: Any = image_encoder(ImageBody.of(part.config, stride), 3, 64)
    assert cut.stride == stride
    part.fill(whole.eval(), part=True)
    part.fill(cut.eval(), part=True)
    pixels = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(cut.grid(pixels), whole.grids(pixels)[-2])
    assert image_encoder(ImageBody.of(part.config, 1), 3, 64).stride == whole.stride >> (len(whole.grid_widths) - 1)
