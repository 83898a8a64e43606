"""What the command line tells about itself."""

import contextlib
import dataclasses
import importlib
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from tyro.conf import Positional

from foveate import models
from foveate.cli import VERBS, main
from foveate.cli.completion import OPTIONS
from foveate.cli.help import known_options
from foveate.cli.train import settings
from foveate.data.sources import SOURCES
from foveate.errors import UserError
from foveate.experiments import COMPARISONS
from foveate.experiments.gallery import ROWS
from foveate.tasks import TASKS, find_task


def told(capsys: pytest.CaptureFixture, *arguments: str) -> str:
    """What a command prints, which may end the program, but well."""
    capsys.readouterr()
    with contextlib.suppress(SystemExit):
        main(list(arguments))
    out, err = capsys.readouterr()
    assert not err
    return out


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",), ("help",)])
def test_the_overview_names_every_verb(capsys: pytest.CaptureFixture, arguments: tuple[str, ...]) -> None:
    overview = told(capsys, *arguments)
    for verb, what in VERBS.items():
        assert re.search(rf"^  {verb} +{re.escape(what)}$", overview, re.MULTILINE)


def options(text: str) -> dict[str, str]:
    """Each option of a help text, positional ones too, and what is said about it: what stands far from the left."""
    found: dict[str, str] = {}
    for line in (line.strip("│").rstrip() for line in text.splitlines()):
        name, *rest = line.split() or [""]
        if re.match(r" {1,3}(--?[a-z]|RUN|MODEL|NAME|INPUT|SOURCE|TEXT)", line):
            found[name.rstrip(",")] = " ".join(rest)
        elif found and line.startswith("     "):
            found[[*found][-1]] += f" {' '.join([name, *rest])}"
    return found


LEAST = {
    "train": 38,
    "run": 13,
    "serve": 12,
    "eval": 15,
    "finish": 1,
    "compare": 6,
    "demo": 5,
    "look": 7,
    "effect": 11,
    "explore": 6,
    "export": 3,
    "bench": 4,
    "gallery": 3,
    "push": 3,
    "models": 1,
    "data": 3,
    "completion": 0,
    "doctor": 0,
    "report": 3,
    "size": 8,
}
"""How many options a command has at least."""

PICTURES = [row.name for row in ROWS]


def of_each_family(presets: Mapping[str, models.Preset]) -> list[str]:
    """A preset of each family, whose fields are the options."""
    return list({preset.family: name for name, preset in presets.items()}.values())


COMMANDS = [
    *((verb,) for verb in VERBS if verb not in ("train", "bench")),
    *(("bench", name) for name in COMPARISONS),
    *(("train", task, "--model", preset) for task in TASKS for preset in of_each_family(find_task(task).presets())),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_explains_every_option_with_its_default(capsys: pytest.CaptureFixture, command: tuple[str, ...]) -> None:
    """A sentence, and then the default where there is one, or that it is required; what it takes, in words."""
    whole = told(capsys, *command, "--help-all")
    assert not re.search(
        r"\{None|STR\b|INT\b|FLOAT\b|\(default: \)|\(default: (None|True|False)\)|\d{5,}\.0|[│╭]", whole
    )
    found = options(whole)
    found.pop("-h")
    for option, text in found.items():
        assert re.search(r"[a-z]{2}.*\.( \((default: [^)]|required\).*))?", text), f"{option}: {text}"
        assert text.endswith((".", ")")), f"{option}: {text}"
    assert len(found) >= LEAST[command[0]]


@pytest.mark.parametrize("verb", VERBS)
def test_brackets_stand_around_what_may_be_left_out(capsys: pytest.CaptureFixture, verb: str) -> None:
    module = importlib.import_module(f"foveate.cli.{verb}")
    fields = [
        part
        for kind in vars(module).values()
        if dataclasses.is_dataclass(kind) and kind.__module__ == module.__name__
        for part in dataclasses.fields(kind)
        if Positional in get_args(part.type)
    ]
    usage = told(capsys, verb, "--help").partition("\n\n")[0]
    for part in fields:
        (metavar,) = (extra.metavar for extra in get_args(part.type) if hasattr(extra, "metavar"))
        assert (f"[{metavar}]" if part.default is not dataclasses.MISSING else f" {metavar}") in usage


def test_help_of_a_model_is_that_of_its_own_fields(capsys: pytest.CaptureFixture) -> None:
    of_rnn = options(told(capsys, "train", "translate", "--model=rnn-luong", "--help-all"))
    of_transformer = options(told(capsys, "train", "translate", "--help-all", "--model", "transformer-base"))
    assert of_rnn["--architecture.cell"].endswith("(default: lstm)")
    assert of_transformer["--architecture.feedforward"].endswith("(default: 2048)")
    assert "--architecture.heads" not in of_rnn
    assert not any("vocab" in option for option in {**of_rnn, **of_transformer} if option.startswith("--architecture"))
    assert of_rnn["--steps"] == of_transformer["--steps"]


@pytest.mark.parametrize("task", TASKS)
def test_help_of_a_task_is_short_and_its_examples_work(capsys: pytest.CaptureFixture, task: str) -> None:
    """The options that matter, each in the words of `--help-all`; and commands of which only the files are missing."""
    text, every = told(capsys, "train", task, "--help"), options(told(capsys, "train", task, "--help-all"))
    found = options(text.partition("examples:")[0])
    assert {"SOURCE", "--data", "--model", "--out", "--learning-rate"} <= set(found) <= set(every)
    assert len(found) < 18
    assert f"--help-all explains {len(every) - len(found)} options more" in text
    examples = [line.strip() for line in text.partition("examples:")[2].splitlines() if line.startswith("  foveate ")]
    assert len(examples) >= 2
    for example in examples:
        _foveate, _train, named, *rest = example.replace(" ...", "").split()
        assert named == task
        assert settings(task, rest).model in find_task(task).presets()


COMPLETED = {
    "foveate tr": "train",
    "foveate train transl": "translate",
    "foveate train translate transl": "",
    "foveate run x --pic": "--picture",
    "foveate train detect --model rt-detr-ti": "rt-detr-tiny",
    "foveate train detect --model whis": "",
    "foveate train detect --model=rt-detr-ti": "rt-detr-tiny",
    "foveate train classify sta": "",
    "foveate train classify-image sta": "stamps",
    "foveate help siz": "size",
}
"""What is typed, and what completes its last word."""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_what_there_is(capsys: pytest.CaptureFixture, shell: str) -> None:
    text = told(capsys, "completion", shell)
    for name in [*VERBS, *TASKS, *SOURCES, *COMPARISONS, *PICTURES, *models.presets()]:
        assert name in text


def test_bash_completes(capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    (tmp_path / "completion").write_text(told(capsys, "completion", "bash"))
    for typed, answer in COMPLETED.items():
        words = typed.replace("=", " = ").split()
        script = (
            f'. "$1"; COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}; _foveate; echo "${{COMPREPLY[@]}}"'
        )
        done = subprocess.run(["bash", "-c", script, "-", tmp_path / "completion"], capture_output=True, text=True)
        assert done.stdout.strip() == answer


@pytest.mark.skipif(not shutil.which("fish"), reason="there is no fish")
def test_completion_in_fish(capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    """As in bash, but with the whole of `--option=value`."""
    (tmp_path / "completion").write_text(told(capsys, "completion", "fish"))
    asked = "; ".join(f"echo (complete -C '{typed}' | cut -f 1)" for typed in COMPLETED)
    command = ["fish", "--no-config", "-c", f"source {tmp_path}/completion; {asked}"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    found = [line.removeprefix("--model=") for line in done.stdout.splitlines()]
    assert found == [*COMPLETED.values()], done.stderr


@pytest.mark.skipif(not shutil.which("zsh"), reason="there is no zsh")
def test_completion_in_zsh(capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    """As in bash, whose way of completing zsh takes over; zsh itself chooses the words that begin as typed."""
    (tmp_path / "completion").write_text(told(capsys, "completion", "zsh"))
    script = '. "$1"; emulate ksh; '
    for typed in COMPLETED:
        script += f'COMP_WORDS=({typed}); COMP_CWORD={len(typed.split()) - 1}; _foveate; echo "${{COMPREPLY[@]}}"; '
    done = subprocess.run(["zsh", "-fc", script, "-", tmp_path / "completion"], capture_output=True, text=True)
    found = [
        " ".join(word for word in line.split() if word.startswith(typed.split()[-1])).removeprefix("--model=")
        for line, typed in zip(done.stdout.splitlines(), COMPLETED, strict=True)
    ]
    assert found == [*COMPLETED.values()], done.stderr


@pytest.mark.parametrize("verb", OPTIONS)
def test_completed_options_exist(capsys: pytest.CaptureFixture, verb: str) -> None:
    more = {"train": ["classify-image"], "bench": ["norms"]}.get(verb, [])
    text = told(capsys, verb, *more, "--help-all")
    known = known_options(text) | {"--help-all"}
    assert set(OPTIONS[verb].split()) - known == set()


def test_short_names_of_options() -> None:
    for words in (["--lr", "0.1"], ["--lr=0.1"], ["--learning-rate", "0.1"]):
        assert settings("classify", words).training.learning_rate == 0.1
    assert settings("translate", ["-o", "there", "-m", "rnn-luong"]).model == "rnn-luong"
    with pytest.raises(UserError, match=r"unknown option --lrr; did you mean --lr\?"):
        settings("classify", ["--lrr", "0.1"])


def test_an_option_of_another_model_names_its_presets() -> None:
    with pytest.raises(UserError, match=r"--architecture.kernel is an option of .*, not of transformer-tiny"):
        settings("translate", ["--architecture.kernel", "3"])
    with pytest.raises(UserError, match=r"unknown option --architecture.nothing"):
        settings("translate", ["--architecture.nothing", "3"])


@pytest.mark.parametrize("task", TASKS)
def test_a_task_is_no_verb_but_leads_to_some(capsys: pytest.CaptureFixture, task: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main([task, "a b"])
    assert f"foveate run RUN 'a b' uses a model of it, foveate train {task} " in capsys.readouterr().err
    (tmp_path / "config.json").touch()
    with pytest.raises(SystemExit):
        main([task, str(tmp_path), "a b"])
    assert f"foveate run {tmp_path} 'a b' uses a model of it" in capsys.readouterr().err


def test_train_without_a_task_says_what_there_is(capsys: pytest.CaptureFixture) -> None:
    for arguments in (("train",), ("train", "--help")):
        assert f"tasks: {', '.join(TASKS)}" in told(capsys, *arguments)


def test_models(capsys: pytest.CaptureFixture) -> None:
    """Every preset of every family, with the parameters of its row (`tests/models/test_models.py` counts them)."""
    rows = listed("".join(told(capsys, "models", family) for family in models.FAMILIES))
    assert {name: f"{preset.parameters:,}" for name, preset in models.presets().items()} == rows


def test_models_at_a_glance(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line for each task, on one screen of 80 columns; the names in it lead to presets, a preset to its tasks."""
    monkeypatch.setenv("COLUMNS", "80")
    lines = told(capsys, "models").splitlines()
    assert [line.split()[0] for line in lines[1 : len(TASKS) + 1]] == list(TASKS)
    assert len(lines) < 40
    assert max(map(len, lines)) <= 80
    assert next(line for line in lines if line.startswith("match ")).split() == ["match", "3", "1.5M-2.2M", "siamese"]
    assert told(capsys, "models", "siamese").startswith("siamese: foveate train match\n")
    assert "  bert-tiny " in (one := told(capsys, "models", "bert-tiny"))
    assert "train classify | tag" in one
    assert listed(one).keys() == {"bert-tiny"}


def test_models_of_another_vocabulary(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each preset that has a vocabulary is built once, and counted; the others are as large as in their rows.

    What is built here is no model: `tests/models/test_models.py` counts those.
    """
    built: dict[str, int] = {}

    def build(name: str, **values: Any) -> torch.nn.Module:
        assert name not in built
        preset = models.preset(name)
        assert values.pop("device") == "meta"
        assert values.keys() == set(models.sizes_of_data(preset.family))
        for size, value in values.items():
            usual = preset.sizes.get(size, models.COUNTED.get(size, models.VOCABULARY))
            assert value == (1009 if size in models.VOCABULARIES else usual)
        built[name] = 1000 + len(built)
        return torch.nn.Linear(1, built[name], bias=False, device="meta")

    monkeypatch.setattr(models, "create", build)
    text = "".join(told(capsys, "models", family, "--vocabulary", "1009") for family in models.FAMILIES)
    with_words = {name for name, preset in models.presets().items() if has_words(preset.family)}
    assert built.keys() == with_words
    counts = {name: preset.parameters for name, preset in models.presets().items()} | built
    assert {name: f"{count:,}" for name, count in counts.items()} == listed(text)
    assert "counted with 1,009 subwords" in text
    assert torch.empty(0).device.type == "cpu"


def listed(text: str) -> dict[str, str]:
    """Each preset that `foveate models` prints, and its parameters."""
    rows = (re.match(r"  (\S+)(?: \*)? +([\d,]+)  ", line) for line in text.splitlines())
    return {row[1]: row[2] for row in rows if row}


def has_words(family: str) -> bool:
    return not models.VOCABULARIES.isdisjoint(models.sizes_of_data(family))


def test_data(capsys: pytest.CaptureFixture) -> None:
    text = told(capsys, "data")
    for source in SOURCES.values():
        lines = [
            source.name,
            f"  {source.about}",
            f"  for {', '.join(source.tasks)}; {source.size} to fetch, licence {source.licence}",
            *([f"  languages: {' '.join(source.languages)}"] if source.languages else []),
        ]
        assert "\n".join(lines) + "\n\n" in text


def test_completions_for_a_shell(capsys: pytest.CaptureFixture) -> None:
    assert "--decoding.method" in told(capsys, "run", "--tyro-print-completion", "bash")


def test_the_models_of_one_task(capsys: pytest.CaptureFixture) -> None:
    text = told(capsys, "models", "caption")
    assert "show-attend-tell-tiny" in text
    assert "resnet20" not in text


def test_the_version(capsys: pytest.CaptureFixture) -> None:
    assert re.fullmatch(r"foveate \d+\.\d+\.\d+\S*\n", told(capsys, "--version"))


def test_help_of_a_verb_is_its_option_help(capsys: pytest.CaptureFixture) -> None:
    assert told(capsys, "help", "models") == told(capsys, "models", "--help")
