"""Sound classification from end to end: trained, saved, loaded, used, measured."""

import json
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from rich.console import Console
from spoken_tones import RATE, speak

import foveate
from foveate.cli import main
from foveate.data.sounds.labelled import labelled_sounds
from foveate.data.sounds.spectrograms import LogMel
from foveate.errors import UserError
from foveate.forms.sound import SoundClip
from foveate.tasks.learning import learn
from foveate.tasks.loading import recipe as make_recipe
from foveate.tasks.recipe import Recipe
from foveate.tasks.viewers import open_model
from foveate.training import Training
from foveate.viewer.protocol import File

CONSOLE = Console(file=StringIO())

SIZES = {
    "cnn-tiny": {"blocks": (1, 1, 1, 1), "widths": (4, 8, 8, 8)},
    "audio-transformer-tiny": {"width": 16, "heads": 2, "feedforward": 32, "layers": 1, "dropout": 0.0},
}


def recipe(out: Path, data: Path, model: str) -> Recipe:
    training = Training(
        steps=60,
        learning_rate=0.01,
        warmup=3,
        validate_every=60,
        save_every=60,
        precision="float32",
    )
    return make_recipe(
        "classify-sound",
        data=data,
        batch=16,
        label_smoothing=0.0,
        model=model,
        architecture=SIZES[model],
        out=out,
        training=training,
    )


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Class folders, with one file that is not a sound."""
    folder, generator = tmp_path_factory.mktemp("tones"), np.random.default_rng(3)
    for number in range(90):
        label = "abc"[number % 3]
        place = folder / label / f"{number}.wav"
        place.parent.mkdir(exist_ok=True)
        soundfile.write(place, speak(label * int(generator.integers(1, 3)), generator), RATE)
    (folder / "a" / "broken.wav").write_bytes(b"RIFF")
    return folder


@pytest.mark.parametrize("model", SIZES)
def test_it_learns(model: str, classes: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    torch.manual_seed(0)
    learn(recipe(tmp_path / "run", classes, model), console=CONSOLE)
    predictor = foveate.load(tmp_path / "run")
    assert [*predictor.processor.writes.labels] == ["a", "b", "c"]
    main(["eval", str(tmp_path / "run"), "--data", str(classes), "--json"])
    ways = json.loads(capsys.readouterr().out)["ways"]
    assert ways[model]["accuracy"] > 90
    assert ways["always a"]["accuracy"] == pytest.approx(100 / 3, abs=0.1)
    with pytest.raises(SystemExit) as ended:
        main(["run", str(tmp_path / "run"), str(classes / "b" / "1.wav"), str(classes / "a" / "broken.wav")])
    assert ended.value.code == 2
    printed = capsys.readouterr()
    line, empty = printed.out.splitlines()
    assert line.split("\t")[:2] == [str(classes / "b" / "1.wav"), "b"]
    assert empty == ""
    assert "broken.wav" in printed.err
    figure = predictor.picture(predictor.run(classes / "b" / "1.wav"))
    if model == "cnn-tiny":
        assert figure is None
    else:
        weights = figure.axes[1].images[1].get_array()
        assert weights.shape == (5, 4)  # 40 bands and 32 frames in patches of 8 x 8
        assert 0.1 < float(weights.sum()) < 1  # the two tokens get the rest
        sound = File("1.wav", (classes / "b" / "1.wav").read_bytes())
        panel = open_model(tmp_path / "run").look(sound, 4096).document().sites[0]
        assert (panel.keys.picture.height, panel.keys.picture.width, len(panel.keys.picture.before)) == (5, 4, 2)


def test_broken_files_are_left_out(classes: Path) -> None:
    report = labelled_sounds([classes]).report
    assert report.startswith(f"{classes.name}: 90 sounds (")
    assert "left out 1, the first because" in report


def test_cropped_and_padded() -> None:
    form = SoundClip(log_mel=LogMel(8000, bands=20), frames=5)
    long, short = np.ones((9, 20), np.float32), np.ones((2, 20), np.float32)
    long[2:7] = 3
    pixels = form.tensors([long, short])[0]["pixels"]
    assert pixels.shape == (2, 1, 20, 5)
    assert (pixels[0] == 3).all()  # the middle
    assert pixels[1, 0, 0].tolist() == [0, 1, 1, 0, 0]
    drawn = (form.tensors([short], np.random.default_rng(seed))[0]["pixels"][0, 0] for seed in range(30))
    assert {int(one.any(0).int().argmax()) for one in drawn} >= {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("values", "message"),
    [({"seconds": 0.0}, "seconds is 0.0, but must be above 0"), ({"bands": 300}, "300 bands are too many")],
)
def test_settings_that_cannot_be(values: dict, message: str, classes: Path, tmp_path: Path) -> None:
    chosen = recipe(tmp_path / "run", classes, "cnn-tiny")
    for name, value in values.items():
        setattr(chosen.reads, name, value)
    with pytest.raises(UserError, match=f"^{message}"):
        learn(chosen, console=CONSOLE)


def test_folders_without_sounds(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"has no sounds: it needs one folder for each class"):
        labelled_sounds([tmp_path])
