"""Transcription from end to end: trained, saved, loaded, used, measured."""

import json
import shutil
from io import BytesIO, StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import PIL.Image
import pytest
import soundfile
import torch
from rich.console import Console
from spoken_tones import RATE, random_texts, speak, write_table

import foveate
from foveate.cli import main
from foveate.data.folders import allowing_outside
from foveate.errors import UserError
from foveate.forms.transcripts import SearchOptions, TimeOptions
from foveate.tasks.learning import learn
from foveate.tasks.loading import recipe as make_recipe
from foveate.tasks.recipe import Recipe
from foveate.tasks.transcribe import TASK
from foveate.tasks.viewers import File, open_model
from foveate.training import Training
from foveate.viewer import Audio

CONSOLE = Console(file=StringIO())

SIZES = {
    "las-tiny": {"width": 32, "embedding": 8, "dropout": 0.0},
    "speech-transformer-tiny": {
        "width": 32,
        "heads": 2,
        "feedforward": 64,
        "convolution": 32,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "dropout": 0.0,
    },
}


def recipe(out: Path, data: Path, model: str, steps: int, validation: tuple[Path, ...] = (), **more: Any) -> Recipe:
    training = Training(
        steps=steps,
        learning_rate=7e-3,
        schedule="cosine",
        warmup=20,
        validate_every=500,
        save_every=500,
        precision="float32",
    )
    usual = {"batch": 1500, "augment": False, "label_smoothing": 0.0, "architecture": SIZES[model]}
    chosen = {**usual, **more, "data": data, "validation": validation}
    return make_recipe("transcribe", **chosen, model=model, out=out, training=training)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tones")
    write_table(folder, "train", random_texts(200, 1), 1)
    write_table(folder, "test", random_texts(20, 2), 2)
    return folder


@pytest.fixture(scope="module")
def run(tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained model of tones, which makes no mistake."""
    torch.manual_seed(0)
    out = tmp_path_factory.mktemp("transcribe") / "run"
    learn(recipe(out, tables / "train.tsv", "speech-transformer-tiny", 240, (tables / "test.tsv",)), console=CONSOLE)
    return out


def test_it_learns(run: Path, tables: Path, capsys: pytest.CaptureFixture) -> None:
    main(["eval", str(run), "--data", str(tables / "test.tsv"), "--json"])
    ways = json.loads(capsys.readouterr().out)["ways"]
    assert ways["speech-transformer-tiny"]["character_error_rate"] < 10
    assert ways["the most frequent transcript"]["character_error_rate"] > 50


def test_listen_attend_and_spell_learns_too(tables: Path, tmp_path: Path) -> None:
    """It aligns after more steps than there is time for. The loss of its listener falls first."""
    torch.manual_seed(0)
    task = recipe(tmp_path / "run", tables / "train.tsv", "las-tiny", 60)
    task.training.log_every = 20
    predictor = learn(task, console=CONSOLE)
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    first, *_, last = [line["ctc"] for line in lines if "ctc" in line]
    assert last < 0.7 * first
    assert predictor.run(tables / "test0.wav").text


def test_run_prints_a_line_for_each_file(
    run: Path, tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    """Stereo of another rate is read too; files that cannot be used are reported, and the others answered."""
    generator = np.random.default_rng(5)
    stereo = np.repeat(speak("abc", generator), 2)
    soundfile.write(tmp_path / "abc.wav", np.stack([stereo, stereo], 1), 2 * RATE)
    (tmp_path / "broken.wav").write_bytes((tables / "test0.wav").read_bytes()[:30])
    soundfile.write(tmp_path / "empty.wav", np.zeros(0), RATE)
    soundfile.write(tmp_path / "nan.wav", np.array([0.1, np.nan]), RATE, subtype="FLOAT")
    soundfile.write(tmp_path / "silent.wav", np.zeros(4000), RATE)
    names = ["broken.wav", "abc.wav", "empty.wav", "nan.wav", "silent.wav", "missing.wav"]
    with pytest.raises(SystemExit) as ended:
        main(["run", str(run), *(str(tmp_path / name) for name in names)])
    assert ended.value.code == 2
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert lines[1] == f"{tmp_path / 'abc.wav'}\tabc"
    assert [line for line in lines if line] == [lines[1]]
    reported = printed.err.splitlines()
    assert len(reported) == 5
    for part in ("is truncated", "has no samples", "not numbers", "is silent", "there is no file"):
        assert sum(part in line for line in reported) == 1
    with pytest.raises(SystemExit):
        main(["run", str(run), "--json", str(tmp_path / "silent.wav"), str(tmp_path / "abc.wav")])
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    silent = str(tmp_path / "silent.wav")
    assert first == {"input": silent, "error": f"{tmp_path / 'silent.wav'} is silent"}
    assert (second["text"], second["seconds"]) == ("abc", 0.55)
    assert -1 < second["log_prob"] < 0


def test_folders_and_greedy_search(run: Path, tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    for number in (0, 1):
        (tmp_path / f"{number}.wav").write_bytes((tables / f"test{number}.wav").read_bytes())
    main(["run", str(run), str(tmp_path), "--width", "1"])
    greedy = capsys.readouterr().out.splitlines()
    assert [line.split("\t")[1] for line in greedy] == random_texts(20, 2)[:2]
    (tmp_path / "none").mkdir()
    with pytest.raises(UserError, match=r"none has no sounds$"):
        foveate.load(run).expand([str(tmp_path / "none")])


def test_long_sounds_are_cut(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """By default if they are longer than any in training, 0.7 s; each of the two parts is read on its own."""
    text = "ab" + "  " + "ca"
    soundfile.write(tmp_path / "long.wav", speak(text, np.random.default_rng(9)), RATE)
    main(["run", str(run), str(tmp_path / "long.wav")])
    assert capsys.readouterr().out.split("\t")[1] == "ab ca\n"
    with pytest.raises(UserError, match=r"^cut is 0.1, but must be at least 0.5 seconds$"):
        SearchOptions(cut=0.1).check()


def test_a_picture_of_the_alignment(run: Path, tmp_path: Path) -> None:
    """A spectrogram above the weights."""
    soundfile.write(tmp_path / "cab.wav", speak("cab", np.random.default_rng(7)), RATE)
    predictor = foveate.load(run)
    figure = predictor.picture(predictor.run(tmp_path / "cab.wav"))
    spectrogram, weights = (axes.images[0].get_array() for axes in figure.axes[:2])
    assert spectrogram.shape == (40, 55)
    assert weights.shape == (4, 14)  # three letters and the end, at a quarter of the frames
    assert np.allclose(weights.sum(1), 1, atol=1e-4)
    main(["run", str(run), str(tmp_path / "cab.wav"), "--picture", str(tmp_path / "alignment.png")])
    with PIL.Image.open(tmp_path / "alignment.png") as image:
        assert image.width > 400


def test_the_times_of_words(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """The pause between the two words is from 0.35 to 0.65 s."""
    soundfile.write(tmp_path / "two.wav", speak("ab  ca", np.random.default_rng(9)), RATE)
    main(["run", str(run), str(tmp_path / "two.wav"), "--json", "--times"])
    first, second = json.loads(capsys.readouterr().out)["words"]
    assert (first["word"], second["word"]) == ("ab", "ca")
    assert 0 <= first["start"] <= first["end"] <= second["start"] <= second["end"] <= 1
    figure = foveate.load(run).picture(foveate.load(run).run(tmp_path / "two.wav", TimeOptions(times=True)))
    assert [text.get_text() for text in figure.axes[0].texts] == ["ab", "ca"]


@pytest.mark.parametrize("model", ["las-tiny", "speech-transformer-tiny"])
def test_a_look_shows_characters_over_the_sound(model: str, tables: Path, run: Path, tmp_path: Path) -> None:
    if model == "las-tiny":
        learn(recipe(tmp_path / "run", tables / "test.tsv", model, 1, (tables / "test.tsv",)), console=CONSOLE)
    viewer = open_model(tmp_path / "run" if model == "las-tiny" else run)
    reads = viewer.skill.processor.reads
    speak_to = File("test0.wav", (tables / "test0.wav").read_bytes())
    seen = viewer.look(speak_to, 1000)
    text = seen.notes[1].removeprefix("Transcript: ")
    (cross,) = (site for site in seen.sight.sites if site == "speller" or site.endswith("cross"))
    queries, keys = seen.tokens[cross]
    assert queries == [*text, "[END]"]
    assert isinstance(keys, Audio)
    assert keys.seconds == pytest.approx(reads.longest, abs=0.6)
    reads.longest = 0.1
    with pytest.raises(UserError, match=r"test0.wav lasts .* seconds, but the longest sound that .* learned from 0\.1"):
        viewer.look(speak_to, 1000)


def test_sound_from_a_pipe(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """Two words with a second between them: two lines, each with the second at which it begins. The
    model knows no silence within a sound, and may write more.
    """
    silence = np.zeros(RATE)
    words = [speak(word, np.random.default_rng(9)) for word in ("ab", "ca")]
    soundfile.write(tmp_path / "two.wav", np.concatenate([words[0], silence, words[1], silence]), RATE, "PCM_16")
    with (tmp_path / "two.wav").open("rb") as file:
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=file, isatty=lambda: False))
        main(["run", str(run), "-", "--cut", "2"])
    first, second = (line.split("\t") for line in capsys.readouterr().out.splitlines())
    assert (first[0], first[1][:2]) == ("0.00", "ab")
    assert 1.2 < float(second[0]) < 1.5
    assert second[1]


def test_raw_sound_from_a_pipe(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """Samples without a header are read as those of a WAV."""
    soundfile.write(tmp_path / "one.wav", speak("ab", np.random.default_rng(9)), RATE, "PCM_16")
    whole = (tmp_path / "one.wav").read_bytes()
    for data, options in ((whole, []), (whole[44:], ["--raw", str(RATE)])):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=BytesIO(data), isatty=lambda: False))
        main(["run", str(run), "-", *options])
    first, second = capsys.readouterr().out.splitlines()
    assert first == second
    assert first.startswith("0.00\tab")


def test_unusable_sounds_are_left_out_of_the_training(tables: Path, tmp_path: Path) -> None:
    table = tmp_path / "train.tsv"
    soundfile.write(tmp_path / "silent.wav", np.zeros(4000), RATE)
    table.write_text(f"silent.wav\ta\n{tables / 'test0.wav'}\tb\n")
    with allowing_outside(True):
        dataset = TASK.read([table], recipe(tmp_path, table, "las-tiny", 1))
    assert dataset.report == (
        f"train.tsv: 1 sounds (0.0 minutes; left out 1, the first because {tmp_path / 'silent.wav'} is silent)"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x.wav a", "line 1: 0 tabs, but a line must be path<TAB>label"),
        ("\n\nx.wav\ta", "line 3: there is no file .*x.wav"),
        ("{0}\t ", "line 1: the label is empty"),
    ],
)
def test_tables_that_cannot_be_read(content: str, message: str, tables: Path, tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text(content.format(tables / "test0.wav"))
    with pytest.raises(UserError, match=f"t.tsv, {message}"):
        TASK.read([tmp_path / "t.tsv"], recipe(tmp_path, tmp_path / "t.tsv", "las-tiny", 1))


def test_a_run_goes_on_with_more_characters(run: Path, tables: Path, tmp_path: Path) -> None:
    """New characters are behind the known ones, and spectrograms stay as they are."""
    table = tables / "more.tsv"
    table.write_text("".join(f"test{number}.wav\té{text}\n" for number, text in enumerate(random_texts(12, 2))))
    chosen = {"data": table, "validation": table, "batch": 1500, "steps": 1, "average": 1}
    found = learn(make_recipe("transcribe", start=run, out=tmp_path / "next", **chosen), console=CONSOLE)
    trained = foveate.load(run).processor
    assert found.processor.writes.characters == trained.writes.characters + "é"
    assert found.processor.reads.log_mel == trained.reads.log_mel
    assert found.model.config.vocabulary == foveate.load(run).model.config.vocabulary + 1


def test_a_sound_longer_than_a_batch(tables: Path, tmp_path: Path) -> None:
    task = recipe(tmp_path / "run", tables / "train.tsv", "las-tiny", 1)
    task.examples.batch = 30
    with pytest.raises(UserError, match=r"takes \d+ places, but a batch has only 30: raise --batch"):
        learn(task, console=CONSOLE)


def test_the_same_training_twice_is_the_same(tables: Path, tmp_path: Path) -> None:
    weights = []
    for name in ("one", "two"):
        torch.manual_seed(0)
        table = tables / "test.tsv"
        learn(recipe(tmp_path / name, table, "las-tiny", 2, (table,), augment=True), console=CONSOLE)
        weights.append((tmp_path / name / "model.safetensors").read_bytes())
    assert weights[0] == weights[1]


@pytest.mark.parametrize("changes", [{"longest": 0.0}, {"log_mel": {"step": 1e-9}}, {"log_mel": {"rate": 1}}])
def test_a_processor_with_values_that_cannot_be(run: Path, tmp_path: Path, changes: dict[str, Any]) -> None:
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    content = json.loads((folder / "processor.json").read_text())
    if "log_mel" in changes:
        changes = {"log_mel": content["reads"]["log_mel"] | changes["log_mel"]}
    content["reads"] |= changes
    (folder / "processor.json").write_text(json.dumps(content))
    with pytest.raises(UserError, match=r"processor.json is damaged: (the longest sound|a step of)"):
        foveate.load(folder)
