"""Captions from a table of images: training, the folder, answers, measures, the strip of words."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch

from foveate import tasks
from foveate.contracts import IGNORE, Batch, Hypothesis
from foveate.data.dataset import Dataset
from foveate.data.images.captions import CaptionedImage, Region
from foveate.data.sources import Splits
from foveate.errors import UserError
from foveate.models.multimodal.rnn_captioner import CaptionOutput
from foveate.tasks.answers.word_maps import named_shares
from foveate.tasks.caption import Captions, CaptionTask, CaptionWriting
from foveate.tasks.former.predictor import Predictor
from foveate.tasks.former.recipe import Training
from foveate.training import CrossEntropy
from foveate.training.objectives.coverage import DoublyStochastic
from foveate.viewer.protocol import File

COLOURS = {"red": (230, 20, 20), "green": (20, 200, 20), "blue": (20, 20, 230), "white": (250, 250, 250)}


def image(left: str, right: str, number: int) -> CaptionedImage:
    pixels = np.zeros((16, 16, 3), np.uint8)
    pixels[4:12, 1:7], pixels[4:12, 9:15] = COLOURS[left], COLOURS[right]
    caption = f"{left} left of {right}"
    box = 1 / 16, 4 / 16, 7 / 16, 12 / 16
    regions = Region(0, len(left), box), Region(len(left) + 9, len(caption), (9 / 16, *box[1:2], 15 / 16, *box[3:]))
    return CaptionedImage(f"image {number}", (caption,), lambda: PIL.Image.fromarray(pixels), regions, str(number))


def images(name: str, count: int, seed: int) -> Dataset[CaptionedImage]:
    generator, names = np.random.default_rng(seed), [*COLOURS]
    pairs = generator.integers(len(names), size=(count, 2)).tolist()
    return Dataset(name, [image(names[a], names[b], number) for number, (a, b) in enumerate(pairs)], "images")


@pytest.fixture(scope="module")
def predictor(tmp_path_factory: pytest.TempPathFactory) -> Predictor:
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("runs") / "caption"
    task = CaptionTask(
        out=out,
        model="show-attend-tell-tiny",
        examples=Captions(batch=16, validation_examples=8),
        training=Training(steps=60, learning_rate=1e-2, schedule="constant", warmup=5, validate_every=60, average=1),
        architecture={"width": 32, "embedding": 16, "dropout": 0.0, "coverage": True},
        coverage_weight=0.01,
    )
    task.learn(Splits(images("train", 64, 1), images("dev", 8, 2), images("test", 8, 3)))
    return tasks.load(out)


def test_it_describes_files(predictor: Predictor, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, one in enumerate(images("test", 3, 4)):
        one.read().save(tmp_path / f"{number}.png")
    (tmp_path / "text.png").write_text("no image")
    places = predictor.expand([str(tmp_path)])
    assert [Path(place).name for place in places] == ["0.png", "1.png", "2.png", "text.png"]
    answers = predictor.answer(places, CaptionWriting())
    assert [one.line for one in answers[:3]] == [f"{one.place}\t{one.text}" for one in answers[:3]]
    assert all("left of" in one.text for one in answers[:3])
    assert answers[3].line == ""
    assert "text.png cannot be read as an image" in capsys.readouterr().err
    figure = predictor.picture(answers[0])
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert titles == answers[0].text.split()


def test_images_that_cannot_be_read(predictor: Predictor, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match="there is no file nothing"):
        predictor.answer(["nothing.png"], CaptionWriting())
    with pytest.raises(UserError, match="none of the 2 images can be read"):
        predictor.answer(["nothing.png", "no.png"], CaptionWriting())
    assert "there is no file no.png" in capsys.readouterr().err


def test_an_image_without_objects_is_told(predictor: Predictor, tmp_path: Path, capsys, monkeypatch) -> None:
    place = tmp_path / "blank.png"
    PIL.Image.new("RGB", (16, 16)).save(place)
    monkeypatch.setattr("foveate.tasks.caption.describe", lambda *args: [Hypothesis([], 0.0, 0.0)])
    (answer,) = predictor.answer([str(place)], CaptionWriting())
    assert answer.line == ""
    assert "blank.png: the model sees nothing that it has a word for" in capsys.readouterr().err


def test_captions_in_another_script_are_noted(predictor: Predictor) -> None:
    greek = CaptionedImage("x", ("κόκκινο μήλο",), lambda: PIL.Image.new("RGB", (16, 16)))
    assert predictor.task.notes(predictor, [greek]) == [
        "the model has no word for 100 % of the tokens of these captions, which it cannot write"
    ]
    assert predictor.task.notes(predictor, [*images("test", 3, 4)]) == []


def test_a_picture_of_several_models(predictor: Predictor, tmp_path: Path) -> None:
    place = tmp_path / "image.png"
    image("red", "blue", 0).read().save(place)
    options = CaptionWriting(heads=True, beside=(predictor.folder,))
    (answer,) = predictor.answer([str(place)], options)
    titles = [axes.get_title() for axes in predictor.picture(answer).axes if axes.get_title()]
    assert titles == 2 * ["caption", *answer.text.split()]


def test_it_has_learned_the_colours(predictor: Predictor) -> None:
    """60 steps: two in three captions are right, where the most frequent one has less than a tenth."""
    examples = [*images("test", 40, 5)]
    measured = predictor.task.measure(predictor, examples, CaptionWriting())
    assert measured.metrics["bleu"] > 60
    assert measured.metrics["bleu_2"] == measured.metrics["bleu"]
    right = sum(answer == one.captions[0] for answer, one in zip(measured.answers, examples, strict=True))
    assert right > 26
    assert measured.metrics["uniform_in_box"] == pytest.approx(100 * 48 / 256)


def test_a_name_that_is_the_end_of_a_word(predictor: Predictor) -> None:
    """As "avion" is of "d'avion": it has the attention of the whole word."""
    example = next(iter(images("test", 1, seed=9)))
    (region, *_) = example.regions
    inner = replace(example, regions=(replace(region, start=region.start + 1),))
    whole = replace(example, regions=(region,))
    assert named_shares(predictor, [inner]) == named_shares(predictor, [whole])


def test_a_look_names_words_and_places(predictor: Predictor, tmp_path: Path) -> None:
    place = tmp_path / "image.png"
    image("red", "blue", 0).read().save(place)
    found = predictor.task.look(predictor, File("image.png", place.read_bytes()), 1000)
    (site,) = found.sight.sites
    words, grid = found.tokens[site]
    assert [*words][-1] == "[END]"
    assert (grid.height, grid.width) == (2, 2)


def test_the_doubly_stochastic_term_by_hand() -> None:
    """Attention of 0.5 and 1.5 is (1 - 0.5)^2 + (1 - 1.5)^2 = 0.5; a row without labels counts for nothing."""
    labels = torch.tensor([[1, 2], [IGNORE, IGNORE]])
    batch = Batch({}, {"labels": labels}, torch.tensor([2, 0]), "rows")
    output = CaptionOutput(torch.zeros(2, 2, 5), coverage=torch.tensor([[0.5, 1.5], [0.0, 0.0]]))
    plain = CrossEntropy()(output, batch)
    found = DoublyStochastic(CrossEntropy(), 3.0)(output, batch)
    assert float(found.total - plain.total) == pytest.approx(1.5)
    assert float(found.log["coverage_loss"]) == pytest.approx(0.5)
