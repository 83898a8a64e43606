"""Every Python block of the pages in docs, run one after the other as a reader would, and every link of theirs."""

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parent / "tasks"))

import tiny_folders

from foveate import cli
from foveate.cli import bench
from foveate.cli import train as cli_train
from foveate.experiments import Comparison
from foveate.interop.pretrained import smollm2

DOCS = Path(__file__).parent.parent / "docs"


def ran(page: str) -> dict[str, Any]:
    """What is defined once all blocks of a page were run."""
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(block, page, "exec"), names)
    return names


def test_attention(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = ran("attention.md")
    assert len(names["maps"]) == 8
    assert Path("masks.png").stat().st_size > 1000


def test_layers_that_attend() -> None:
    assert ran("layers-that-attend.md")["sight"].sites == ["self"]


def test_attention_on_grids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert ran("attention-on-grids.md")["maps"].shape == (3, 12, 16)
    assert Path("grid.png").stat().st_size > 1000


def test_a_model_of_your_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert ran("training.md")["result"].metrics["accuracy"] > 0.9


def test_from_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    numbers = ["one cat", "two cats", "three dogs", "four dogs"]
    for end, words in (("en", numbers), ("fr", [word.upper() for word in numbers])):
        Path(f"train.{end}").write_text("".join(f"{word} {place}\n" for place in range(10) for word in words))
    assert ran("translation.md")["task"].run("two cats").text is not None


def test_step_by_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentences that are asked are not among those that are learned, but their words are."""
    monkeypatch.chdir(tmp_path)
    asked = ran("step-by-step.md")["asked"]
    for name, sentence in zip(("es-en.tsv", "en-fr.tsv"), sorted(asked, key=len), strict=True):
        learned = {line.partition("\t")[0] for line in Path(name).read_text(encoding="utf-8").splitlines()}
        assert sentence not in learned
        assert set(sentence.split()) <= {word for one in learned for word in one.split()}
        page = (DOCS / "step-by-step.md").read_text(encoding="utf-8")
        assert f'"{sentence}"' in page.partition("## A translator of the world")[0]


def commands(kind: str) -> list[str]:
    """Every command of the pages of a kind, with the task or comparison that it names, in one line, no comment."""
    pages = "".join(path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md")))
    shell = "".join(re.findall(r"```sh\n(.*?)```", pages, re.DOTALL))
    return re.findall(rf"^(?:torchrun .* -m )?foveate ({kind} [a-z][^#\n]*)", shell.replace("\\\n", " "), re.MULTILINE)


@pytest.fixture(scope="module")
def small_language_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_folders.make("llama", tmp_path_factory.mktemp("weights"))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("command", commands("train"))
def test_every_training_has_options_that_there_are(
    command: str, small_language_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a small folder in place of a language model, which would be fetched, and no look at the data."""
    monkeypatch.setattr(smollm2, "fetch", lambda before_fetch: small_language_model)
    monkeypatch.setattr(cli_train, "usual_start", lambda task, recipe: None)
    task, *rest = shlex.split(command)[1:]
    ran: list[Any] = []
    if cli_train.PROCESSES in rest:  # would launch them
        del rest[(place := rest.index(cli_train.PROCESSES)) : place + 2]
    if "--from" in rest and rest[(place := rest.index("--from")) + 1].startswith("runs/"):  # of the reader, not here
        del rest[place : place + 2]
    monkeypatch.setattr(cli_train, "train_task", ran.append)
    monkeypatch.setattr(cli_train, "next_commands", lambda predictor, folder: "")
    cli.main(["train", task, *rest])
    assert ran[0].task == task


@pytest.mark.parametrize("command", commands("bench"))
def test_every_comparison_has_options_that_there_are(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, *rest = shlex.split(command)[1:]
    compared: list[tuple[Any, ...]] = []
    monkeypatch.setattr(bench, "compare_seeds", lambda *told: compared.append(told) or Comparison("none", [], {}, {}))
    monkeypatch.setattr(bench, "save", lambda *_: [])
    cli.main(["bench", name, *rest])
    assert compared[0][0] == name


@pytest.mark.parametrize("page", sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")))
def test_every_link_leads_somewhere(page: str) -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", (DOCS / page).read_text(encoding="utf-8")):
        assert "://" in link or (DOCS / page).parent.joinpath(link).exists(), link
    assert not re.findall(r"\[[\w-]+\.md\]\(", (DOCS / page).read_text(encoding="utf-8")), "a link is named by its file"


def test_every_page_is_in_the_site_s_menu() -> None:
    """Which `make docs` builds, with links checked."""
    menu = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    notebooks = {f"notebooks/{path.stem}.md" for path in DOCS.rglob("*.ipynb")}  # which a hook makes pages of
    pages = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")} | notebooks
    logs = {page for page in pages if page.startswith("log/")} - {"log/index.md"}
    assert pages - logs == set(re.findall(r"\S+\.md", menu))
    named = re.findall(r"\((\S+\.md)\)", (DOCS / "log" / "index.md").read_text(encoding="utf-8"))
    assert {f"log/{name}" for name in named} == logs


@pytest.mark.parametrize("page", sorted(path.name for path in DOCS.glob("*.md")))
def test_a_page_begins_with_its_reader_s_question_and_the_answer(page: str) -> None:
    """In the third line, below the title: a question, and something after it."""
    title, empty, lead = (DOCS / page).read_text(encoding="utf-8").split("\n")[:3]
    assert title.startswith("# ")
    assert not empty
    question, mark, answer = lead.partition("?")
    assert mark
    assert len(question) > 15
    assert len(answer) > 25


@pytest.mark.parametrize("page", sorted(path.name for path in DOCS.glob("*.md")))
def test_a_page_is_read_at_one_sitting(page: str) -> None:
    assert len((DOCS / page).read_text(encoding="utf-8").splitlines()) <= 120


FIRST_SCREEN, LINE = 24, 110
"""Lines of a page that a reader sees first, and the letters of one, in a window of some 1,400 pixels."""


@pytest.mark.parametrize("page", sorted(path.name for path in DOCS.glob("*.md")))
def test_a_page_shows_something_on_its_first_screen(page: str) -> None:
    """A picture or a table, though a command may come before it."""
    used = 0
    for line in (DOCS / page).read_text(encoding="utf-8").splitlines():
        if line.startswith(("![", "|")):
            break
        used += max(1, -(-len(line) // LINE))
    else:
        pytest.fail("neither a picture nor a table")
    assert used <= FIRST_SCREEN


def systems() -> list[str]:
    """The rows of the page of all systems, without those that compare them."""
    page = (DOCS / "systems.md").read_text(encoding="utf-8").partition("\n## Comparing")[0]
    return [line for line in page.splitlines() if line.startswith("| ") and not line.startswith(("| system", "| ---"))]


@pytest.mark.parametrize("row", systems(), ids=lambda row: row.split(" | ")[0].strip("| "))
def test_a_system_has_its_paper_command_result_page_and_file(row: str) -> None:
    system, how, result, places = row.strip("| ").split(" | ")
    assert re.search(r" (19|20)\d\d[,)]", system), "no paper"
    assert re.match("`|Hugging", how)
    assert result
    named = re.findall(r"`([a-z_]+/[^`]*)`", places)
    assert named, "no file"
    for file in named:
        assert (DOCS.parent / "src" / "foveate" / file).exists(), file
    assert re.search(r"\]\(\S+\.md", places)
