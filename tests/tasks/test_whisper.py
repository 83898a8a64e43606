"""A tiny Whisper in a Hugging Face folder: run, timed, measured, and what is wrong with it."""

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
import transformers
from rich.console import Console
from whisper_folders import write_model

import foveate
from foveate.cli import main
from foveate.data.sounds.files import read_sound
from foveate.data.sounds.whisper_features import WhisperFeatures
from foveate.errors import UserError
from foveate.forms.whisper import WhisperOptions
from foveate.forms.whisper_tokens import plain_words
from foveate.forms.word_times import word_times
from foveate.tasks.skill import Skill
from foveate.tasks.transcriber import WhisperTranscriber
from foveate.tasks.viewers import open_model
from foveate.viewer.protocol import File


@pytest.fixture(scope="module")
def english(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("english"), False)


@pytest.fixture(scope="module")
def multilingual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("multilingual"), True)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "a.wav"
    soundfile.write(path, np.random.default_rng(3).normal(0, 0.1, 16_000), 8000)
    return path


def test_the_text_of_transformers(english: Path, sound: Path) -> None:
    """Greedily, with the tokens that the folder suppresses."""
    transcriber = foveate.load(english)
    assert isinstance(transcriber, Skill)
    writes = transcriber.processor.writes
    found = transcriber.run(sound)
    theirs = transformers.WhisperForConditionalGeneration.from_pretrained(english)
    features = torch.from_numpy(WhisperFeatures()(read_sound(sound)).T[None].copy())
    tokens, values = (
        [writes.known.start, writes.known.silent],
        json.loads((english / "generation_config.json").read_text()),
    )
    with torch.no_grad():
        while len(tokens) < 23:
            logits = theirs(input_features=features, decoder_input_ids=torch.tensor([tokens])).logits[0, -1]
            logits[values["suppress_tokens"]] = -torch.inf
            if len(tokens) == 2:
                logits[values["begin_suppress_tokens"]] = -torch.inf
            tokens.append(int(logits.argmax()))
            if tokens[-1] == writes.known.end:
                break
    assert found.text == writes.tokenizer.decode([tokens[2:]])[0].strip()
    assert found.text


def test_times_are_in_order_and_within_the_sound(multilingual: Path, sound: Path) -> None:
    """The sound has two seconds; it is given twice, and cut into two windows."""
    transcriber = foveate.load(multilingual)
    found = transcriber.run(sound, WhisperOptions(times=True, language="fr"))
    times = [moment for one in found.times for moment in (one.start, one.end)]
    assert times == sorted(times)
    assert 0 <= times[0] <= times[-1] <= 2
    assert "".join("".join(one.word for one in found.times).split()) == "".join(found.text.split())


def long_sound(path: Path, *loudness: float) -> Path:
    """Twenty seconds of noise for each loudness."""
    noise = np.random.default_rng(3).normal(0, 0.1, 20 * 8000)
    soundfile.write(path, np.concatenate([level * noise for level in loudness]), 8000)
    return path


def test_nothing_is_written_for_silence(multilingual: Path, tmp_path: Path) -> None:
    task, options = foveate.load(multilingual), WhisperOptions(times=True, language="fr")
    alone = task.run(long_sound(tmp_path / "a.wav", 1), options)
    found = task.run(long_sound(tmp_path / "b.wav", 1, 0, 0, 0, 0), options)
    assert alone.text
    assert all(word.end <= 31 for word in found.times)
    audible = [part for part in found.parts if part.text]
    assert len(audible) < len(found.parts)
    assert found.seconds == pytest.approx(100)


def test_a_sound_has_one_language(multilingual: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of its first window in which anything is heard, whatever the others seem to be."""
    codes = iter(["fr", "en"])
    monkeypatch.setattr(WhisperTranscriber, "_languages", lambda self, windows, options: [next(codes) for _ in windows])
    task = foveate.load(multilingual)
    paths = [long_sound(tmp_path / "a.wav", 0, 0, 1, 1, 0.5), long_sound(tmp_path / "b.wav", 1, 1)]
    first, second = task([str(path) for path in paths])
    assert {part.language for part in first.parts if part.text} == {"fr"}
    assert {part.language for part in second.parts if part.text} == {"en"}


def test_the_language_is_that_of_the_first_window(multilingual: Path, tmp_path: Path) -> None:
    task = foveate.load(multilingual)
    found = task.run(long_sound(tmp_path / "a.wav", 1, 1, 1))
    alone = task.run(long_sound(tmp_path / "b.wav", 1))
    assert {part.language for part in found.parts} == {found.parts[0].language}
    assert alone.language in ("en", "fr")


def test_run_from_the_command_line(
    english: Path, multilingual: Path, sound: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    soundfile.write(tmp_path / "silent.wav", np.zeros(4000), 8000)
    silent = str(tmp_path / "silent.wav")
    with pytest.raises(SystemExit) as ended:
        main(["run", str(english), silent, str(sound), "--json", "--times"])
    assert ended.value.code == 2
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first == {"input": silent, "error": f"{tmp_path / 'silent.wav'} is silent"}
    assert second["place"] == str(sound)
    assert second["seconds"] == 2
    assert second["words"][0].keys() == {"word", "start", "end"}
    main(["run", str(multilingual), str(sound), "--picture", str(tmp_path / "a.png")])
    assert (tmp_path / "a.png").stat().st_size > 1000
    (tmp_path / "t.tsv").write_text(f"{sound}\tthe lamp\n")
    capsys.readouterr()
    main(["eval", str(english), "--data", str(tmp_path / "t.tsv"), "--allow-outside", "--json"])
    assert json.loads(capsys.readouterr().out)["ways"]["whisper"]["word_error_rate"] > 0


def test_a_look_shows_tokens_over_the_window(multilingual: Path, sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without transformers, which looks at its own models."""
    transcriber = foveate.load(multilingual)
    monkeypatch.setattr("foveate.tasks.viewers.has_transformers", lambda: False)
    found = open_model(multilingual).look(File("a.wav", sound.read_bytes()), 2000)
    tokens, window = found.tokens["decoder.0.cross"]
    assert tokens[-1] == "[END]"
    assert tokens[2] == "<|notimestamps|>"
    assert window.seconds == pytest.approx(2)
    assert found.sight["decoder.0.cross"].shape == (1, 3, len(tokens), 100), "those of the padding are cut off"
    assert found.document().sites[0].keys.count == 100
    assert found.picture is not None
    with pytest.raises(UserError, match="is a folder of Hugging Face's"):
        transcriber.save("copy")


def test_what_cannot_be(english: Path, multilingual: Path, sound: Path) -> None:
    with pytest.raises(UserError, match=r"knows English alone: leave out --language and --translate$"):
        foveate.load(english).run(sound, WhisperOptions(language="fr"))
    with pytest.raises(UserError, match=r"language.*'fx'"):
        foveate.load(multilingual).run(sound, WhisperOptions(language="fx"))
    with pytest.raises(UserError, match=r"give --data TABLE to measure it on$"):
        foveate.load(english).evaluate([], WhisperOptions(), Console())


def test_times_of_words_by_hand() -> None:
    """Three tokens and the end look at ten places each, one after the other; all last 0.8 seconds."""
    weights = np.kron(np.eye(4), np.ones(10))[None]
    found = word_times(weights, [("one", 1), ("seven", 2)], 0.8)
    assert [(one.word, round(one.start, 2), round(one.end, 2)) for one in found] == [
        ("one", 0.0, 0.2),
        ("seven", 0.2, 0.6),
    ]


def test_words_that_are_compared() -> None:
    assert plain_words(" It’s 7 o'clock, 'Sir'!") == "it's 7 o'clock sir"
