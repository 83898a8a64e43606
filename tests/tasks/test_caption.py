"""Captions from a table of images: training, the folder, answers, measures, the strip of words."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch

import foveate
from foveate.cli import main
from foveate.contracts import IGNORE, Batch, Hypothesis
from foveate.data.dataset import Dataset
from foveate.data.images.captions import CaptionedImage, Region
from foveate.data.sources.splits import Splits
from foveate.errors import UserError
from foveate.forms.answers import Failure
from foveate.forms.caption import CaptionOptions
from foveate.metrics.attention_in_boxes import shares_of_names
from foveate.models.multimodal.rnn_captioner import CaptionOutput
from foveate.tasks.learning import learn
from foveate.tasks.loading import recipe as make_recipe
from foveate.tasks.skill import Skill
from foveate.tasks.viewers import open_model
from foveate.training import CrossEntropy, Training
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
def skill(tmp_path_factory: pytest.TempPathFactory) -> Skill:
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("runs") / "caption"
    chosen = make_recipe(
        "caption",
        out=out,
        model="show-attend-tell-tiny",
        batch=16,
        validation_examples=8,
        training=Training(steps=60, learning_rate=1e-2, schedule="constant", warmup=5, validate_every=60, average=1),
        architecture={"width": 32, "embedding": 16, "dropout": 0.0, "coverage": True},
        coverage_weight=0.01,
    )
    learn(chosen, Splits(images("train", 64, 1), images("dev", 8, 2), images("test", 8, 3)))
    return foveate.load(out)


def test_it_describes_files(skill: Skill, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, one in enumerate(images("test", 3, 4)):
        one.read().save(tmp_path / f"{number}.png")
    (tmp_path / "text.png").write_text("no image")
    places = skill.expand([str(tmp_path)])
    assert [Path(place).name for place in places] == ["0.png", "1.png", "2.png", "text.png"]
    answers = skill.answer(places)
    assert [one.line for one in answers[:3]] == [f"{one.given}\t{one.text}" for one in answers[:3]]
    assert all("left of" in one.text for one in answers[:3])
    assert answers[3].line == ""
    with pytest.raises(SystemExit) as ended:
        main(["run", str(skill.folder), str(tmp_path), "--picture", str(tmp_path / "look.png")])
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert out.splitlines() == [one.line for one in answers]
    assert "text.png cannot be read as an image" in err
    figure = skill.picture(answers[0])
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert titles == answers[0].text.split()


def test_images_that_cannot_be_read(skill: Skill) -> None:
    with pytest.raises(UserError, match="there is no file nothing"):
        skill.run("nothing.png")
    found = skill.answer(["nothing.png", "no.png"])
    assert [one.reason for one in found if isinstance(one, Failure)] == [
        "there is no file nothing.png",
        "there is no file no.png",
    ]


def test_an_image_without_objects_is_told(skill: Skill, tmp_path: Path, capsys, monkeypatch) -> None:
    place = tmp_path / "blank.png"
    PIL.Image.new("RGB", (16, 16)).save(place)
    monkeypatch.setattr("foveate.forms.written.decode_all", lambda *args: iter([[[Hypothesis([], 0.0, 0.0)]]]))
    (answer,) = skill.answer([str(place)])
    assert answer.line == ""
    assert "blank.png: the model sees nothing that it has a word for" in capsys.readouterr().err


def test_captions_in_another_script_are_noted(skill: Skill) -> None:
    greek = CaptionedImage("x", ("κόκκινο μήλο",), lambda: PIL.Image.new("RGB", (16, 16)))
    assert skill.notes([greek]) == [
        "the model has no word for 100 % of the tokens of these captions, which it cannot write"
    ]
    assert skill.notes([*images("test", 3, 4)]) == []


def test_a_picture_of_several_models(skill: Skill, tmp_path: Path) -> None:
    place = tmp_path / "image.png"
    image("red", "blue", 0).read().save(place)
    options = CaptionOptions(heads=True, beside=(skill.folder,))
    (answer,) = skill.answer([str(place)], options)
    titles = [axes.get_title() for axes in skill.picture(answer).axes if axes.get_title()]
    assert titles == 2 * ["caption", *answer.text.split()]


def test_it_has_learned_the_colours(skill: Skill) -> None:
    """60 steps: two in three captions are right, where the most frequent one has less than a tenth."""
    examples = [*images("test", 40, 5)]
    answers, metrics = skill.measure(examples, CaptionOptions())
    assert metrics["bleu"] > 60
    assert metrics["bleu_2"] == metrics["bleu"]
    right = sum(answer.split("\t")[1] == one.captions[0] for answer, one in zip(answers, examples, strict=True))
    assert right > 26
    assert metrics["uniform_in_box"] == pytest.approx(100 * 48 / 256)
    assert 0 < metrics["attention_in_box"] < 100


def test_a_name_that_is_the_end_of_a_word(skill: Skill) -> None:
    """As "avion" is of "d'avion": it has the attention of the whole word."""
    example = next(iter(images("test", 1, seed=9)))
    (region, *_) = example.regions
    inner = replace(example, regions=(replace(region, start=region.start + 1),))
    whole = replace(example, regions=(region,))
    writes = skill.processor.writes

    def shares(one: CaptionedImage) -> dict[str, float]:
        return shares_of_names(writes.tokenizer, [one], lambda each: skill.maps(each, writes.reference(each)))

    assert shares(inner) == shares(whole)
    assert set(shares(whole)) == {"attention_in_box", "uniform_in_box"}


def test_a_look_names_words_and_places(skill: Skill, tmp_path: Path) -> None:
    place = tmp_path / "image.png"
    image("red", "blue", 0).read().save(place)
    found = open_model(skill.folder).look(File("image.png", place.read_bytes()), 1000)
    assert found.notes[1].startswith("Caption: ")
    (site,) = found.sight.sites
    words, grid = found.tokens[site]
    assert [*words][-1] == "[END]"
    assert (grid.height, grid.width) == (2, 2)
    main(["look", str(skill.folder), str(place), "--out", str(tmp_path / "words.gif")])
    with PIL.Image.open(tmp_path / "words.gif") as moving:
        assert moving.n_frames == 1 + len(found.notes[1].removeprefix("Caption: ").split())


def test_the_doubly_stochastic_term_by_hand() -> None:
    """Attention of 0.5 and 1.5 is (1 - 0.5)^2 + (1 - 1.5)^2 = 0.5; a row without labels counts for nothing."""
    labels = torch.tensor([[1, 2], [IGNORE, IGNORE]])
    batch = Batch({}, {"labels": labels}, torch.tensor([2, 0]), "rows")
    output = CaptionOutput(torch.zeros(2, 2, 5), coverage=torch.tensor([[0.5, 1.5], [0.0, 0.0]]))
    plain = CrossEntropy()(output, batch)
    found = DoublyStochastic(CrossEntropy(), 3.0)(output, batch)
    assert float(found.total - plain.total) == pytest.approx(1.5)
    assert float(found.log["coverage_loss"]) == pytest.approx(0.5)
