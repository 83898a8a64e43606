"""Saying texts, from end to end: tones are learned, said, recognised and written."""

import json
import shutil
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from spoken_tones import HERTZ, RATE, speak, write_table

import foveate
from foveate.cli import main
from foveate.data.sounds.codec import invert, learn_codec, relative
from foveate.data.sounds.files import Waveform, read_sound
from foveate.data.sounds.spectrograms import LogMel
from foveate.data.sounds.wav import check_wave_file
from foveate.errors import UserError
from foveate.forms.speech import SpeakOptions, Speech
from foveate.tasks.answers.judges import recognised
from foveate.tasks.learning import learn
from foveate.tasks.loading import recipe as make_recipe
from foveate.tasks.viewers import open_model
from foveate.training import Training

SIZES = {"width": 32, "heads": 2, "feedforward": 64, "decoder_layers": 1, "dropout": 0.0}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that says the letters a, b and c as tones."""
    folder = tmp_path_factory.mktemp("speak")
    table = write_table(folder, "train", [letter for _ in range(20) for letter in HERTZ], 1)
    training = Training(steps=60, learning_rate=1e-2, warmup=5, validate_every=60, save_every=60, precision="float32")
    recipe = make_recipe(
        "speak",
        data=table,
        validation=table,
        batch=600,
        codes=12,
        validation_examples=12,
        architecture=SIZES,
        out=folder / "run",
        training=training,
        label_smoothing=0.1,
    )
    learn(recipe, console=Console(file=StringIO()))
    return folder / "run"


def loudest(samples: np.ndarray) -> float:
    """The frequency with the greatest power, in Hz."""
    return float(np.abs(np.fft.rfft(samples)).argmax() * RATE / len(samples))


def test_a_sound_comes_back_from_its_spectrogram_and_from_codes() -> None:
    log_mel = LogMel(RATE, 40, 0.04, 0.0125)
    sounds = [Waveform(speak(letter, np.random.default_rng(3)).astype(np.float32), RATE) for letter in HERTZ]
    codec = learn_codec(log_mel, sounds, 9)
    for sound, hertz in zip(sounds, HERTZ.values(), strict=True):
        back = invert(log_mel, relative(log_mel, sound))
        assert abs(back.seconds - sound.seconds) < 0.05
        assert abs(loudest(back.samples) - hertz) < 60
        assert abs(loudest(codec.decode(codec.encode(sound).tolist()).samples) - hertz) < 60
    assert len(codec.decode([0]).samples) > 0


def test_it_says_what_it_learned(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    for letter, hertz in HERTZ.items():
        main(["run", str(run), letter, "--out", str(tmp_path / f"{letter}.wav"), "--temperature", "0.5"])
        assert capsys.readouterr().out == f"{tmp_path / f'{letter}.wav'}\t{letter}\n"
        assert abs(loudest(read_sound(tmp_path / f"{letter}.wav").samples) - hertz) < 100
    main(["run", str(run), "a c", "--out", str(tmp_path / "both.wav"), "--picture", str(tmp_path / "p.png")])
    assert read_sound(tmp_path / "both.wav").seconds > read_sound(tmp_path / "a.wav").seconds
    assert (tmp_path / "p.png").stat().st_size > 1000


def test_it_is_measured(run: Path, capsys: pytest.CaptureFixture) -> None:
    main(["eval", str(run), "--data", str(run.parent / "train.tsv"), "--json"])
    ways = json.loads(capsys.readouterr().out)["ways"]
    assert ways["speaker-tiny"]["nats"] < ways["frequency of each token"]["nats"]
    with pytest.raises(UserError, match=r"cannot judge; --judge takes a run of classify-sound$"):
        recognised(run, "classify-sound", [], [])


def test_a_run_goes_on_after_a_text_that_cannot_be_said(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    out = tmp_path / "x.wav"
    with pytest.raises(SystemExit) as ended:
        main(["run", str(run), "a z", "", "b c", "--out", str(out), "--json", "--picture", str(tmp_path / "p.png")])
    assert ended.value.code == 2
    printed, told = capsys.readouterr()
    wrong, empty, found = map(json.loads, printed.splitlines())
    assert wrong == {"input": "a z", "error": "'z' was in no text of the training; it had such as a, b, c"}
    assert wrong["error"] in told
    assert empty == {"input": ""}
    assert (found["input"], found["file"]) == ("b c", str(out))
    assert read_sound(out).seconds > found["seconds"] > 0


def test_a_look_shows_each_token_over_those_before_it(run: Path) -> None:
    found = open_model(run).look("a c", 100)
    names, letters = found.tokens["decoder.0.cross"]
    assert letters == ["a", "[END]"]
    assert (names[0], names[-1]) == ("0.00 s", "[END]")
    queries, keys = found.tokens["decoder.0.self"]
    assert list(keys.before) == ["[START]"]
    assert queries is keys
    assert keys.seconds == pytest.approx((len(names) - 1) * 0.0125)
    assert found.sight["decoder.0.self"].shape[2:] == (len(names), len(names))
    assert found.document().sites
    assert found.picture is not None
    with pytest.raises(UserError, match="'z' was in no text of the training"):
        open_model(run).look("z", 100)


def test_what_cannot_be_said(run: Path, tmp_path: Path) -> None:
    speaker = foveate.load(run)
    with pytest.raises(UserError, match=r"^'z' was in no text of the training; it had such as a, b, c$"):
        speaker.run("a z", SpeakOptions(out=tmp_path / "x.wav"))
    with pytest.raises(UserError, match=r"x.mp3 must end in .wav$"):
        check_wave_file(tmp_path / "x.mp3")
    with pytest.raises(UserError, match=r"^could not write .*x.wav: there is no folder .*none$"):
        check_wave_file(tmp_path / "none" / "x.wav")
    with pytest.raises(UserError, match=r"codes is 1"):
        Speech(codes=1).check()
    assert speaker.run(" ", SpeakOptions(out=tmp_path / "x.wav")).line == ""


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("codec", "log_mel", "step"), 0.0, r"a step of 0.0 s and windows of"),
        (("codec", "log_mel", "window"), 0.0, r"windows of 0.0 s do not fit"),
        (("codec", "log_mel", "bands"), 39, r"each code needs 39 numbers|39 bands are too many"),
        (("codec", "codes"), [[0.0], [0.0, 1.0]], r"each code needs \d+ numbers"),
        (("longest",), 0, r"longest"),
    ],
)
def test_a_processor_with_values_that_cannot_be(
    run: Path, tmp_path: Path, path: tuple[str, ...], value: object, message: str
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    content = json.loads((folder / "processor.json").read_text())
    part = content["writes"]
    for name in path[:-1]:
        part = part[name]
    part[path[-1]] = value
    (folder / "processor.json").write_text(json.dumps(content))
    with pytest.raises(UserError, match=rf"processor.json is damaged: .*({message})"):
        foveate.load(folder)
