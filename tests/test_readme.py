"""Every Python block and every command of the README, run as a reader would, with little text and few steps."""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from foveate import cli
from foveate.data.sources.splits import Splits
from foveate.data.text.parallel_corpus import ParallelText
from foveate.tasks import demo

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")

THINGS = [
    (f"{number} {thing}s", f"{nombre} {chose}s")
    for number, nombre in [("two", "deux"), ("three", "trois"), ("six", "six")]
    for thing, chose in [("cat", "chat"), ("dog", "chien"), ("hat", "chapeau"), ("red hat", "chapeau rouge")]
]

LINES = [f"{one} and {other}\t{un} et {autre}" for one, un in THINGS for other, autre in THINGS]

REDUCED = ["--steps", "40", "--warmup", "10", "--learning-rate", "0.003", "--architecture.dropout", "0"]
"""What makes a training of the README short; its own limits in minutes are left out."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as the README's reader has it: some text, and the demo's models."""
    folder = tmp_path_factory.mktemp("desk")
    sources, targets = zip(*(line.split("\t") for line in LINES), strict=True)
    for name, side in (("en", sources), ("fr", targets)):
        for part in ("train", "test"):
            (folder / f"{part}.{name}").write_text("".join(f"{line}\n" for line in side), encoding="utf-8")
    for name, lines in other_text(sources).items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def other_text(sentences: Sequence[str]) -> dict[str, list[str]]:
    """What the tasks beside translation read: labels, tags, prose."""
    labels = [f"{'animals' if 'dog' in sentence else 'things'}\t{sentence}" for sentence in sentences]
    words = [word for sentence in sentences for word in [*sentence.split(), ""]]
    tags = [f"{word}\t{'noun' if word.endswith('s') else 'other'}" if word else "" for word in words]
    prose = [f"Here are {sentence}. We see them." + "\n" * (place % 5 == 0) for place, sentence in enumerate(sentences)]
    return {"reviews.tsv": labels, "tagged.tsv": tags, "novel.txt": prose}


def tiny_source(name: str, source_language: str, target_language: str, task: str = "translate") -> Splits:
    pairs = [tuple(line.split("\t")) for line in LINES]
    text = ParallelText.from_pairs(pairs, name, [" ".join("🎩" * (1 + place % 6)) for place in range(len(pairs))])
    return Splits(text, text, text)


@pytest.fixture(autouse=True)
def at_the_desk(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(desk)
    monkeypatch.setattr(demo, "open_source", tiny_source)
    monkeypatch.setattr("foveate.data.sources.named.open_source", tiny_source)
    monkeypatch.setattr("uvicorn.Server.run", lambda server, sockets: None)  # would serve until Ctrl-C


def test_the_demo_shows_what_the_readme_says(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["demo", "--steps", "3"])
    shown = capsys.readouterr().out
    for promise in (
        "names in the message",
        "4 and more",
        "BLEU against RNN",
        "people say",
        "drew runs/demo/alignment-1.png",
    ):
        assert promise in shown
    assert Path("runs/demo/alignment-1.png").stat().st_size > 1000


@pytest.mark.parametrize(
    "command", [line for block in blocks("sh") for line in block.splitlines() if line.startswith("foveate")]
)
def test_a_command(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = shlex.split(command)[1:]
    if words[0] == "train":
        if "--minutes" in words:
            place = words.index("--minutes")
            del words[place : place + 2]
        words += REDUCED
    cli.main(words)
    assert capsys.readouterr().out.strip()


def test_the_blocks_of_python_one_after_the_other() -> None:
    names: dict[str, object] = {}
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), names)
    assert names["weights"].shape == (2, 1, 3, 9)
    assert names["y"].shape == (2, 8, 5, 64)
    assert names["reach"].shape == (2, 9, 9)
    assert Path("heads.pdf").stat().st_size > 1000
    assert Path("look.html").stat().st_size > 1000


def test_make_knows_the_targets_that_the_readme_names() -> None:
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = re.findall(r"make (\w+)", "".join(blocks("sh")))
    assert named
    assert set(named) <= set(targets)


def test_every_link_into_the_project_leads_somewhere() -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", README):
        if "://" not in link:
            assert (ROOT / link).exists(), link
