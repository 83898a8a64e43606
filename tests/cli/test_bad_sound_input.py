"""What a user may get wrong with sounds: one line for each file that cannot be used, and the others are answered."""

import json
import sys
import wave
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
from spoken_tones import RATE, random_texts, speak, write_table

from foveate.cli import main

Fails = Callable[..., str]
Failures = Callable[..., list[str]]
LITTLE = ["--steps", "1", "--threads", "1", "--average", "1"]
SMALL = ["--architecture.width", "16", *LITTLE]


def tone() -> np.ndarray:
    return speak("abc", np.random.default_rng(7))


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sounds with transcripts (train.tsv), and with one letter each (labels.tsv)."""
    folder = tmp_path_factory.mktemp("tones")
    texts = random_texts(22, 1)
    table = write_table(folder, "train", texts, 1)
    lines = [line.split("\t") for line in table.read_text().splitlines()]
    (folder / "labels.tsv").write_text("".join(f"{name}\t{text[0]}\n" for name, text in lines))
    return folder


@pytest.fixture(scope="module")
def runs(tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of each task that reads or writes sounds."""
    out = tmp_path_factory.mktemp("runs")
    for task, table, more in (
        ("transcribe", "train.tsv", ["--architecture.width", "16"]),
        ("classify-sound", "labels.tsv", []),
        ("speak", "labels.tsv", ["--codes", "8", "--architecture.width", "16", "--architecture.heads", "2"]),
    ):
        main(["train", task, "--data", str(tables / table), *more, *LITTLE, "--out", str(out / task)])
    return out


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, str]:
    """Files that cannot be used, and what is said of each."""
    folder = tmp_path_factory.mktemp("bad")
    soundfile.write(folder / "silent.wav", np.zeros(RATE), RATE)
    soundfile.write(folder / "empty.wav", np.zeros(0), RATE)
    for name, value in (("nan", np.nan), ("infinite", np.inf)):
        samples = tone()
        samples[100] = value
        soundfile.write(folder / f"{name}.wav", samples, RATE, "FLOAT")
    with wave.open(str(folder / "hours.wav"), "wb") as file:
        file.setparams((1, 1, 1000, 0, "NONE", ""))
        file.writeframes(bytes(range(200)) * 5 * 3 * 3600)
    with soundfile.SoundFile(str(folder / "hours.ogg"), "w", RATE, 1) as file:
        for _ in range(700):
            file.write(0.1 * np.ones(RATE))
    soundfile.write(folder / "whole.ogg", tone(), RATE)
    whole = (folder / "whole.ogg").read_bytes()
    (folder / "half.ogg").write_bytes(whole[: len(whole) // 2])
    (folder / "head.ogg").write_bytes(whole[:40])
    (folder / "text.ogg").write_text("no sound")
    soundfile.write(folder / "cut.wav", tone(), RATE)
    (folder / "cut.wav").write_bytes((folder / "cut.wav").read_bytes()[:30])
    numbers = "has samples that are not numbers (NaN or infinite)"
    told = {
        "silent.wav": "is silent",
        "empty.wav": "has no samples",
        "nan.wav": numbers,
        "infinite.wav": numbers,
        "hours.wav": "lasts 10,800 seconds; the limit is 600: cut it",
        "hours.ogg": "lasts 700 seconds; the limit is 600: cut it",
        "half.ogg": "cannot be read as a sound: ",
        "head.ogg": "cannot be read as a sound: ",
        "text.ogg": "cannot be read as a sound: ",
        "cut.wav": "is not a .wav file of integers (PCM) or floats: its header is truncated",
    }
    return {folder / name: text for name, text in told.items()} | {folder / "missing.wav": ""}


@pytest.mark.parametrize("task", ["transcribe", "classify-sound"])
def test_the_batch_goes_on(task: str, runs: Path, tables: Path, bad: dict[Path, str], capsys) -> None:
    good = tables / "train0.wav"
    with pytest.raises(SystemExit) as ended:
        main(["run", str(runs / task), *map(str, bad), str(good), "--json"])
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    err = err.replace("foveate: ", "")
    for path, told in bad.items():
        (line,) = (line for line in err.splitlines() if str(path) in line)
        assert line.startswith(f"{path} {told}") if told else line == f"there is no file {path}"
    answers = [json.loads(line) for line in out.splitlines()]
    answered = "text" if task == "transcribe" else "label"
    assert [one["input"] for one in answers] == [*map(str, bad), str(good)]
    assert [one.get(answered) is not None for one in answers] == [False] * len(bad) + [True]
    assert ["error" in one for one in answers] == [True] * len(bad) + [False]
    with pytest.raises(SystemExit):
        main(["run", str(runs / task), *map(str, bad), str(good)])
    *empty, last = capsys.readouterr().out.splitlines()
    assert not any(empty)
    assert last.startswith(f"{good}\t")


def test_other_rates_and_channels(runs: Path, tmp_path: Path, capsys) -> None:
    """Sounds of other rates, of two channels and of next to no samples are read like all others."""
    samples = tone()
    for rate in (4000, 11_025, 44_100, 96_000):
        times = np.arange(round(len(samples) * rate / RATE)) * RATE / rate
        one = np.interp(times, np.arange(len(samples)), samples)
        soundfile.write(tmp_path / f"{rate}.wav", np.stack([one, 0.5 * one], 1), rate)
    soundfile.write(tmp_path / "short.wav", samples[1000:1003], RATE)
    main(["run", str(runs / "transcribe"), str(tmp_path), "--json"])
    out, err = capsys.readouterr()
    answers = [json.loads(line) for line in out.splitlines()]
    assert len(answers) == 5
    assert all("error" not in one for one in answers)
    assert not err


def test_pictures_are_of_the_first_sound_that_can_be_used(
    runs: Path, tables: Path, bad: dict[Path, str], tmp_path: Path, fails: Fails, failures: Failures
) -> None:
    silent, picture = next(iter(bad)), tmp_path / "a.png"
    told = failures("run", runs / "transcribe", silent, tables / "train0.wav", "--json", "--picture", picture)
    assert told == [f"drew {picture}", f"foveate: {silent} is silent"]
    assert picture.stat().st_size > 1000
    told = fails("run", runs / "transcribe", silent, "--json", "--picture", tmp_path / "b.png")
    assert told == f"{silent} is silent"
    assert fails("look", runs / "transcribe", silent, "--out", tmp_path / "a.html") == f"{silent.name} is silent"


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (b"", [], "standard input is not a .wav stream of integers (PCM) or floats: it ends before its samples"),
        (
            b"no sound, but a text",
            [],
            "standard input is not a .wav stream: have arecord write one (-t wav), or give the rate",
        ),
        (b"", ["--raw", "8000"], "standard input has no samples"),
        (bytes(RATE), ["--raw", "8000"], "standard input is silent"),
        (bytes(RATE), ["--raw", "5"], "raw is 5, but the samples of a second are at least 1,000"),
        (bytes(RATE), ["--raw", "8000", "--cut", "0.1"], "cut is 0.1, but must be at least 0.5 seconds"),
        ("silent.wav", [], "standard input is silent"),
        ("empty.wav", [], "standard input has no samples"),
        ("nan.wav", [], "standard input has samples that are not numbers (NaN or infinite)"),
    ],
)
def test_pipes(
    data: bytes | str, options: list[str], message: str, runs: Path, bad: dict, fails: Fails, monkeypatch
) -> None:
    content = data if isinstance(data, bytes) else (next(iter(bad)).parent / data).read_bytes()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=BytesIO(content), isatty=lambda: False))
    assert fails("run", runs / "transcribe", "-", *options).startswith(message)


def test_unusable_sounds_of_a_table_are_left_out_and_counted(
    tables: Path, bad: dict[Path, str], tmp_path: Path, fails: Fails, capsys
) -> None:
    good = (tables / "train.tsv").read_text().replace("train", f"{tables}/train")
    (table := tmp_path / "mixed.tsv").write_text(
        good + "".join(f"{path}\ta\n" for path in bad if path.name != "missing.wav")
    )
    main(["train", "transcribe", "--data", str(table), "--allow-outside", *SMALL, "--out", str(tmp_path / "run")])
    said = capsys.readouterr().err
    assert f"; left out 10, the first because {next(iter(bad))} is silent)" in said
    table.write_text(f"{good}{bad and next(reversed(bad))}\ta\n")
    told = fails("train", "transcribe", "--data", table, "--allow-outside", *SMALL, "--out", tmp_path / "other")
    assert told == f"{table}, line 23: there is no file {next(reversed(bad))}"
    table.write_text(f"{next(iter(bad))}\ta\n")
    told = fails("train", "transcribe", "--data", table, "--allow-outside", *SMALL, "--out", tmp_path / "other")
    assert told == f"{next(iter(bad))} is silent"
    assert not (tmp_path / "other").exists()


def test_transcripts_that_do_not_fit_their_sounds(
    runs: Path, tables: Path, tmp_path: Path, fails: Fails, capsys
) -> None:
    good = (tables / "train.tsv").read_text().replace("train", f"{tables}/train")
    soundfile.write(short := tmp_path / "short.wav", tone()[:800], RATE)
    (table := tmp_path / "table.tsv").write_text(f"{good}{short}\t{'ab ' * 99}\n")
    main(["train", "transcribe", "--data", str(table), "--allow-outside", *SMALL, "--out", str(tmp_path / "run")])
    said = f"left out 1, the first because {short} lasts 0.10 seconds, too short for its 296 characters"
    assert said in capsys.readouterr().err
    table.write_text(f"{good}{short}\t\n")
    told = fails("train", "transcribe", "--data", table, "--allow-outside", *SMALL, "--out", tmp_path / "other")
    assert told == f"{table}, line 23: the label is empty"
    table.write_text(f"{short}\tñ a\n")
    main(["eval", str(runs / "transcribe"), "--data", str(table), "--allow-outside", "--width", "1"])
    assert "of 3 have characters that the model did not learn: " in capsys.readouterr().out
    table.write_text(f"{short}\tzebra\n")
    main(["eval", str(runs / "classify-sound"), "--data", str(table), "--allow-outside"])
    assert "1 of 1 have labels that the model did not learn: zebra" in capsys.readouterr().out


def test_texts_that_cannot_be_said(runs: Path, tmp_path: Path, fails: Fails, failures: Failures, capsys) -> None:
    out = ("--out", tmp_path / "a.wav")
    told = fails("run", runs / "speak", "a", "aßb", *out)
    assert told.startswith("aßb: 'ß' was in no text of the training")
    main(["run", str(runs / "speak"), "", *map(str, out)])
    assert capsys.readouterr().err == "1 empty line stays empty\n"
    assert fails("run", runs / "speak", "a", "--out", tmp_path / "a.mp3") == f"{tmp_path / 'a.mp3'} must end in .wav"


@pytest.fixture
def no_soundfile(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if the extra "audio" were missing."""
    monkeypatch.setitem(sys.modules, "soundfile", None)
    return


@pytest.mark.usefixtures("no_soundfile")
def test_without_the_extra(
    runs: Path, tables: Path, bad: dict[Path, str], tmp_path: Path, fails: Fails, capsys
) -> None:
    ogg = next(iter(bad)).parent / "whole.ogg"
    told = f"{ogg} is not a .wav file; other formats (ogg, flac, mp3) need the extra: pip install 'foveate[audio]'"
    with pytest.raises(SystemExit):
        main(["run", str(runs / "transcribe"), str(ogg), str(tables / "train0.wav"), "--json"])
    out, err = capsys.readouterr()
    assert err.splitlines() == [f"foveate: {told}"]
    assert [("error" in json.loads(line)) for line in out.splitlines()] == [True, False]
    (table := tmp_path / "ogg.tsv").write_text(f"{ogg}\ta\n")
    assert fails("train", "transcribe", "--data", table, "--allow-outside", *SMALL, "--out", tmp_path / "run") == told
