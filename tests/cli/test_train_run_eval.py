"""The whole way on the command line: train on a file, use the model, measure it, draw where it looked."""

import gzip
import io
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import words
from small import FLAGS, Trained

import foveate
from foveate.cli import main
from foveate.inference.cpu import OneDNNInt8Linear
from foveate.metrics.translation import quality, quality_by_length
from foveate.nn import cpu_has_bfloat16

SENTENCES = ["red cat", "big house", "small green sea"]
TRANSLATIONS = ["rouge chat", "grand maison", "petit verte mer"]


def told(capsys: pytest.CaptureFixture, *arguments: object) -> tuple[list[str], str]:
    """The lines of a command's output, and what it says on stderr."""
    capsys.readouterr()
    main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return out.splitlines(), err


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return foveate.load(folder).model.state_dict()


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_train(trained: Trained) -> None:
    """Progress goes to stderr, with what the text holds; the last line says what to do next."""
    lines = trained.err.splitlines()
    assert lines[:3] == [
        "pairs.tsv: 508 pairs; 211 share a sentence with others, on the same side as these",
        "pairs.tsv, held out: 92 pairs",
        "pairs.tsv: 0 of 508 pairs left out for more than 128 tokens on a side",
    ]
    assert lines[-1].startswith("kept the weights of step 200; step 200: bleu ")
    look = f'or to see where it looks: foveate look {trained.folder} "..."'
    assert trained.out == f'saved in {trained.folder}; try: foveate run {trained.folder} "...", {look}\n'


def test_a_finished_training_is_only_saved_again(trained: Trained, capsys: pytest.CaptureFixture) -> None:
    before = weights(trained.folder)
    _, err = told(capsys, "train", "translate", "--data", trained.data, "--out", trained.folder, *FLAGS, "--steps", 200)
    assert "resuming from step 200" in err
    assert same(weights(trained.folder), before)


def test_run_arguments(trained: Trained, capsys: pytest.CaptureFixture) -> None:
    assert told(capsys, "run", trained.folder, *SENTENCES) == (TRANSLATIONS, "")


def test_run_as_json(trained: Trained, capsys: pytest.CaptureFixture) -> None:
    lines, err = told(capsys, "run", trained.folder, *SENTENCES, "--json")
    found = [json.loads(line) for line in lines]
    assert ([one["input"] for one in found], [one["text"] for one in found]) == (SENTENCES, TRANSLATIONS)
    assert all(one["log_prob"] < 0 for one in found)
    assert err == ""


def test_text_that_begins_with_a_dash_goes_behind_two(trained: Trained, capsys: pytest.CaptureFixture) -> None:
    as_it_is = told(capsys, "run", trained.folder, " -red cat")
    assert told(capsys, "run", trained.folder, "--", "-red cat") == as_it_is


def test_run_standard_input(trained: Trained, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line of output for each of input; empty lines stay, and are counted."""

    class Stdin:
        buffer = io.BytesIO(b"red cat\n\n  big house \r\n")

        def isatty(self) -> bool:
            return False

    monkeypatch.setattr("sys.stdin", Stdin())
    out, err = told(capsys, "run", trained.folder)
    assert out == ["rouge chat", "", "grand maison"]
    assert err == "1 empty line stays empty\n"


def test_run_answers_line_by_line_in_a_terminal(
    trained: Trained, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = []

    class Lines:
        def __iter__(self):
            for line in (b"red cat\n", b"big house\n"):
                yield line
                answered.append(capsys.readouterr().out)

    class Stdin:
        buffer = Lines()

        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Stdin())
    told(capsys, "run", trained.folder)
    assert answered == ["rouge chat\n", "grand maison\n"]


def test_run_prompts_at_a_terminal(
    trained: Trained, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = iter(["red cat", "big house"])

    def answer(prompt: str) -> str:
        assert prompt == "> "
        try:
            return next(typed)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", answer)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True, buffer=io.BytesIO()))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    out, err = told(capsys, "run", trained.folder)
    assert out == ["rouge chat", "grand maison"]
    assert err == "Type an input and press Enter; Ctrl-D ends.\n\n"


def test_run_file(trained: Trained, capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    """More lines than are translated together; gzip as well."""
    path = tmp_path / "sentences.txt.gz"
    path.write_bytes(gzip.compress(("\n".join(SENTENCES * 401) + "\n").encode()))
    out, err = told(capsys, "run", trained.folder, "--file", path, "--decoding.method", "greedy")
    assert len(out) == 1203
    assert out == out[:3] * 401
    assert err == ""


def test_run_n_best_and_long_lines(trained: Trained, capsys: pytest.CaptureFixture) -> None:
    long = " ".join([*words.WORDS] * 13)
    out, err = told(capsys, "run", trained.folder, "red cat", long, "--decoding.n-best", 3)
    assert [line.count("\t") for line in out] == [2, 2]
    assert out[0].split("\t")[0] == "rouge chat"
    assert err == "1 lines are longer than any the model learned from; they may be poor\n"


def test_run_draws_the_first_sentence(trained: Trained, capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    for ending, begins in [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]:
        path = tmp_path / f"picture.{ending}"
        out, err = told(capsys, "run", trained.folder, "", *SENTENCES, "--picture", path)
        assert out == ["", *TRANSLATIONS]
        assert err.splitlines() == [f"drew {path}", "1 empty line stays empty"]
        assert path.read_bytes().startswith(begins)


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_fewer_bits(
    trained: Trained, precision: str, capsys: pytest.CaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`run` and `eval` both multiply in eight bits: with bfloat16 the last layer does."""
    able = torch.backends.mkldnn.is_available() and torch.backends.cpu.get_cpu_capability().startswith("AVX")
    if not able or (precision == "bfloat16" and not cpu_has_bfloat16()):
        pytest.skip(f"this CPU does not multiply in {precision}")
    forward, calls = OneDNNInt8Linear.forward, []
    monkeypatch.setattr("foveate.inference.cpu._MIN_WEIGHTS", 1)  # the layers of this model are small
    monkeypatch.setattr(OneDNNInt8Linear, "forward", lambda self, x: calls.append(len(x)) or forward(self, x))
    assert told(capsys, "run", trained.folder, *SENTENCES, "--precision", precision)[0] == TRANSLATIONS
    assert calls
    calls.clear()
    (tmp_path / "test.tsv").write_text("".join(map("{}\t{}\n".format, SENTENCES, TRANSLATIONS)), encoding="utf-8")
    command = ["eval", trained.folder, "--data", tmp_path / "test.tsv", "--json", "--precision", precision]
    assert json.loads(told(capsys, *command)[0][0])["ways"]["rnn-attentive"]["chrf"] == pytest.approx(100)
    assert calls


def test_eval_in_json(trained: Trained, capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    """The same numbers as from Python; translations in a file."""
    pairs = words.pairs(40, 2)
    sources, references = map(list, zip(*pairs, strict=True))
    path, output = tmp_path / "test.tsv", tmp_path / "found.txt"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    output.write_text("of an earlier run\n")
    (out,), err = told(capsys, "eval", trained.folder, "--data", path, "--json", "--output", output, "--groups", 2)
    found = output.read_text(encoding="utf-8").splitlines()
    assert found == [foveate.load(trained.folder).run(source).text for source in sources]
    measured = json.loads(out)
    by_length, ways = measured.pop("by_length"), (quality(found, references), quality(sources, references))
    assert [*measured["ways"].values()] == [{"bleu": way.bleu, "chrf": way.chrf} for way in ways]
    assert measured["signatures"] == {"bleu": ways[0].bleu_signature, "chrf": ways[0].chrf_signature}
    assert measured["pairs"] == 40
    assert ways[0].bleu > 50
    groups = quality_by_length(sources, found, references, 2)
    assert [(group["shortest"], group["longest"], group["quality"]) for group in by_length] == [
        (group.shortest, group.longest, vars(group.quality)) for group in groups
    ]
    assert err.splitlines() == ["test.tsv: 40 pairs"]


def test_eval_as_a_table(trained: Trained, capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    long = " ".join([*words.WORDS] * 13)
    (tmp_path / "a").write_text(f"RED CAT\nbig house\n{long}\n")
    (tmp_path / "b").write_text("Rouge Chat\ngrand maison\nx\n")
    out, err = told(
        capsys,
        "eval",
        trained.folder,
        "--data",
        tmp_path / "a",
        tmp_path / "b",
        "--decoding.method",
        "greedy",
        "--lowercase",
    )
    table = [re.findall(r"[\w.,-]+", line) for line in out if line.startswith(("│", "|"))]
    assert [row[:2] for row in table[:-1]] == [["2", "2"], ["143", "1"], ["all", "3"]]
    assert table[-1][:4] == ["the", "source,", "copied", "3"]
    signatures = [line.split("|")[:4] for line in out if "nrefs" in line]
    assert signatures == [["BLEU", "nrefs:1", "case:lc", "eff:yes"], ["chrF", "nrefs:1", "case:lc", "eff:yes"]]
    assert "1 of them are longer than any the model learned from" in err


def test_eval_of_text_by_name(
    trained: Trained, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without --data: the test part of what the model was trained on."""
    asked = []
    monkeypatch.setattr(
        "foveate.data.sources.named.open_source", lambda *names, **_: asked.append(names) or words.splits(40)
    )
    told(
        capsys,
        "train",
        "translate",
        "emoji",
        "--from-language",
        "fr",
        "--to",
        "de",
        "--out",
        tmp_path,
        *FLAGS,
        "--steps",
        1,
    )
    _, err = told(capsys, "eval", tmp_path)
    assert err == "words.60: 60 pairs\n"
    assert asked == [("emoji", "fr", "de")] * 2


def test_a_config_file_says_what_flags_say(data: Path, capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    """In TOML, in JSON, as the config.json of a run; flags go before it."""
    by_flags = tmp_path / "flags"
    told(capsys, "train", "translate", "--data", data, "--out", by_flags, *FLAGS, "--steps", 3, "--seed", 7)
    (tmp_path / "recipe.toml").write_text(f"""
model = "rnn-attentive"
[examples]
data = "{data}"
vocabulary = 120
batch = 512
validation_examples = 30
[architecture]
width = 48
embedding = 32
dropout = 0
[training]
steps = 3
seed = 7
learning_rate = 0.01
warmup = 10
label_smoothing = 0
average = 1
threads = 1
""")
    description = json.loads((by_flags / "config.json").read_text())
    (tmp_path / "recipe.json").write_text(json.dumps(description["recipe"]))
    for number, path in enumerate([tmp_path / "recipe.toml", tmp_path / "recipe.json", by_flags / "config.json"]):
        out = tmp_path / str(number)
        told(capsys, "train", "translate", f"--config={path}", "--out", out)
        assert same(weights(out), weights(by_flags))
    told(capsys, "train", "translate", "--config", by_flags / "config.json", "--out", tmp_path / "other", "--seed", 8)
    assert not same(weights(tmp_path / "other"), weights(by_flags))


def test_another_model_than_the_config_files(data: Path, capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    """Its sizes are its own preset's, everything else is the file's."""
    (tmp_path / "recipe.json").write_text(
        json.dumps(
            {"examples": {"data": [str(data)]}, "training": {"steps": 1}, "model": "rnn", "architecture": {"width": 20}}
        )
    )
    command = ["train", "translate", "--config", tmp_path / "recipe.json", "--out", tmp_path / "run"]
    told(capsys, *command, "--model", "rnn-bahdanau", "--architecture.embedding", 16)
    config = foveate.load(tmp_path / "run").model.config
    assert (config.score_from, config.width, config.embedding) == ("before", 256, 16)
