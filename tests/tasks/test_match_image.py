"""Matching of images and captions: training, the folder, answers, measures, a look."""

import json
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch

import foveate
from foveate.cli import main
from foveate.data.dataset import Dataset
from foveate.data.images.captions import CaptionedImage
from foveate.data.sources.splits import Splits
from foveate.errors import UserError
from foveate.forms.answers import Failure, NoOptions
from foveate.metrics.retrieval import ranks_in_hundreds
from foveate.tasks.learning import learn
from foveate.tasks.loading import recipe as make_recipe
from foveate.tasks.skill import Skill
from foveate.tasks.viewers import add_question, open_model, read_input
from foveate.training import Training

COLOURS = {"red": (230, 20, 20), "green": (20, 200, 20), "blue": (20, 20, 230)}


def image(colour: str, number: int) -> CaptionedImage:
    pixels = np.full((24, 24, 3), 255, np.uint8)
    pixels[6:18, 6:18] = COLOURS[colour]
    read = lambda: PIL.Image.fromarray(pixels)  # noqa: E731
    return CaptionedImage(f"image {number}", (f"a {colour} square",), read, identity=str(number))


def images(name: str, count: int, seed: int) -> Dataset[CaptionedImage]:
    drawn = np.random.default_rng(seed).choice([*COLOURS], count).tolist()
    return Dataset(name, [image(colour, number) for number, colour in enumerate(drawn)], "images")


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
    learn(chosen, Splits(images("train", 64, 1), images("dev", 12, 2), images("test", 12, 3)))
    return foveate.load(out)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    image("red", 1).read().save(tmp_path / "a.png")
    return tmp_path / "a.png"


def test_the_matcher_answers(matcher: Skill, place: Path) -> None:
    right, wrong, alone = matcher.answer([f"{place}\ta red square", f"{place}\ta green square", "a.png"])
    assert right.cosine > wrong.cosine
    assert right.line.startswith(f"{place}\ta red square\t0.")
    assert isinstance(alone, Failure)
    assert alone.reason.startswith("one tab must stand")


def test_a_caption_that_cannot_be_read_is_reported_and_the_others_are_answered(
    matcher: Skill, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", str(matcher.folder), str(place), "a red square", "a reed square", "red " * 300]
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--picture", str(tmp_path / "look.png")])
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert out.count("\n") == 3
    assert out.endswith("\n\n\n")
    assert "the model never saw the word 'reed' in a caption; did you mean red" in err
    assert "the caption has 300 tokens, but the model reads at most 75" in err
    with PIL.Image.open(tmp_path / "look.png") as picture:
        assert picture.width > 100
    with pytest.raises(SystemExit):
        main([*arguments, "--json"])
    found, failed, _ = map(json.loads, capsys.readouterr().out.splitlines())
    assert (found["input"], -1 <= found["cosine"] <= 1) == (f"{place}\ta red square", True)
    assert failed["error"].startswith("the model never saw")


def test_it_is_measured_beside_chance(matcher: Skill) -> None:
    ways = matcher.compare(images("test", 12, 3), NoOptions()).figures["ways"]
    assert ways["clip-tiny"]["recall_1"] > 80
    assert ways["chance"] == {"recall_1": 100 / 12, "recall_5": 500 / 12}


def test_a_look_names_words_and_places(matcher: Skill, place: Path) -> None:
    viewer = open_model(matcher.folder)
    given = add_question(read_input(str(place), viewer.takes), "a red square", viewer.takes)
    found = viewer.look(given, 4096)
    assert found.title == "a.png: a red square"
    words, _ = found.tokens["reader.blocks.0.self"]
    assert [*words] == ["[START]", "a", "red", "square", "[END]"]
    panel = next(panel for panel in found.document().sites if panel.name == "pool")
    assert list(panel.queries.labels) == ["mean of the places"]
    with pytest.raises(UserError, match="the model never saw the word 'reed'"):
        viewer.look(add_question(read_input(str(place), viewer.takes), "a reed square", viewer.takes), 4096)


def test_a_caption_and_its_words_over_the_image(matcher: Skill, place: Path) -> None:
    """Rows of a network that attends in its pool alone: shares of the places, which the caption's words change."""
    viewer = open_model(matcher.folder)
    found = viewer.look(add_question(read_input(str(place), viewer.takes), "a red square", viewer.takes), 4096)
    for name in ("caption-image.similarity", "caption-image.relevance"):
        weights = found.sight[name].weights()[0, 0]
        torch.testing.assert_close(weights.sum(-1), torch.ones(4))
        rows, image = found.tokens[name]
        assert list(rows) == ["a red square", "a", "red", "square"]
        assert (image.height, image.width) == (3, 3)
        assert weights.shape == (4, 9)
    with torch.inference_mode():
        pixels = torch.rand(2, 3, 64, 64)
        places, model = matcher.model.places(pixels), matcher.model
        one = torch.nn.functional.normalize(model.pool(places[1:, :1], places[1:, 3:4])[:, 0], dim=-1)
        torch.testing.assert_close(model.embed_places(pixels)[1:, 3], one)


def test_ranks_by_hand() -> None:
    """The second image's own caption is behind another one; an equal caption does not count."""
    captions = torch.eye(3)
    vectors = torch.tensor([[1.0, 0.5, 0.0], [0.9, 0.5, 0.0], [0.5, 0.0, 0.5]])
    assert ranks_in_hundreds(vectors, captions, ["a", "b", "c"]) == [0, 1, 1]
    assert ranks_in_hundreds(vectors, captions, ["a", "b", "a"]) == [0, 1, 0]
    with pytest.raises(UserError, match="one caption alone"):
        ranks_in_hundreds(vectors[:1], captions[:1], ["a"])
