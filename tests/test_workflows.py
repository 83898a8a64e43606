"""The files for those who join: workflows, hooks before a commit, templates. What they name exists."""

import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from foveate.cli import VERBS

ROOT = Path(__file__).parent.parent
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MADE = {".venv", "build", "dist"}
"""Folders that the commands make."""


def parsed(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps(path: Path) -> Iterator[dict[str, Any]]:
    for job in parsed(path)["jobs"].values():
        yield from job["steps"]


def commands() -> list[str]:
    """Every command of the workflows and of the guide."""
    lines = [step["run"] for path in WORKFLOWS for step in steps(path) if "run" in step]
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return [*lines, *re.findall(r"```sh\n(.*?)```", guide, re.DOTALL), *re.findall(r"`(make [^`]+)`", guide)]


def made_by(target: str) -> str:
    """The commands of a target of make, as if nothing were installed."""
    told = ["make", "--dry-run", "--always-make", target]
    return subprocess.run(told, cwd=ROOT, capture_output=True, text=True, check=True).stdout


TARGETS = sorted(
    {name for line in commands() for words in re.findall(r"\bmake ([a-z -]+)", line) for name in words.split()}
)


def test_there_are_workflows() -> None:
    assert [path.stem for path in WORKFLOWS] == ["docs", "release", "tests"]
    assert {"test", "test-quick", "coverage", "check", "docs", "dist"} <= set(TARGETS)


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize("target", TARGETS)
def test_every_target_exists_and_so_do_its_files(target: str) -> None:
    for name in re.findall(r"(?<=\s)tests/\S+", made_by(target)):
        assert (ROOT / name).exists(), name


def test_every_path_exists() -> None:
    """In commands, and in what actions are given."""
    given = [value for path in WORKFLOWS for step in steps(path) for value in step.get("with", {}).values()]
    places = [
        word for text in [*commands(), *given] for word in str(text).split() if re.fullmatch(r"\.?\w[\w./-]+", word)
    ]
    places = [place for place in places if "/" in place or place.endswith((".toml", ".md", ".py"))]
    assert len(places) > 5
    for place in places:
        assert place.split("/")[0] in MADE or (ROOT / place).exists(), place


def test_the_pythons_are_those_of_the_package() -> None:
    """The oldest and the newest are tested, and a release is tried on each."""
    told = [line.rpartition(" ")[2] for line in PROJECT["project"]["classifiers"] if re.search(r":: 3\.\d+$", line)]
    jobs = parsed(GITHUB / "workflows" / "tests.yml")["jobs"]
    assert jobs["whole"]["strategy"]["matrix"]["python"] == [told[0], told[-1]]
    release = next(
        step for step in steps(GITHUB / "workflows" / "release.yml") if "python-version" in step.get("with", {})
    )
    assert release["with"]["python-version"].split() == told
    assert any(f".ci/wheel {' '.join('python' + version for version in told)}" in line for line in commands())


def test_the_hooks_have_the_ruff_of_the_package() -> None:
    repositories = parsed(ROOT / ".pre-commit-config.yaml")["repos"]
    (ruff,) = (one for one in repositories if one["repo"].endswith("ruff-pre-commit"))
    assert f"ruff=={ruff['rev'].removeprefix('v')}" in PROJECT["project"]["optional-dependencies"]["test"]
    assert [hook["id"] for hook in ruff["hooks"]] == ["ruff-check", "ruff-format"]


@pytest.mark.parametrize("name", ["bug", "feature", "unseen-model"])
def test_a_form_for_an_issue_is_whole(name: str) -> None:
    form = parsed(GITHUB / "ISSUE_TEMPLATE" / f"{name}.yml")
    assert {"name", "description", "body"} <= form.keys()
    fields = {field["id"]: field for field in form["body"] if field["type"] != "markdown"}
    assert len(fields) >= 3
    for field in fields.values():
        assert field["type"] in ("textarea", "input", "checkboxes", "dropdown")
        assert field["attributes"]["label"]


def test_templates_ask_what_doctor_prints() -> None:
    assert "doctor" in VERBS
    for name in ("ISSUE_TEMPLATE/bug.yml", "ISSUE_TEMPLATE/unseen-model.yml", "pull_request_template.md"):
        assert "foveate doctor" in (GITHUB / name).read_text(encoding="utf-8")
