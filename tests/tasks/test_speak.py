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
from foveate.data.sounds.files import Sound, read_sound
from foveate.data.sounds.spectrograms import LogMel
from foveate.data.sounds.wav import check_wave_file
from foveate.errors import TextError, UserError
from foveate.tasks.answers.judges import recognised
from foveate.tasks.former.recipe import Training
from foveate.tasks.speak import SaidTexts, Saying, Speak

SIZES = {"width": 32, "heads": 2, "feedforward": 64, "decoder_layers": 1, "dropout": 0.0}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that says the letters a, b and c as tones."""
    folder = tmp_path_factory.mktemp("speak")
    table = write_table(folder, "train", [letter for _ in range(20) for letter in HERTZ], 1)
    training = Training(steps=60, learning_rate=1e-2, warmup=5, validate_every=60, save_every=60, precision="float32")
    examples = SaidTexts(data=(table,), validation=(table,), batch=600, codes=12, validation_examples=12)
    task = Speak(examples=examples, architecture=SIZES, out=folder / "run", training=training)
    task.learn(console=Console(file=StringIO()))
    return folder / "run"


def loudest(samples: np.ndarray) -> float:
    """The frequency with the greatest power, in Hz."""
    return float(np.abs(np.fft.rfft(samples)).argmax() * RATE / len(samples))


def test_a_sound_comes_back_from_its_spectrogram_and_from_codes() -> None:
    log_mel = LogMel(RATE, 40, 0.04, 0.0125)
    sounds = [Sound(speak(letter, np.random.default_rng(3)).astype(np.float32), RATE) for letter in HERTZ]
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


def test_what_cannot_be_said(run: Path, tmp_path: Path) -> None:
    predictor = foveate.load(run)
    with pytest.raises(TextError, match=r"^'z' was in no text of the training; it had such as a, b, c$"):
        predictor.run("a z", Saying(out=tmp_path / "x.wav"))
    with pytest.raises(UserError, match=r"x.mp3 must end in .wav$"):
        check_wave_file(tmp_path / "x.mp3")
    with pytest.raises(UserError, match=r"^could not write .*x.wav: there is no folder .*none$"):
        check_wave_file(tmp_path / "none" / "x.wav")
    with pytest.raises(UserError, match=r"codes is 1"):
        SaidTexts(codes=1).check()
    assert predictor.run(" ", Saying(out=tmp_path / "x.wav")).line == ""


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
    part = content
    for name in path[:-1]:
        part = part[name]
    part[path[-1]] = value
    (folder / "processor.json").write_text(json.dumps(content))
    with pytest.raises(UserError, match=rf"processor.json is damaged: .*({message})"):
        foveate.load(folder)
