"""What a user may get wrong, and the one line that says so; nothing is lost by it."""

import gzip
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import words
from small import FLAGS, Trained

from foveate.cli import main

Fails = Callable[..., str]


def train(*arguments: object) -> list[object]:
    return ["train", "translate", *arguments]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"a.txt": b"x\ny\nz\n", "b.txt": b"x\ny\n"},
            "{b.txt} has 2 lines but {a.txt} has 3: line 3 of a.txt is the first without a partner",
        ),
        (
            {"a.txt.gz": gzip.compress(b"x\n"), "b.txt": b"x\ny\n"},
            "{a.txt.gz} has 1 lines but {b.txt} has 2: line 2 of b.txt is the first without a partner",
        ),
        ({"a.tsv": b""}, "{a.tsv} is empty"),
        ({"a.txt": b"x\n", "b.txt": b""}, "{b.txt} is empty"),
        ({"a.tsv": b"\t\n\t \nx\t\n"}, "a.tsv: none of the 3 pairs has text on both sides"),
        (
            {"a.tsv": b"one\tun\nno\xebl\tx\n"},
            "{a.tsv} is not UTF-8: see byte 9 (line 2); save it as UTF-8, with iconv for instance",
        ),
        ({"a.tsv": b"a\tb\na\tb\tc\n"}, "{a.tsv}, line 2: 2 tabs, but a line must be source<TAB>target"),
        ({"a.tsv.gz": b"no gzip"}, "cannot read {a.tsv.gz}: Not a gzipped file (b'no')"),
        ({"a": b"1", "b": b"2", "c": b"3"}, "parallel text is one TSV file, or a source and a target file; 3 files"),
        ({"a.tsv": b"a\tb\n" * 19}, "a.tsv has 19 pairs, too few to hold some out; give --validation SRC TGT"),
    ],
)
def test_text(fails: Fails, tmp_path: Path, files: dict[str, bytes], message: str) -> None:
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        message = message.replace(f"{{{name}}}", str(tmp_path / name))
    paths = [tmp_path / name for name in files]
    assert fails(*train("--data", *paths, "--out", tmp_path / "run")).startswith(message)
    assert not (tmp_path / "run").exists()


def test_missing_text(fails: Fails, tmp_path: Path) -> None:
    assert fails(*train("--data", tmp_path / "a.tsv")) == f"there is no file {tmp_path / 'a.tsv'}"
    told = fails(*train("--data", tmp_path))
    assert told.startswith(
        f"there are no gettext catalogues (.mo or .po files) below {tmp_path}: text in two files is "
    )
    assert fails(*train()) == "nothing to learn from: name a source (see `foveate data`) or give --data SRC TGT"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trian"], "unknown command 'trian'; did you mean train"),
        (["train", "translat"], "unknown task 'translat'; did you mean translate"),
        (train("emojy"), "unknown source 'emojy'; did you mean emoji"),
        (train("emoji", "--to", "fx"), "unknown language of emoji 'fx'; did you mean fr"),
        (train("emoji", "--to", "en"), "emoji: source and target language are both 'en'"),
        (train("emoji", "--data", "DATA"), "both the source 'emoji' and files are given; choose one"),
        (train("--model", "transfomer-tiny"), "unknown model 'transfomer-tiny'; did you mean transformer-tiny"),
        (train("--model"), "--model needs a value"),
        (train("--modle", "rnn"), "unknown option --modle; did you mean --model?"),
        (train("--widht", "7"), "unknown option --widht; did you mean --"),
        (train("--architecture.widht", "7"), "unknown option --architecture.widht; did you mean --architecture.width"),
        (train("--training.steps", "7"), "unknown option --training.steps; did you mean --steps?"),
        (train("--zyzzyva"), "unknown option --zyzzyva; see foveate train translate --help"),
        (train("emoji", "fr"), "unexpected 'fr'; see foveate train translate --help"),
        (train("--steps", "many"), "--steps is 'many', but must be a whole number"),
        (train("--steps"), "--steps needs a value"),
        (train("--schedule", "cos"), "unknown --schedule 'cos'; did you mean cosine"),
        (train("--learning-rate", "-1"), "learning_rate is -1.0, but must be at least 0"),
        (train("--seed", "-1"), "seed is -1, but must be at least 0 and below 2 ** 63"),
        (train("--seed", str(2**63)), "seed is 9223372036854775808, but must be at least 0 and below 2 ** 63"),
        (train("--threads", "99999999999999"), "threads is 99999999999999, but must be at most 4096"),
        (["bench", "norms", "--threads", "99999999999999"], "threads is 99999999999999, but must be at most 4096"),
        (["bench", "norms", "--seed", str(2**63)], "seed is 9223372036854775808, but must be at least 0 and below"),
        (["run", "RUN", "caf\udce9"], "the text 'caf\\udce9' is not UTF-8"),
        (["look", "RUN", "caf\udce9", "--out", "a.html"], "the text 'caf\\udce9' is not UTF-8"),
        (train("--device", "hpu"), "device 'hpu' cannot be used on this machine: "),
        (train("--decoding.width", "0"), "the width of a beam must be at least 1, not 0"),
        (train("--vocabulary", "9" * 20), f"vocabulary is {int('9' * 20):,}, but can be at most 9,007,199,254,740,992"),
        (train("--vocabulary", str(10**10)), "vocabulary is 10,000,000,000, but can be at most 10,000,000"),
        (train("--decoding.width", str(10**9)), "the width of a beam can be at most 1,000, not 1,000,000,000"),
        (train("--out", ""), "out is empty, or the current folder: name one for the training alone"),
        (train(__file__), f"'{__file__}' is not a text by name; to learn from the file, give --data {__file__}"),
        (train("--data", "fr.po"), "fr.po is a catalogue: give the folder that it lies in"),
        (
            train("--architecture.positions", "learned", "--architecture.max-length", "128"),
            "max_length is 128, and a start or end token takes a place too, but the model learns only 128 positions",
        ),
        (train("--device", "meta"), "device 'meta' cannot be used on this machine"),
        (["bench", "teacher-forcing", "--vocabulary", "4"], "vocabulary is 4, but must be at least 5"),
        (["bench", "norms", "--learning-rates", "-1"], "learning_rates is -1.0, but must be at least 0"),
        (train("--max-length", "0"), "max_length is 0, but must be at least 1"),
        (train("--architecture.width", "130"), "width 130 is not a multiple of 4 heads"),
        (train("--architecture.heads", "0"), "heads is 0, but must be at least 1"),
        (train("--architecture.dropout", "1.5"), "dropout is 1.5, but must be at least 0 and below 1"),
        (train("--model", "rnn", "--architecture.layers", "0"), "layers is 0, but must be at least 1"),
        (train("--device", "cuda:77"), "device 'cuda:77' cannot be used on this machine"),
        (
            train("--data", "DATA", "--vocabulary", "10"),
            "a vocabulary of 10 entries is too small: the characters alone",
        ),
        (train("--data", "DATA", "--batch", "50"), "a batch of 50 tokens cannot hold one sentence of 128"),
        (train("--config", "missing.toml"), "cannot read missing.toml: No such file or directory"),
        (["run"], "Missing from foveate run: RUN"),
        (
            ["run", "RUN", "-no, wait"],
            "unexpected '-no, wait'; text that begins with a dash goes behind --: ",
        ),
        (["run", "missing", "x"], "there is no folder missing, nor trained weights of this name (efficientnet-lite0, "),
        (["run", "RUN", "x", "--output", "a.txt"], "answers are written to .csv, .tsv and .jsonl files, not to a.txt"),
        (["run", "RUN", "--file", "a.csv", "--output", "a.csv"], "a.csv is what the model is to read"),
        (
            ["run", "RUN", "x", "--decoding.methd", "greedy"],
            "unknown option --decoding.methd; did you mean --decoding.method?",
        ),
        (["run", "RUN", "x", "--decoding.method", "greed"], "unknown --decoding.method 'greed'; did you mean greedy"),
        (["run", "RUN", "x", "--decoding.n-best", "9"], "n_best must be from 1 to the beam width, 5; it is 9"),
        (["run", "RUN", "x", "--device", "cuda:77"], "device 'cuda:77' cannot be used on this machine"),
        (["run", "RUN", "x", "--file", "DATA"], "both inputs and the file "),
        (["run", "RUN", "--file", "missing.txt"], "there is no file missing.txt"),
        (["run", "RUN", "cat", "--picture", "a.xyz"], "a.xyz: cannot write a picture as '.xyz'; known: "),
        (
            ["run", "RUN", "cat", "--picture", "missing/a.png"],
            "could not write missing/a.png: there is no folder missing",
        ),
        (["run", "RUN", "", "--picture", "a.png"], "no picture to draw into a.png: there was nothing to answer"),
        (["eval", "RUN", "--data", "DATA", "--groups", "0"], "groups is 0, but must be at least 1"),
        (
            ["eval", "RUN", "--data", "DATA", "--output", "missing/a"],
            "could not write missing/a: there is no folder missing",
        ),
        (["eval", "RUN", "--data", "DATA", "--output", "DATA"], "DATA is what the model is measured on: name another"),
        (["eval", "smollm"], "there is no folder smollm, nor trained weights of this name "),
        (["models", "captoin"], "unknown task, family or preset 'captoin'; did you mean caption"),
        (["models", "caption", "x"], "unexpected 'x'; see foveate models --help"),
        (["models", "--vocabulary", "0"], "src_vocab is 0, but must be at least 1"),
        (["look", "--weights", "a.npz", "--tokenz", "a b"], "unknown option --tokenz; did you mean --"),
        (["data", "--emoji"], "unknown option --emoji; see foveate data --help"),
        (["demo", "--steps", "0"], "steps is 0, but must be at least 1"),
        (["demo", "--from-language", "xx"], "unknown language of emoji 'xx'; known: ar, de, en"),
    ],
    ids=lambda value: None if isinstance(value, str) else " ".join(value),
)
def test_arguments(
    fails: Fails, trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    places = {"RUN": trained.folder, "DATA": trained.data}
    message = message.replace("DATA is", f"{trained.data} is")
    assert fails(*(places.get(argument, argument) for argument in arguments)).startswith(message)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model = 'rn'", "unknown model 'rn'; did you mean rnn"),
        ("[training]\nstep = 5", "unknown field in {path} 'step'; did you mean training.steps"),
        ("[training]\nsteps = 'many'", "{path}: training.steps is 'many', but must be a whole number"),
        ("\ufeffmodel = 'rn'", "unknown model 'rn'; did you mean rnn"),
        ("[architecture]\nwidht = 5", "unknown field in transformer-tiny 'widht'; did you mean width"),
        ("architecture = 5", "{path}: architecture is 5, but must be a table of fields"),
        ("training = 5", "{path}: training is 5, but must be a table of fields"),
        ("[training", "{path} is damaged: Expected ']' at the end of a table declaration"),
    ],
)
def test_a_config_file(fails: Fails, tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text(text)
    assert fails(*train("--config", path)).startswith(message.replace("{path}", str(path)))


def test_text_from_flags_stands_for_that_of_a_config_file(fails: Fails, tmp_path: Path) -> None:
    """Whichever of the two kinds of text each of them is."""
    path = tmp_path / "recipe.toml"
    path.write_text("[examples]\nsource = 'emoji'")
    assert fails(*train("--config", path, "--data", "missing.tsv")) == "there is no file missing.tsv"
    path.write_text("[examples]\ndata = 'missing.tsv'")
    assert fails(*train("--config", path, __file__)).startswith(f"'{__file__}' is not a text by name")
    path.write_text("[examples]\nsource = 'emoji'\ndata = 'missing.tsv'")
    assert fails(*train("--config", path)).startswith("both the source 'emoji' and files are given; choose one")


def test_config_files_that_are_none(fails: Fails, tmp_path: Path) -> None:
    damaged = [b"{", b"\xff", b"[" * 200_000]
    for content, message in [(b"[5]", "holds no table of settings"), *((one, "is damaged: ") for one in damaged)]:
        (tmp_path / "recipe.json").write_bytes(content)
        assert fails(*train("--config", tmp_path / "recipe.json")).startswith(f"{tmp_path / 'recipe.json'} {message}")


def test_a_model_that_no_machine_here_can_train(fails: Fails, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("a b c\n" * 9)
    told = fails(
        "train", "language", "--data", tmp_path / "text.txt", "--model", "gpt3-175b", "--out", tmp_path / "run"
    )
    assert told.startswith(
        "training 173,986,713,600 parameters takes 2,784 GB (weights, gradients and AdamW's moments)"
    )
    assert re.search(r"this machine has \d+: use a smaller model, or shards on at least \d+ processes with", told)


def test_a_closed_standard_input(
    fails: Fails, trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert fails("run", trained.folder).startswith("no text: standard input is closed, and neither inputs nor a")
    told = fails("look", trained.folder, "-", "--out", tmp_path / "look.html")
    assert told == "nothing to look at: standard input is closed"


@pytest.fixture
def copy(trained: Trained, tmp_path: Path) -> Path:
    return shutil.copytree(trained.folder, tmp_path / "copy")


def test_a_run_folder_that_is_damaged(fails: Fails, copy: Path) -> None:
    weights = copy / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-100])
    for verb in ("run", "eval"):
        assert fails(verb, copy).startswith(f"{weights} is truncated or damaged ({len(whole) - 100:,} bytes)")
    weights.unlink()
    assert fails("run", copy, "cat").startswith(f"{copy} has no model.safetensors; it holds ")
    (copy / "config.json").write_text('{"format": "foveate/2"')
    assert fails("run", copy, "cat").startswith(f"{copy / 'config.json'} is damaged: ")
    shutil.rmtree(copy)
    copy.mkdir()
    assert fails("run", copy, "cat") == f"{copy} has no config.json: no model was ever saved there; it is empty"


@pytest.mark.parametrize(
    "arguments",
    [("run", "nosuch", "x", "--probabilities"), ("eval", "nosuch", "--details"), ("serve", "nosuch", "--top")],
)
def test_a_missing_folder_is_told_before_an_option_of_its_task(fails: Fails, arguments: tuple[str, ...]) -> None:
    """Whose options are not known without the folder."""
    assert fails(*arguments).startswith("there is no folder nosuch, ")
    assert fails(arguments[0], "--nosuch").startswith("unknown option --nosuch; ")


def test_shapes_that_do_not_fit(fails: Fails, copy: Path) -> None:
    config = json.loads((copy / "config.json").read_text())
    config["architecture"]["embedding"] = 31
    (copy / "config.json").write_text(json.dumps(config))
    message = fails("run", copy, "cat")
    assert "'source_embedding.weight' is (99, 32) there, but (99, 31) in the model: probably config.json" in message


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ({"reads": {"max_length": "x"}}, "config.json: reads.max_length is 'x', but must be a whole number"),
        ({"examples": {"source": 5}}, "config.json: examples.source is 5, but must be a text"),
        ({"examples": 5}, "config.json: examples is 5, but must be a table of fields"),
    ],
)
def test_a_recipe_with_something_else_in_it(fails: Fails, copy: Path, trained: Trained, text: Any, told: str) -> None:
    config = json.loads((copy / "config.json").read_text())
    ((part, own),) = text.items()
    own = config["recipe"][part] | own if isinstance(own, dict) else own
    (copy / "config.json").write_text(json.dumps({**config, "recipe": {**config["recipe"], part: own}}))
    assert fails("eval", copy, "--data", trained.data) == f"{copy}/{told}"


def test_a_recipe_that_was_taken_out(fails: Fails, copy: Path, trained: Trained) -> None:
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, "recipe": {}}))
    told = fails("eval", copy, "--data", trained.data)
    assert told == "config.json has no recipe.examples: what was trained, and on what, is lost"


def test_a_training_that_another_one_would_spoil(fails: Fails, trained: Trained) -> None:
    before = {path.name: path.read_bytes() for path in trained.folder.glob("*.*")}
    message = fails(*train("--data", trained.data, "--out", trained.folder, *FLAGS, "--architecture.width", "46"))
    assert "has a training with architecture.width 48, not 46: resume it with 48, or train in another folder" in message
    assert {path.name: path.read_bytes() for path in trained.folder.glob("*.*")} == before


def test_no_space_left(fails: Fails, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """The second checkpoint meets a full disk: the first survives, and the same command goes on from it."""
    command = [str(part) for part in train("--data", data, "--out", tmp_path / "run", *FLAGS)]
    command += ["--steps", "6", "--save-every", "3"]
    with monkeypatch.context() as patch:
        from foveate import tensor_files

        save = tensor_files.save_file

        def full(*arguments: object) -> None:
            if Path(str(arguments[1])).name == "step-00000006.safetensors":
                raise OSError(28, "No space left on device")
            save(*arguments)

        patch.setattr(tensor_files, "save_file", full)
        checkpoints = tmp_path / "run" / "checkpoints"
        assert fails(*command) == (
            f"could not write step-00000006.safetensors in {checkpoints}: No space left on device; "
            "step-00000003.safetensors is intact: run the same command to resume from it"
        )
    main(command)
    assert "resuming from step 3" in capsys.readouterr().err


def test_empty_and_over_long_sentences_are_counted_and_told(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path = tmp_path / "pairs.tsv"
    lines = [f"{source}\t{target}" for source, target in words.pairs(60, 1)]
    long = " ".join([*words.WORDS] * 13)
    path.write_text("\n".join([*lines[:5], "red\t", "\t", *lines[5:], *(f"{long}\t{word}" for word in "abcd")]) + "\n")
    main([str(part) for part in train("--data", path, "--out", tmp_path / "run", *FLAGS, "--steps", "1")])
    told = capsys.readouterr().err.splitlines()
    assert (
        told[0] == "pairs.tsv: 52 pairs, 2 left out for an empty side (first on line 6); "
        "10 share a sentence with others, on the same side as these"
    )
    assert told[2] == "pairs.tsv: 4 of 52 pairs left out for more than 128 tokens on a side"
