"""Files of others stay, whatever a command is told to write to; what was answered is shown; what changed is told."""

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from small import FLAGS, Trained

from foveate.cli import main
from foveate.errors import UserError
from foveate.forms.written import WrittenAnswer

Fails = Callable[..., str]

FEW = [*FLAGS, "--steps", "2"]

NARROW = ["--architecture.width", "16", "--architecture.embedding", "16"]


def train(data: Path, out: Path, *arguments: object, task: str = "translate") -> list[object]:
    return ["train", task, "--data", data, "--out", out, *arguments]


def run(arguments: list[object]) -> None:
    main([str(argument) for argument in arguments])


def with_stdin(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    reader = io.BufferedReader(io.BytesIO(content))  # type: ignore[arg-type]
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=reader, isatty=lambda: False))


@pytest.mark.parametrize(
    "name", ["metrics.jsonl", "model.safetensors", "source_tokenizer.json", "rules.json", "config.json"]
)
def test_a_training_replaces_no_file_of_others(data: Path, tmp_path: Path, fails: Fails, name: str) -> None:
    (tmp_path / name).write_text("mine")
    (tmp_path / "notes.txt").write_text("mine too")
    assert fails(*train(data, tmp_path, *FEW)).startswith(f"{tmp_path} has {name}, which foveate did not write")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, "notes.txt"])


def test_a_training_that_was_killed_before_its_first_checkpoint_begins_anew(data: Path, tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / ".lock").touch()
    (tmp_path / "metrics.jsonl").write_text('{"step": 1}\n')
    (tmp_path / "notes.txt").write_text("mine")
    run(train(data, tmp_path, *FEW))
    assert (tmp_path / "model.safetensors").exists()


def test_a_place_that_cannot_be_written_to_is_told_before_text_is_read(data: Path, tmp_path: Path, fails) -> None:
    assert fails(*train(tmp_path / "none.tsv", data / "run")).endswith(f"{data} is not a folder")
    if Path("/proc/self").exists():  # where nobody may write
        assert fails(*train(tmp_path / "none.tsv", Path("/proc/run"))).endswith("/proc does not allow it")
    if os.geteuid():  # the superuser may write anywhere else
        tmp_path.chmod(0o500)
        assert fails(*train(tmp_path / "none.tsv", tmp_path / "run")).endswith(f"{tmp_path} does not allow it")


def test_what_can_be_read_only_once_is_no_text_to_learn_from(tmp_path: Path, fails: Fails) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert fails(*train(tmp_path / "pipe", tmp_path / "run")).startswith(f"{tmp_path / 'pipe'} can be read only once")


def test_what_a_training_is_resumed_with(data: Path, tmp_path: Path, fails: Fails) -> None:
    """The task and the model are told before what follows from them; changed text as such."""
    text, out = tmp_path / "pairs.tsv", tmp_path / "run"
    text.write_bytes(data.read_bytes())
    run(train(text, out, *FEW))
    match = train(text, out, "--vocabulary", "120", task="match")
    assert fails(*match) == f"{out} has a training of another task, translate: use that, or train in another folder"
    other = [*FEW, "--model", "rnn"]
    assert fails(*train(text, out, *other)).startswith(f"{out} has a training with model 'rnn-attentive', not 'rnn'")
    text.write_bytes(data.read_bytes() + b"x\ty\n")
    told = f"{out} has a training that started with another {text}: restore it, or train in another folder"
    assert fails(*train(text, out, *FEW)) == told
    text.unlink()
    assert fails(*train(text, out, *other)).startswith(f"{out} has a training with model 'rnn-attentive', not 'rnn'")
    assert fails(*train(text, out, *FEW)) == f"there is no file {text}"


def test_a_config_for_another_model(data: Path, tmp_path: Path, fails: Fails, capsys: pytest.CaptureFixture) -> None:
    """Its architecture is left out, and that is said; one that names no model is that of the flag's."""
    config = tmp_path / "recipe.toml"
    config.write_text("[architecture]\nwidht = 8\n")
    flags = ["--config", config, "--model", "rnn", "--help"]
    assert fails(*train(data, tmp_path / "run", *flags)).startswith("unknown field in rnn 'widht'; did you mean width")
    config.write_text('model = "transformer-tiny"\n[architecture]\nheads = 8\n')
    run(train(data, tmp_path / "run", *flags))
    assert capsys.readouterr().err == f"{config}: its architecture is of transformer-tiny, and left out for rnn\n"


def test_a_model_replaces_a_link_and_not_what_it_leads_to(data: Path, tmp_path: Path) -> None:
    """Which may be another run's model."""
    run(train(data, tmp_path / "one", *FEW))
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    before = (tmp_path / "one" / "model.safetensors").read_bytes()
    (tmp_path / "two" / "model.safetensors").unlink()
    (tmp_path / "two" / "model.safetensors").symlink_to(tmp_path / "one" / "model.safetensors")
    run(train(data, tmp_path / "two", *FLAGS, "--steps", "4"))
    assert (tmp_path / "one" / "model.safetensors").read_bytes() == before
    assert (tmp_path / "two" / "model.safetensors").read_bytes() != before


def test_a_page_replaces_no_device_no_link_and_no_model(trained: Trained, tmp_path: Path, fails: Fails) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", Path(os.devnull)):
        assert fails("look", trained.folder, "red cat", "--out", place).endswith("it is not a regular file")
    for part in ("config.json", "model.safetensors"):
        told = fails("look", trained.folder, "red cat", "--out", trained.folder / part)
        assert told == f"{trained.folder / part} is a part of the model: name another --out"
    (tmp_path / "link.html").symlink_to("page.html")
    run(["look", trained.folder, "red cat", "--out", tmp_path / "link.html"])
    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")


def test_lines_before_a_bad_one_are_answered(trained: Trained, monkeypatch, capsys: pytest.CaptureFixture) -> None:
    with_stdin(monkeypatch, b"red cat\nred dog\n\xff\nred bird\n")
    with pytest.raises(SystemExit):
        run(["run", trained.folder])
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == "rouge chat"
    assert len(out.splitlines()) == 2
    assert "is not UTF-8: see byte 16 (line 3)" in err


def test_answers_replace_nothing_that_is_read(trained: Trained, tmp_path: Path, fails: Fails) -> None:
    """Neither text, also in a folder, nor the model; a measurement that fails leaves no file."""
    texts = tmp_path / "texts"
    texts.mkdir()
    (texts / "emma.txt").write_text("mine")
    for place, what in (
        (texts / "emma.txt", "what the model is measured on"),
        (texts / "new.txt", "what the model is measured on"),
        (trained.folder / "model.safetensors", "a part of the model"),
    ):
        found = fails("eval", trained.folder, "--data", texts, "--output", place)
        assert found == f"{place} is {what}: name another --output"
    assert fails("eval", trained.folder, "--data", tmp_path / "none", "--output", tmp_path / "answers.txt")
    assert [path.name for path in texts.iterdir()] == ["emma.txt"]
    assert not (tmp_path / "answers.txt").exists()
    assert fails("look", trained.folder, texts / "emma.txt", "--out", texts / "emma.txt").endswith("name another --out")
    assert (texts / "emma.txt").read_text() == "mine"


def test_a_text_for_which_there_are_no_positions(data: Path, tmp_path: Path, fails: Fails, monkeypatch, capsys) -> None:
    """Convolutions learn positions: the others are answered."""
    sizes = ["--architecture.width", "16", "--architecture.max-length", "140", "--vocabulary", "120", "--threads", "1"]
    run(train(data, tmp_path / "run", "--model", "convolutional-tiny", *sizes, "--steps", "2"))
    capsys.readouterr()
    with_stdin(monkeypatch, b"red cat\n" + b"red " * 200 + b"\nred dog\n")
    with pytest.raises(SystemExit) as caught:
        run(["run", tmp_path / "run", "--json"])
    out, err = capsys.readouterr()
    assert caught.value.code == UserError.status
    assert [("text" in json.loads(line)) for line in out.splitlines()] == [True, False, True]
    assert err.startswith("foveate: 'red red red ")
    assert err.endswith("positions, but the model learned only 140\n")


def test_a_terminal_obeys_no_name_of_a_folder(tmp_path: Path, trained: Trained, fails: Fails) -> None:
    folder = tmp_path / "run"
    shutil.copytree(trained.folder, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"task": "\x1b]0;x\x07"}))
    assert "\\x1b]0;x\\x07" in fails("run", folder, "x")


def test_pairs_around_a_bad_one_are_judged(data: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    run(train(data, tmp_path / "run", "--vocabulary", "120", "--steps", "2", "--threads", "1", task="match"))
    capsys.readouterr()
    with_stdin(monkeypatch, b"red cat\trouge chat\n\n" + b"no tab " * 20 + b"\nred\trouge\n")
    with pytest.raises(SystemExit) as caught:
        run(["run", tmp_path / "run"])
    out, err = capsys.readouterr()
    assert caught.value.code == UserError.status
    assert [line.partition("\t")[2] for line in out.splitlines()] == ["red cat\trouge chat", "", "", "red\trouge"]
    assert "foveate: 'no tab no tab " in err
    assert len(err) < 150


def test_what_does_not_attend_is_not_served(data: Path, tmp_path: Path, fails: Fails, capsys) -> None:
    run(train(data, tmp_path / "run", *[flag if flag != "rnn-attentive" else "rnn" for flag in FEW]))
    for verb in (["explore"], ["look", "--out", tmp_path / "look.html"]):
        name, *rest = verb
        assert fails(name, tmp_path / "run", *rest, *["red cat"][: len(rest)]) == (
            f"rnn from {tmp_path / 'run'} does not attend: there is nothing to see; "
            "presets of translate that do: rnn-bahdanau, rnn-luong, rnn-attentive"
        )
    message = fails("run", tmp_path / "run", "red cat", "--picture", tmp_path / "a.png")
    assert message == f"no picture to draw into {tmp_path / 'a.png'}: this model has no attention"


def test_baselines_are_of_the_text_that_was_learned(tmp_path: Path, capsys, monkeypatch) -> None:
    """Text of the same name in another folder is another text."""
    prose = "The cat sat on the mat. The dog ran to the cat.\n\n" * 40
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    (tmp_path / "here" / "prose.txt").write_text(prose)
    (tmp_path / "there" / "prose.txt").write_text("A boat sails. " * 50)
    (tmp_path / "test.txt").write_text(prose)
    monkeypatch.chdir(tmp_path / "here")
    flags: list[object] = ["--steps", "2", "--threads", "1", "--vocabulary", "100", *NARROW]
    (tmp_path / "check.txt").write_text(prose)
    flags += ["--validation", tmp_path / "check.txt"]
    run(train(Path("prose.txt"), tmp_path / "run", *flags, task="language"))
    (tmp_path / "check.txt").write_text("Changed, which no baseline reads.")
    capsys.readouterr()
    run(["eval", tmp_path / "run", "--data", tmp_path / "test.txt"])
    assert "trigram" in capsys.readouterr().out
    monkeypatch.chdir(tmp_path / "there")
    run(["eval", tmp_path / "run", "--data", tmp_path / "test.txt"])
    out = capsys.readouterr().out
    assert "trigram" not in out
    assert "no n-grams to compare with: prose.txt is not what the model was trained on" in out


def test_a_perplexity_that_no_number_holds_is_null(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Where words are not separated by spaces, a word has thousands of tokens."""
    (tmp_path / "prose.txt").write_text("".join(f"{'abcdefghij' * 60}{number}\n\n" for number in range(40)))
    flags = ["--steps", "1", "--threads", "1", "--tokens", "characters", *NARROW]
    run(train(tmp_path / "prose.txt", tmp_path / "run", *flags, "--max-length", "2000", task="language"))

    def refuse(name: str) -> None:
        raise ValueError(name)

    rows = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    validation = [json.loads(row, parse_constant=refuse).get("validation") for row in rows]
    assert [row["perplexity_per_word"] for row in validation if row] == [None]
    capsys.readouterr()
    run(["eval", tmp_path / "run", "--data", tmp_path / "prose.txt", "--json"])
    assert (
        json.loads(capsys.readouterr().out, parse_constant=refuse)["ways"]["rnn-language"]["perplexity_per_word"]
        is None
    )


def test_an_answer_that_an_encoding_lacks_is_told(trained: Trained, fails: Fails, monkeypatch) -> None:
    answer = [WrittenAnswer(text="café")]
    monkeypatch.setattr("foveate.tasks.translator.Translator.answer", lambda *_: answer)
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), "ascii"))
    assert fails("run", trained.folder, "coffee") == "'é' cannot be written in ascii: set PYTHONIOENCODING=utf-8"


def test_what_takes_too_much_memory_is_told(trained: Trained, fails: Fails, monkeypatch) -> None:
    def decode(*_: object) -> None:
        torch.empty(2**60)

    monkeypatch.setattr("foveate.tasks.translator.Translator.answer", decode)
    assert fails("run", trained.folder, "red cat").startswith("this takes more memory than there is; smaller sizes")


@pytest.mark.parametrize(
    ("shell", "status", "told"),
    [
        ("{foveate} run {run} 'red cat' >&-", 0, ""),
        ("PYTHONIOENCODING=ascii {foveate} train translate --data é.tsv", 2, "foveate: there is no file \\xe9.tsv"),
    ],
)
def test_a_standard_output_that_cannot_be_written_to(trained: Trained, shell: str, status: int, told: str) -> None:
    command = shell.format(foveate=f"{sys.executable} -m foveate", run=trained.folder)
    found = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=120)
    assert (found.returncode, found.stderr.strip()) == (status, told)
