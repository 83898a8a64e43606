"""Reading from end to end: trained, saved, loaded, used, measured."""

import json
from io import StringIO
from pathlib import Path

import matplotlib
import numpy as np
import PIL.Image
import pytest
import torch
from rich.console import Console

import foveate
from foveate.cli import main
from foveate.data.dataset import Dataset
from foveate.data.images.word_rendering import RenderedWord
from foveate.data.sources.splits import Splits
from foveate.forms.reading import text_metrics
from foveate.tasks.learning import learn
from foveate.tasks.loading import recipe as make_recipe
from foveate.tasks.skill import Skill
from foveate.tasks.viewers import open_model
from foveate.training import Training
from foveate.viewer.protocol import File

CONSOLE = Console(file=StringIO())
FONT = Path(matplotlib.get_data_path()) / "fonts/ttf/DejaVuSans-Bold.ttf"
SMALL = {"stem": (4, 8), "widths": (8, 12, 16, 16), "width": 24}


def words(name: str, count: int, seed: int) -> Dataset[RenderedWord]:
    texts = ("I", "OO")
    return Dataset(name, [RenderedWord(f"{name} {n}", texts[n % 2], FONT, 1000 * seed + n) for n in range(count)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    out = tmp_path_factory.mktemp("read") / "run"
    training = Training(steps=40, learning_rate=0.01, warmup=3, validate_every=40, precision="float32")
    chosen = {"source": "words", "batch": 16, "height": 16, "width": 40, "augment": False}
    recipe = make_recipe("read", **chosen, architecture=SMALL, out=out, training=training)
    learn(recipe, Splits(words("train", 160, 1), words("dev", 8, 2), words("test", 8, 3)), CONSOLE)
    return out


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder of images with a table, one of which is damaged."""
    place = tmp_path / "images"
    place.mkdir()
    for number, example in enumerate(words("new", 6, 5)):
        example.read().save(place / f"{number}.png")
    (place / "labels.tsv").write_text("".join(f"{n}.png\t{('I', 'OO')[n % 2]}\n" for n in range(6)), encoding="utf-8")
    return place


def test_it_learns_and_reads_new_images(folder: Path, files: Path, monkeypatch) -> None:
    reader = foveate.load(folder)
    monkeypatch.setattr(Skill, "train_examples", lambda self: words("train", 20, 1))
    found = reader.evaluate([files], None, CONSOLE)
    assert [line.split("\t")[1] for line in found.answers] == ["I", "OO"] * 3
    assert found.figures["ways"]["sar-tiny"] == {
        "word_accuracy": 100,
        "accuracy_ignoring_case": 100,
        "character_error_rate": 0,
    }
    assert found.figures["ways"]["the most frequent word"]["word_accuracy"] == 50
    assert found.figures["ways"]["the nearest image"]["word_accuracy"] > 50
    answer = reader.run(files / "1.png")
    assert answer.line == f"{files / '1.png'}\tOO\t{answer.probability:.3f}"
    assert answer.probability > 0.5


def test_a_folder_as_json_goes_on_after_a_damaged_image(folder: Path, files: Path, capsys) -> None:
    (files / "2.png").write_bytes(b"no image")
    PIL.Image.new("L", (3, 70)).save(files / "3.png")
    with pytest.raises(SystemExit) as ended:
        main(["run", str(folder), str(files), "--json"])
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    answers = [json.loads(line) for line in out.splitlines()]
    assert [answer["input"] for answer in answers] == [str(files / f"{number}.png") for number in range(6)]
    assert [answer.get("text", "") for answer in answers] == ["I", "OO", "", "", "I", "OO"]
    assert answers[0]["place"] == answers[0]["input"]
    assert "2.png cannot be read as an image" in err
    assert "cannot be read as an image" in answers[2]["error"]
    assert "3.png is 3 x 70 pixels: too tall for a line of text" in answers[3]["error"]
    assert "error" not in answers[0]


def test_a_picture_with_a_panel_for_each_character(folder: Path, files: Path, tmp_path: Path) -> None:
    reader = foveate.load(folder)
    figure = reader.picture(reader.run(files / "1.png"))
    assert [axes.get_title() for axes in figure.axes] == ["image", "O", "O", "end"]
    weights = figure.axes[1].images[1].get_array()
    assert weights.shape[0] == 2
    assert weights.sum() == pytest.approx(1, abs=1e-4)
    main(["run", str(folder), str(files / "1.png"), "--picture", str(tmp_path / "look.png")])
    with PIL.Image.open(tmp_path / "look.png") as picture:
        assert picture.width > 100


def test_a_look_names_characters_and_places(folder: Path, files: Path) -> None:
    reader = foveate.load(folder)
    file = files / "1.png"
    found = open_model(folder).look(File("1.png", file.read_bytes()), 1000)
    (site,) = found.sight.sites
    characters, grid = found.tokens[site]
    assert characters == ["O", "O", "[END]"]
    assert found.sight[site].shape == (1, 1, 3, grid.height * grid.width)
    assert found.document().sites
    drawn = reader.picture(reader.run(file)).axes[3].images[1].get_array()
    weights = found.sight[site].weights()[0, 0, 2].view(grid.height, grid.width)
    np.testing.assert_allclose(weights[:, : drawn.shape[1]], drawn, atol=1e-6)


def test_metrics_by_hand() -> None:
    found = text_metrics(["Exit", "it's", "two"], ["EXIT", "its", "too"])
    assert found["word_accuracy"] == 0
    assert found["accuracy_ignoring_case"] == pytest.approx(200 / 3)
    assert found["character_error_rate"] == pytest.approx(100 * (3 + 1 + 1) / 10)
