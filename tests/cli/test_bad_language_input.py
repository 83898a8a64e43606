"""What a user may get wrong with language models, of foveate's and of others, and the one line that says so."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import tiny_bert
import tiny_prose
from public_models import folder_of, word_tokenizer
from safetensors.torch import load_file, save_file

import foveate
from foveate.cli import main
from foveate.errors import UserError

Fails = Callable[..., str]
SIZES = [
    *("--architecture.width", "24", "--architecture.layers", "1", "--architecture.heads", "2", "--vocabulary", "90"),
    *("--steps", "2", "--average", "1", "--threads", "1"),
]
GPT = ["train", "language", "--model", "gpt-tiny", "--architecture.max-length", "31", "--max-length", "30", *SIZES]
BERT = ["train", "cloze", "--model", "bert-tiny", "--architecture.max-length", "31", "--max-length", "31", *SIZES]
KINDS = pytest.mark.parametrize("command", [GPT, BERT], ids=["language", "cloze"])


def arguments(*parts: object) -> list[str]:
    return [str(part) for part in parts]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return tiny_prose.write_files(tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="module")
def author(files: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GPT with 31 learned positions."""
    folder = tmp_path_factory.mktemp("runs") / "gpt"
    main(arguments(*GPT, "--data", *files, "--validation-examples", 5, "--batch", 256, "--out", folder))
    return folder


@pytest.fixture
def gpt2(tmp_path: Path) -> Path:
    folder, _ = folder_of("gpt2", tmp_path / "gpt2")
    word_tokenizer().save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture
def filler(tmp_path: Path) -> Path:
    return tiny_bert.write_folder(tmp_path / "filler", "BertForMaskedLM")


def second_fails(capsys: pytest.CaptureFixture, folder: Path, *texts: str) -> str:
    """What is told of the second text, which cannot be answered: the first one is."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as caught:
        main(arguments("run", folder, *texts))
    out, err = capsys.readouterr()
    assert caught.value.code == UserError.status
    first, second = out.splitlines()
    assert (bool(first), second) == (True, "")
    assert err.startswith("foveate: ")
    return err.removeprefix("foveate: ").removesuffix("\n")


def test_a_beginning_that_is_longer_than_the_positions(author: Path, fails: Fails, tmp_path: Path, capsys) -> None:
    """With the start token 31 are read."""
    encode = foveate.load(author).processor.reads.tokenizer.encode
    lengths = {len(encode(["h" * count])[0]): "h" * count for count in range(1, 99)}
    main(arguments("run", author, lengths[30]))
    assert capsys.readouterr().out.strip()
    for long, beginning, taken in ((lengths[31], "'hhh", "32"), ("q " * 99, "'q q q ", "1")):
        told = second_fails(capsys, author, "The ship", long)
        assert told.startswith(beginning)
        assert f" takes {taken}" in told
        assert told.endswith(" positions, but the model learned only 31")
    assert "positions, but the model learned only 31" in fails("look", author, "q " * 99, "--out", tmp_path / "a.html")


def test_a_text_that_a_public_model_cannot_read(gpt2: Path, fails: Fails, tmp_path: Path, capsys) -> None:
    told = second_fails(capsys, gpt2, "the", "lamp " * 38)
    assert told.startswith("'lamp lamp ")
    assert told.endswith("takes 38 positions, but the model learned only 37")
    for name in ("config.json", "generation_config.json"):
        values = json.loads((gpt2 / name).read_text())
        (gpt2 / name).write_text(json.dumps(values | {"bos_token_id": None}))
    told = second_fails(capsys, gpt2, "the", "")
    assert told == "an empty text has no next token, and this model has no start token"
    assert fails("look", gpt2, "", "--out", tmp_path / "a.html") == "the text is empty: there is nothing to look at"


def test_masks(filler: Path, fails: Fails, capsys: pytest.CaptureFixture) -> None:
    """None is a mistake, several are filled in."""
    told = second_fails(capsys, filler, "the [MASK]", "the film")
    assert told == "'the film' has no [MASK]: write it where a word is to be filled in"
    main(arguments("run", filler, "the [MASK] was [MASK] [MASK]"))
    assert capsys.readouterr().out.count("\t") == 3


def test_a_tokenizer_with_more_tokens_than_embeddings(gpt2: Path, filler: Path, fails: Fails, tmp_path: Path) -> None:
    tokenizer = word_tokenizer()
    tokenizer.add_tokens(["more"])
    tokenizer.save(str(gpt2 / "tokenizer.json"))
    words = (filler / "vocab.txt").read_text()
    (filler / "vocab.txt").write_text(f"{words}more\n")
    count = len(words.split())
    for folder, entries in ((gpt2, 53), (filler, count)):
        told = fails("run", folder, "the [MASK] more")
        assert told.startswith(f"the tokenizer has a token {entries}, but the model embeddings for {entries} only")


@pytest.mark.parametrize("kind", ["gpt2", "filler"])
@pytest.mark.parametrize(
    ("named", "message"),
    [
        (["FooLM"], "{} is a FooLM; foveate runs "),
        ("FooLM", "{}/config.json: architectures is 'FooLM', but must be a list"),
        ([5], "{}/config.json: architectures is (5,), but must be a list"),
    ],
)
def test_architectures(kind: str, named: object, message: str, request: pytest.FixtureRequest, fails: Fails) -> None:
    folder = request.getfixturevalue(kind)
    values = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(values | {"architectures": named}))
    for verb in (("run",), ("eval",), ("export", "--out", folder / "other")):
        assert fails(*verb, folder, *(["the"] if verb == ("run",) else [])).startswith(message.format(folder))


def test_an_adapter_alone(tmp_path: Path, fails: Fails) -> None:
    (tmp_path / "adapter_config.json").write_text("{}")
    for command in (("run", tmp_path, "the"), ("look", tmp_path, "the", "--out", tmp_path / "a.html")):
        assert fails(*command) == f"{tmp_path}/adapter_config.json does not name its base model"


@pytest.mark.parametrize("verb", ["run", "look"])
def test_shards_that_are_not_whole(gpt2: Path, verb: str, fails: Fails, tmp_path: Path) -> None:
    state = load_file(gpt2 / "model.safetensors")
    (gpt2 / "model.safetensors").unlink()
    parts = {name: f"model-{1 + number % 2}.safetensors" for number, name in enumerate(sorted(state))}
    for part in set(parts.values()):
        save_file({name: state[name] for name in parts if parts[name] == part}, gpt2 / part, {"format": "pt"})
    index = gpt2 / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": parts}))
    command = (verb, gpt2, "the", *(["--out", tmp_path / "a.html"] if verb == "look" else []))
    second = gpt2 / "model-2.safetensors"
    content = second.read_bytes()
    for size in (0, 5, len(content) // 2):
        second.write_bytes(content[:size])
        assert fails(*command).startswith(f"{second} is truncated or damaged ({size:,} bytes): ")
    second.unlink()
    assert fails(*command).startswith(f"{gpt2} lacks model-2.safetensors of the 2 files that its {index.name} names")
    index.write_text(index.read_text()[:50])
    assert fails(*command).startswith(f"{index} is damaged: ")


@KINDS
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"The keeper lit the lamp.", "a.txt has 1 passages, too few to hold some out; give --validation FILE"),
        (b"A lamp.\n\nno\xebl\n", "{} is not UTF-8: see byte 11 (line 3); save it as UTF-8, with iconv for instance"),
        (b"A lamp.\n\nno\xc3", "{} is not UTF-8: see byte 11 (line 3)"),
        (b"\n\n", "a.txt: there is no text in it"),
        (b"A lamp.\n\nno\0l\n", "line 3 of {} has a NUL byte"),
    ],
)
def test_text(command: list[str], content: bytes, message: str, fails: Fails, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    assert fails(*command, "--data", path, "--out", tmp_path / "run").startswith(message.format(path))
    assert not (tmp_path / "run").exists()


@KINDS
def test_text_that_changed(command: list[str], files: list[Path], fails: Fails, tmp_path: Path) -> None:
    """A training goes on with the text that it began with, or not at all."""
    path = Path(shutil.copy(files[0], tmp_path / "a.txt"))
    command = arguments(*command, "--data", path, "--out", tmp_path / "run")
    main(command)
    path.write_text(path.read_text() + "\n\nOne more.\n")
    told = fails(*command, "--steps", 4)
    assert told.startswith(f"{tmp_path / 'run'} has a training that started with another {path}: restore it, or train")


def test_folders_that_cannot_be_written(author: Path, files: list[Path], fails: Fails, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for command in ((*GPT, "--data", *files), (*BERT, "--data", *files), ("export", author)):
        assert fails(*command, "--out", file / "run") == f"cannot write in {file / 'run'}: {file} is not a folder"


@pytest.mark.skipif(os.geteuid() == 0 and not Path("/proc/self").exists(), reason="the user may write everywhere")
def test_folders_that_the_system_protects(author: Path, files: list[Path], fails: Fails, tmp_path: Path) -> None:
    place = Path("/proc") if os.geteuid() == 0 else tmp_path / "closed"
    if place != Path("/proc"):
        place.mkdir(mode=0o500)
    for command in ((*GPT, "--data", *files), ("export", author)):
        assert fails(*command, "--out", place / "run") == f"cannot write in {place / 'run'}: {place} does not allow it"
