"""Drawing from captions: training, the folder, answers, measures, the strip of words, mistakes."""

from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch

import foveate
from foveate.cli import main
from foveate.data.dataset import Dataset
from foveate.data.images.captions import CaptionedImage, Region
from foveate.data.images.decoding import read_image
from foveate.data.sources.splits import Splits
from foveate.errors import UserError
from foveate.forms.answers import Failure
from foveate.forms.drawing import DrawOptions, JudgeDrawings
from foveate.tasks.learning import learn
from foveate.tasks.loading import recipe as make_recipe
from foveate.tasks.skill import Skill
from foveate.tasks.viewers import open_model
from foveate.training import Training

COLOURS = {"red": (230, 20, 20), "green": (20, 200, 20), "blue": (20, 20, 230)}


def image(colour: str, number: int) -> CaptionedImage:
    pixels = np.full((8, 8, 3), 255, np.uint8)
    pixels[2:6, 2:6] = COLOURS[colour]
    caption = f"a {colour} square"
    regions = (Region(2, 2 + len(colour), (0.25, 0.25, 0.75, 0.75)),)
    return CaptionedImage(f"image {number}", (caption,), lambda: PIL.Image.fromarray(pixels), regions, str(number))


def images(name: str, count: int, seed: int) -> Dataset[CaptionedImage]:
    drawn = np.random.default_rng(seed).choice([*COLOURS], count).tolist()
    return Dataset(name, [image(colour, number) for number, colour in enumerate(drawn)], "images")


SPLITS = Splits(images("train", 64, 1), images("dev", 12, 2), images("test", 12, 3))


@pytest.fixture(scope="module")
def skill(tmp_path_factory: pytest.TempPathFactory) -> Skill:
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("runs") / "draw"
    chosen = make_recipe(
        "draw",
        out=out,
        batch=16,
        validation_examples=8,
        training=Training(steps=150, learning_rate=4e-3, schedule="cosine", warmup=10, validate_every=150, average=1),
        architecture={"width": 32, "embedding": 16, "feedforward": 48, "heads": 2, "layers": 2},
    )
    learn(chosen, SPLITS)
    return foveate.load(out)


@pytest.fixture(scope="module")
def matcher(tmp_path_factory: pytest.TempPathFactory) -> Skill:
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("runs") / "matcher"
    chosen = make_recipe(
        "match-image",
        out=out,
        batch=32,
        validation_examples=12,
        training=Training(steps=40, learning_rate=3e-3, warmup=5, validate_every=40, average=1),
        architecture={"width": 24, "embedding": 16, "heads": 2, "layers": 1},
    )
    learn(chosen, SPLITS)
    return foveate.load(out)


def test_it_draws_what_captions_say(skill: Skill, tmp_path: Path) -> None:
    out = tmp_path / "drawing.png"
    captions = ["a red square", "a blue square"]
    found = skill.answer(captions, DrawOptions(out=out, samples=3))
    assert [one.line for one in found] == [f"{out}\t{caption}" for caption in captions]
    page = np.asarray(read_image(out)).astype(int)
    assert page.shape == (2 * 264 + 8, 3 * 264 + 8, 3)
    for row, caption in enumerate(captions):
        for column in range(3):
            colour = page[8 + 264 * row + 128, 8 + 264 * column + 128]
            assert np.abs(colour - COLOURS[caption.split()[1]]).max() < 40
    figure = skill.picture(found[0])
    assert [axes.get_title() for axes in figure.axes if axes.get_title()] == captions[0].split()


def test_a_list_of_things_may_have_commas(skill: Skill, tmp_path: Path) -> None:
    options = DrawOptions(out=tmp_path / "a.png", seed=3)
    one, other = (skill.run(text, options) for text in ("a green square, a", "a green square a"))
    assert np.array_equal(one.tokens, other.tokens)
    assert one.line == other.line


def test_a_drawing_repeats_with_its_seed(skill: Skill, tmp_path: Path) -> None:
    drawn = [
        skill.run("a green square", DrawOptions(out=tmp_path / "a.png", temperature=5.0, seed=seed)).tokens
        for seed in (1, 1, 2)
    ]
    assert np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])


def test_measures(skill: Skill, matcher: Skill, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nats are far below those of token frequencies; a matcher finds the captions of drawings."""
    examples = [*SPLITS.test]
    _, metrics = skill.measure(examples, JudgeDrawings(matcher=matcher.folder))
    monkeypatch.setattr(Skill, "train_examples", lambda self: SPLITS.train)
    baselines = skill.baselines(examples, JudgeDrawings())
    assert metrics["nats"] < 0.7 * baselines["frequency of each token"]["nats"]
    assert metrics["uniform_in_box"] == pytest.approx(25)
    assert metrics["recall_1"] > 80 > metrics["recall_1_shuffled"]
    assert metrics["recall_1_real_images"] > 80


def test_mistakes(skill: Skill, tmp_path: Path) -> None:
    sketching = DrawOptions(out=tmp_path / "a.png")
    for caption, message in (
        ("a reed square", "the model never saw the word 'reed' in a caption; did you mean red"),
        ("red " * 300, "takes 302 positions, but the model learned only"),
    ):
        drawn, failed = skill.answer(["a red square", caption], sketching)
        assert drawn.line == f"{sketching.out}\ta red square"
        assert isinstance(failed, Failure)
        assert message in failed.reason
    assert [one.line for one in skill.answer(["", " "], sketching)] == ["", ""]
    for options, message in (
        (DrawOptions(out=Path("a.jpg")), "must end in .png"),
        (DrawOptions(out=tmp_path / "none" / "a.png"), "there is no folder"),
        (DrawOptions(samples=0), "samples is 0"),
        (DrawOptions(samples=10**9), "samples is 1,000,000,000, but can be at most 1,000"),
    ):
        with pytest.raises(UserError, match=message):
            skill.answer(["a red square"], options)
    with pytest.raises(UserError, match="cannot judge; --matcher takes a run of match-image"):
        skill.measure([*SPLITS.test], JudgeDrawings(matcher=skill.folder))
    with pytest.raises(UserError, match="images of 8 pixels do not divide into patches of 3"):
        learn(make_recipe("draw", out=tmp_path / "run", patch=3), SPLITS)


def test_a_look_names_words_and_places(skill: Skill) -> None:
    found = open_model(skill.folder).look("a red square", 1000)
    words, places = found.tokens["blocks.0.text.cross"]
    assert [*words] == ["[START]", "a", "red", "square"]
    assert (places.height, places.width) == (2, 2)
    assert found.document().sites
    with pytest.raises(UserError, match="the model never saw the word 'reed'"):
        open_model(skill.folder).look("a reed square", 1000)


def test_a_caption_that_cannot_be_drawn_is_reported_and_the_others_are_drawn(
    skill: Skill, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", str(skill.folder), "a red square", "a reed square", "--out", str(tmp_path / "a.png")]
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--picture", str(tmp_path / "look.png")])
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert out == f"{tmp_path / 'a.png'}\ta red square\n\n"
    assert "the model never saw the word 'reed' in a caption; did you mean red" in err
    for name in ("a", "look"):
        with PIL.Image.open(tmp_path / f"{name}.png") as picture:
            assert picture.width > 100
