"""Models that listen with the encoder of a Whisper: LAS and a Transformer with CTC, from a tiny folder."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch
import transformers
from rich.console import Console
from spoken_tones import RATE, random_texts, write_table
from whisper_folders import write_model

import foveate
from foveate.cli import main
from foveate.data.sounds.files import read_sound
from foveate.data.sounds.whisper_features import WhisperFeatures
from foveate.errors import UserError
from foveate.forms.ctc import SpelledTranscript
from foveate.forms.transcripts import Transcript
from foveate.tasks.learning import learn
from foveate.tasks.loading import recipe as make_recipe
from foveate.tasks.recipe import Recipe
from foveate.tasks.viewers import File, open_model
from foveate.viewer import Audio

CONSOLE = Console(file=StringIO())

PRESETS = ("las-whisper-tiny", "whisper-ctc-tiny")

SMALL = {"las-whisper-tiny": {"width": 14, "embedding": 8}, "whisper-ctc-tiny": {}}


@pytest.fixture(scope="module")
def whisper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("whisper"), False)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("tones"), "train", [*random_texts(20, 1), "ab ca", "ab ca"], 1)


def recipe(out: Path, table: Path, model: str, start: Path | None, steps: int = 2, **more: Any) -> Recipe:
    chosen = {"architecture": SMALL[model], **more}
    return make_recipe(
        "transcribe",
        **{"model": model, "start": start, "data": table, "out": out, "steps": steps, "batch": 800, **chosen},
        validation=table,
        save_every=1,
        average=1,
    )


@pytest.fixture(scope="module", params=PRESETS)
def run(
    request: pytest.FixtureRequest, whisper: Path, table: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    """A preset and its run, whose encoder stayed as it was."""
    out = tmp_path_factory.mktemp(request.param) / "run"
    learn(recipe(out, table, request.param, whisper, freeze=("listener",)), console=CONSOLE)
    return request.param, out


def test_it_listens_as_whisper_does(run: tuple[str, Path], whisper: Path, table: Path) -> None:
    """The encoder is that of transformers, and reads the same spectrograms, without the silence behind them."""
    skill: Any = foveate.load(run[1])
    theirs = transformers.WhisperForConditionalGeneration.from_pretrained(whisper).get_encoder()
    sound = read_sound(table.parent / "train0.wav")
    window = torch.from_numpy(WhisperFeatures()(sound))[None]
    with torch.no_grad():
        found, lengths = skill.model.listener(window, torch.tensor([3000]))
        expected = theirs(window.mT).last_hidden_state
    assert lengths.tolist() == [1500]
    torch.testing.assert_close(found, expected, atol=2e-5, rtol=0)
    inputs, _ = skill.processor.reads.tensors([skill.processor.reads.open(str(table.parent / "train0.wav"))])
    frames = round(100 * sound.seconds)
    assert inputs["source_lengths"].tolist() == [frames]
    assert torch.equal(inputs["source"][0], window[0, :frames])


def test_forms_and_rates(whisper: Path, table: Path, tmp_path: Path) -> None:
    las, ctc = (recipe(tmp_path, table, model, whisper) for model in PRESETS)
    assert (type(las.writes), type(ctc.writes)) == (Transcript, SpelledTranscript)
    assert las.training.rate_factors == ctc.training.rate_factors == {"listener": 0.1}
    assert las.architecture.listener.width == ctc.architecture.listener.width == 12
    assert recipe(tmp_path, table, PRESETS[0], None).training.rate_factors == {}


@pytest.mark.parametrize("model", PRESETS)
def test_a_resumed_training_ends_with_the_same_weights(model: str, whisper: Path, table: Path, tmp_path: Path) -> None:
    usual = {"schedule": "constant", "warmup": 1, "validate_every": 1}
    for out, steps in (("twice", 2), ("twice", 4), ("once", 4)):
        learn(recipe(tmp_path / out, table, model, whisper, steps, **usual), console=CONSOLE)
    first, second = (foveate.load(tmp_path / name).model.state_dict() for name in ("twice", "once"))
    for name, value in first.items():
        assert torch.equal(value, second[name]), name
    begun = foveate.load(whisper).model.state_dict()["encoder_norm.weight"]
    assert not torch.equal(first["listener.encoder_norm.weight"], begun)


def test_run_eval_and_times(run: tuple[str, Path], table: Path, capsys: pytest.CaptureFixture) -> None:
    model, folder = run
    main(["run", str(folder), str(table.parent / "train0.wav"), "--json", "--times"])
    found = json.loads(capsys.readouterr().out)
    assert found["seconds"] == pytest.approx(read_sound(table.parent / "train0.wav").seconds, abs=1e-3)
    assert all(0 <= one["start"] <= one["end"] <= found["seconds"] for one in found["words"])
    main(["eval", str(folder), "--data", str(table), "--json"])
    ways = json.loads(capsys.readouterr().out)["ways"]
    assert [*ways] == [model, "the most frequent transcript"]
    assert ways["the most frequent transcript"]["wrong_transcripts"] < 100  # it is one of the texts, not empty


def test_long_sounds_are_cut(run: tuple[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    noise = np.random.default_rng(5).normal(0, 0.1, 40 * RATE)
    soundfile.write(tmp_path / "long.wav", noise, RATE)
    main(["run", str(run[1]), str(tmp_path / "long.wav"), "--cut", "20", "--json"])
    assert json.loads(capsys.readouterr().out)["seconds"] == pytest.approx(40)
    with pytest.raises(SystemExit) as ended:
        main(["run", str(run[1]), str(tmp_path / "long.wav"), "--cut", "31"])
    assert ended.value.code == 2
    assert "cut is 31.0, but can be at most 30" in capsys.readouterr().err


def test_a_look_and_a_picture(run: tuple[str, Path], table: Path) -> None:
    """The speller looks from each character; CTC has the self-attention of the encoder."""
    model, folder = run
    path = table.parent / "train0.wav"
    viewer = open_model(folder)
    seen = viewer.look(File(path.name, path.read_bytes()), 1000)
    assert [site for site in seen.sight.sites if site.startswith("listener.encoder")]
    assert ("speller" in seen.sight.sites) == (model == "las-whisper-tiny")
    site = seen.sight.sites[-1]
    sides: Any = seen.tokens[site]
    keys = sides[1]
    assert isinstance(keys, Audio)
    places = seen.sight[site].shape[-1]
    assert places == -(-round(100 * read_sound(path).seconds) // 2)


def test_a_run_goes_on(run: tuple[str, Path], table: Path, tmp_path: Path) -> None:
    """All weights of a run, with its characters and new ones behind them."""
    model, folder = run
    more = write_table(tmp_path / "more", "more", ["ab", "d"], 3)
    learned = learn(recipe(tmp_path / "run", more, model, folder, 1, architecture=None), console=CONSOLE)
    old, new = (one.processor.writes.tokenizer for one in (foveate.load(folder), learned))
    assert len(new) == len(old) + 1
    assert learned.processor.reads.longest == foveate.load(folder).processor.reads.longest
    assert learned.processor.writes.frequent in ("ab", "d")


def test_the_listener_of_a_run_of_the_other_family(run: tuple[str, Path], table: Path, tmp_path: Path) -> None:
    (other,) = {*PRESETS} - {run[0]}
    sizes = {name: value for name, value in SMALL[other].items() if name != "listener"}
    learned = learn(
        recipe(tmp_path / "run", table, other, run[1], freeze=("listener",), architecture=sizes), console=CONSOLE
    )
    first, second = (one.model.listener.state_dict() for one in (foveate.load(run[1]), learned))
    assert first.keys() == second.keys()
    assert all(torch.equal(value, second[name]) for name, value in first.items())


def test_what_cannot_be(run: tuple[str, Path], whisper: Path, table: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"and las do not both listen as a Whisper does: --model las-whisper-tiny"):
        make_recipe("transcribe", model="las", start=whisper, data=table, out=tmp_path)
    with pytest.raises(UserError, match="resnet20 is a resnet, but the listener must be the preset of a Whisper"):
        foveate.create("las-whisper-tiny", bands=80, vocabulary=7, listener="resnet20")
    with pytest.raises(UserError, match="pyramids does nothing where listener is 'whisper-tiny'"):
        foveate.create("las-whisper-tiny", bands=80, vocabulary=7, pyramids=1, device="meta")
    with pytest.raises(SystemExit) as ended:
        main(["export", str(run[1]), "--out", str(tmp_path / "out")])
    assert ended.value.code == 2


def test_from_nothing(table: Path, tmp_path: Path) -> None:
    """Sounds are read in the same way, as short as they are."""
    sizes = {"width": 12, "heads": 3, "feedforward": 11, "encoder_layers": 1}
    learned = learn(
        recipe(tmp_path / "run", table, PRESETS[1], None, 1, architecture={"listener": sizes}), console=CONSOLE
    )
    assert learned.learned_from is not None
    assert learned.processor.reads.longest == max(one.seconds for one in learned.learned_from[0])
