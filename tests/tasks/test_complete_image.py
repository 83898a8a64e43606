"""Image completion: training, the numbers of colours, completions, measures, a look, a linear probe, mistakes."""

from io import BytesIO
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch

import foveate
from foveate import models
from foveate.cli import main
from foveate.data.dataset import Dataset
from foveate.data.images.labelled import ImageFormat, LabelledImage, unlabelled_images
from foveate.data.images.pixels import normalize
from foveate.data.sources.splits import Splits
from foveate.errors import UserError
from foveate.forms.answers import Failure, NoOptions
from foveate.forms.pixels import CompleteImageOptions, EvenPalette, PixelImage
from foveate.models.vision.imagegpt import ImageGPTConfig
from foveate.tasks.learning import learn
from foveate.tasks.loading import recipe as make_recipe
from foveate.tasks.skill import Skill
from foveate.tasks.viewers import open_model
from foveate.training import Training
from foveate.viewer.protocol import File

TINY = {"width": 24, "heads": 2, "feedforward": 48, "layers": 1}


def image(number: int) -> LabelledImage:
    """Stripes from top to bottom, whose colour each column repeats."""
    pixels = np.tile(np.random.default_rng(number).choice([0, 255], 5).astype(np.uint8), (5, 1))
    return LabelledImage(
        f"image {number}", "dark" if pixels[0, 0] < 100 else "light", lambda: PIL.Image.fromarray(pixels)
    )


def images(name: str, start: int, count: int) -> Dataset[LabelledImage]:
    return Dataset(name, [image(number) for number in range(start, start + count)], "images")


SPLITS = Splits(images("train", 0, 200), images("dev", 200, 12), images("test", 220, 12))


@pytest.fixture(scope="module")
def skill(tmp_path_factory: pytest.TempPathFactory) -> Skill:
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("runs") / "pixels"
    recipe = make_recipe(
        "complete-image",
        out=out,
        batch=16,
        levels=2,
        size=5,
        steps=300,
        learning_rate=2e-2,
        schedule="cosine",
        warmup=10,
        validate_every=300,
        average=1,
        architecture=TINY,
    )
    learn(recipe, SPLITS)
    found: Skill = foveate.load(out)  # type: ignore[assignment]
    return found


@pytest.mark.parametrize(("levels", "channels"), [(8, 1), (2, 3), (3, 3)])
def test_colours_are_those_of_the_model(levels: int, channels: int) -> None:
    palette = EvenPalette(ImageFormat(7, channels), levels)
    pixels = np.random.default_rng(3).integers(0, 256, (5, channels, 7, 7)).astype(np.uint8)
    config = ImageGPTConfig(1, channels, 7, levels**channels, 8, 2, 8, 1)
    model = models.build("imagegpt", config)
    expected = model.quantize(normalize(pixels)).flatten(1)
    colours = palette.colours(pixels)
    assert np.array_equal(colours, expected.numpy())
    again = palette.images(colours).transpose(0, 3, 1, 2)
    assert np.array_equal(palette.colours(again), colours)


def test_it_learns_that_columns_repeat(skill: Skill) -> None:
    lines, metrics = skill.measure(list(SPLITS.test), NoOptions())
    assert metrics["bits"] < 0.5  # 1 bit for each pixel of the first row, so 0.2 of all
    assert metrics["accuracy"] > 80
    place, bits = lines[0].split("\t")
    assert (place, float(bits) < 1) == ("image 220", True)


def test_completions_go_on_from_what_is_given(skill: Skill, tmp_path: Path) -> None:
    image(90).read().save(tmp_path / "a.png")
    (tmp_path / "b.png").write_text("no image")
    options = CompleteImageOptions(out=tmp_path / "out.png", samples=2, given=0.4, temperature=0)
    found = skill.answer([str(tmp_path / "a.png"), str(tmp_path / "b.png")], options)
    assert [each.line for each in found] == [f"{tmp_path / 'a.png'}\t{tmp_path / 'out.png'}", ""]
    assert isinstance(found[1], Failure)
    with PIL.Image.open(tmp_path / "out.png") as page:
        pixels = np.asarray(page.convert("L"))
    side = 5 * (112 // 5)
    whole, drawn = (pixels[8 : 8 + side, left : left + side] for left in (8, 8 + 2 * (side + 8)))
    assert (whole == drawn).mean() > 0.75


def test_a_run_goes_on_after_a_damaged_image(skill: Skill, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image(90).read().save(tmp_path / "b.png")
    (tmp_path / "a.png").write_text("no image")
    out, picture = tmp_path / "out.png", tmp_path / "picture.png"
    with pytest.raises(SystemExit) as ended:
        main(["run", str(skill.folder), str(tmp_path), "--out", str(out), "--samples", "1", "--picture", str(picture)])
    assert ended.value.code == 2
    printed, told = capsys.readouterr()
    assert printed.splitlines() == ["", f"{tmp_path / 'b.png'}\t{out}"]
    assert f"{tmp_path / 'a.png'} cannot be read as an image" in told
    assert picture.stat().st_size > 1000
    with pytest.raises(SystemExit):
        main(["run", str(skill.folder), str(tmp_path / "a.png"), "--json", "--out", str(tmp_path / "none.png")])
    assert '"error": ' in capsys.readouterr().out
    assert not (tmp_path / "none.png").exists()


def test_a_look_names_the_pixel_that_each_place_reads(skill: Skill, tmp_path: Path) -> None:
    image(90).read().save(tmp_path / "a.png")
    found = open_model(skill.folder).look(File("a.png", (tmp_path / "a.png").read_bytes()), 1000)
    assert found.sight["stack.blocks.0.self"].shape == (1, 2, 25, 25)
    queries, keys = found.tokens["stack.blocks.0.self"]
    assert (queries.height, keys.width) == (5, 5)
    assert "bits a pixel" in found.notes[1]
    form = skill.processor.reads
    prepared = form.prepare(image(90).read())
    with PIL.Image.open(BytesIO(keys.data)) as picture:
        shown = np.asarray(picture.convert("L")).ravel()
    assert shown[0] == 128
    assert np.array_equal(shown[1:], form.palette.images(form.palette.colours(prepared[None])).ravel()[:-1])


def test_baselines_count_colours(skill: Skill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Skill, "train_examples", lambda self: SPLITS.train)
    ways = skill.baselines(list(SPLITS.test), NoOptions())
    first, second, third = ways.values()
    assert first["bits"] == pytest.approx(1, abs=0.05)
    assert second["bits"] == pytest.approx(1, abs=0.1)
    assert 0.15 < third["bits"] < 0.4


def test_a_linear_probe_begins_from_it(skill: Skill, tmp_path: Path) -> None:
    task = make_recipe(
        "classify-image",
        start=skill.folder,
        out=tmp_path / "probe",
        batch=16,
        augment=False,
        size=5,
        architecture={**TINY, "colours": 2, "image_size": 5},
        training=Training(steps=2, freeze=("embedding", "stack"), validate_every=2, average=1),
    )
    assert task.model == "imagegpt-tiny"
    probe = learn(task, SPLITS)
    body, trained = skill.model.state_dict(), probe.model.state_dict()
    assert all(torch.equal(body[name], trained[name]) for name in body if not name.startswith("output"))
    assert probe.model.config.predict == "label"


def test_a_run_goes_on_with_the_colours_that_it_knows(skill: Skill, tmp_path: Path) -> None:
    recipe = make_recipe("complete-image", start=skill.folder, out=tmp_path / "next", flip=True, steps=1, average=1)
    found = learn(recipe, SPLITS)
    reads = found.processor.reads
    assert (reads.levels, reads.format.size, reads.flip) == (2, 5, True)
    assert found.processor.writes.levels == 2


def test_what_cannot_be_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a folder of images"):
        unlabelled_images([tmp_path / "missing"])
    with pytest.raises(UserError, match="there is no image in it"):
        unlabelled_images([tmp_path])
    with pytest.raises(UserError, match="given is 1, but must be at least 0 and below 1"):
        CompleteImageOptions(given=1).check()
    with pytest.raises(UserError, match="levels is 1, but must be at least 2"):
        PixelImage(levels=1).check()
