"""`foveate effect`: the table, JSON, page and picture of what an answer needs, and the one line for what goes wrong."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from small import Trained

import foveate
from foveate.cli import main
from foveate.sight import Scale
from foveate.viewer import page

tiny_folders = pytest.importorskip("tiny_folders", reason="transformers is not installed")

Fails = Callable[..., str]


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_folders.make("gpt2", tmp_path_factory.mktemp("models"))


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def output(capsys: pytest.CaptureFixture, *arguments: object) -> list[str]:
    main(["effect", *map(str, arguments)])
    return capsys.readouterr().out.splitlines()


def test_the_next_token(gpt2: Path, capsys: pytest.CaptureFixture) -> None:
    lines = output(capsys, gpt2, "the keeper lit", "--top", "2")
    assert lines[0].endswith(", and its change without")
    heads, places = lines.index("heads: 2 of 6"), lines.index("places: 2 of 3")
    sizes = [abs(float(line.split()[3])) for line in lines[heads + 1 : heads + 3]]
    assert sizes == sorted(sizes, reverse=True)
    assert {line.split()[0] for line in lines[places + 1 : places + 3]} < {"the", "keeper", "lit"}
    assert lines[heads + 1].count("█") + lines[heads + 1].count("░") == 24


def test_another_answer(gpt2: Path, capsys: pytest.CaptureFixture) -> None:
    own, other = (
        json.loads(output(capsys, gpt2, "the keeper lit", "--json", *more)[0]) for more in ([], ["--target", " lamp"])
    )
    assert other["answer"].strip() == "lamp"
    assert other["value"] < own["value"]
    found = foveate.load(gpt2).effect("the keeper lit", target=" lamp")
    assert found.panel.value == pytest.approx(other["value"], abs=1e-4)


def test_a_translator(trained: Trained, capsys: pytest.CaptureFixture) -> None:
    """The places are those of the source, wherever they are attended to."""
    lines = output(capsys, trained.folder, "red cat", "--out", "cat.html", "--picture", "cat.svg", "--exact", "0")
    assert lines[-2:] == ["wrote cat.html", "wrote cat.svg"]
    assert "~ estimated; a larger --exact measures more" in lines
    found = page.read("cat.html")
    assert found.effects is not None
    (part,) = found.effects.places
    side = next(panel.keys for panel in found.sites if panel.name == part.site)
    assert [*part.places] == [*range(side.count)]
    assert not any(one.exact for one in part.effects)


def test_some_sites(gpt2: Path, capsys: pytest.CaptureFixture) -> None:
    (line,) = output(capsys, gpt2, "the keeper lit", "--sites", "*.1.attn", "*blocks.1*", "--json")
    assert len({one["site"] for one in json.loads(line)["heads"]}) == 1


def test_a_skill_answers_as_its_changed_model_does(trained: Trained) -> None:
    """And not as the copy that was laid out for the CPU before."""
    skill = foveate.load(trained.folder)
    whole = skill("red cat")
    with foveate.change(skill.model, {"*": Scale(0.0)}):
        without = skill("red cat")
        assert skill(["red cat", "blue dog"] * 20)[0].log_prob == pytest.approx(without.log_prob, abs=1e-4)
    assert abs(without.log_prob - whole.log_prob) > 1e-3
    assert skill("red cat").log_prob == pytest.approx(whole.log_prob, abs=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["MODEL"], "Missing from foveate effect: INPUT"),
        (["missing", "x"], "there is no folder missing, nor trained weights of this name"),
        (["MODEL", "x", "--sites", "decoder*"], "no module that attends has a path like decoder*; modules that attend"),
        (["MODEL", "x", "--out", "missing/a.html"], "could not write missing/a.html: there is no folder missing"),
        (["MODEL", "x", "--picture", "a.html"], "a.html: cannot write a picture as '.html'"),
        (
            ["MODEL", "x", "--out", "a.txt"],
            "a.txt must end in .html for a page, or in .png, .svg, .pdf or .gif for a pict",
        ),
        (["MODEL", "the lamp", "--max-tokens", "1"], "the text has 2 tokens, but the limit is 1"),
        (["MODEL", "x", "--top", "0"], "top is 0, but must be at least 1"),
        (["MODEL", "x", "--exact", "-1"], "exact is -1, but must be at least 0"),
        (["MODEL", "the lamp", "--target", "the lamp"], "the next token is one, but 'the lamp' is 2 tokens: "),
        (["MODEL", "the lamp", "--target", ""], "the next token is one, but '' is 0 tokens: none"),
        (["MODEL", ""], "the text is empty"),
    ],
    ids=lambda value: None if isinstance(value, str) else " ".join(value),
)
def test_mistakes(fails: Fails, gpt2: Path, arguments: list[str], message: str) -> None:
    assert fails("effect", *(gpt2 if each == "MODEL" else each for each in arguments)).startswith(message)
    assert not list(Path().iterdir())
