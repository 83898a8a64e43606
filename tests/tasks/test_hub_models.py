"""Models of a hub: fetched once, nothing but weights, settings and tokenizers; and runs that are pushed."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hub_server import Stub, contents, refused, running_hub
from huggingface_hub import is_offline_mode

import foveate
from foveate import cli
from foveate.data.sources.hub import OFFLINE, repository
from foveate.interop.pretrained import hub as hub_models
from foveate.interop.pretrained import locate
from foveate.tasks.push import push


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[type[Stub]]:
    with running_hub(monkeypatch, tmp_path / "cache") as hub:
        yield hub


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of a classifier of a few texts."""
    folder = tmp_path_factory.mktemp("hub")
    lines = [f"{label}\t{word} number {place}" for place in range(30) for label, word in (("a", "ant"), ("b", "bee"))]
    (folder / "data.tsv").write_text("\n".join(lines) + "\n")
    data = (folder / "data.tsv",)
    settings = {"steps": 3, "warmup": 1, "threads": 1}
    foveate.train(foveate.recipe("classify", data=data, validation=data, out=folder / "run", **settings))
    return folder / "run"


def test_a_model_of_the_hub_is_fetched_once(server: type[Stub], trained: Path, capsys: Any) -> None:
    more = {"pickle.bin": b"no", "train.py": b"no", "onnx/model.safetensors": b"no", "README.md": b"# a"}
    server.repositories["models/org/ants"] = {**contents(trained), **more}
    cli.main(["run", "hub:org/ants", "ant number 3"])
    answer, told = capsys.readouterr()
    assert answer.startswith(("a\t", "b\t"))
    assert told.startswith("fetching hub:org/ants into ")
    place = locate("hub:org/ants")
    wanted = {name for name in contents(trained) if name.endswith((".json", ".safetensors"))}
    assert {path.name for path in place.rglob("*")} == wanted
    asked = len(server.asked)
    assert foveate.load("hub:org/ants").run("ant number 3").line + "\n" == answer
    assert foveate.load(trained).run("ant number 3").line + "\n" == answer
    assert len(server.asked) == asked


def test_what_is_no_model_is_told(server: type[Stub], monkeypatch: pytest.MonkeyPatch) -> None:
    server.repositories["models/org/pickled"] = {"config.json": b"{}", "pytorch_model.bin": b"x"}
    assert "no weights as .safetensors" in refused(locate, "hub:org/pickled")
    server.repositories["models/org/empty"] = {"model.safetensors": b"x"}
    assert refused(locate, "hub:org/empty") == "hub:org/empty has no config.json: it is not a model that foveate reads"
    server.repositories["models/org/large"] = {"config.json": b"{}", "model.safetensors": b"x" * 2**21}
    monkeypatch.setattr(hub_models, "WEIGHTS", 2**20)
    assert refused(locate, "hub:org/large") == "hub:org/large has 2 MiB to fetch; the limit is 1 MiB"
    assert not list((Path(os.environ["FOVEATE_CACHE"])).glob("hub*"))
    assert refused(locate, "hub:org/none") == "the hub has no hub:org/none, or it is private: `hf auth login` logs in"


@pytest.mark.parametrize("name", ["hub:", "hub:a/b/c", "hub:../x", "hub:a/b@", "hub:a/b@x;y", "hub:a b", "hub:-a/b"])
def test_bad_names(name: str) -> None:
    assert refused(repository, name).startswith(f"{name} is not a name of a hub's repository")


def test_without_a_network_or_the_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    for variable in OFFLINE:
        monkeypatch.delenv(variable, raising=False)
    assert refused(locate, "hub:org/x").startswith("hub:org/x: cannot reach http://127.0.0.1:9 (is the network up?): ")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert refused(locate, "hub:org/x").endswith("huggingface_hub: pip install 'foveate[hub]'")


@pytest.mark.parametrize("offline", OFFLINE)
def test_the_hub_is_asked_unless_the_environment_forbids_it(
    server: type[Stub], trained: Path, monkeypatch: pytest.MonkeyPatch, offline: str
) -> None:
    """Also where a Hugging Face folder was read before, for which its library is imported offline."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    server.repositories["models/org/ants"] = contents(trained)
    monkeypatch.setenv(offline, "1")
    assert refused(locate, "hub:org/ants") == f"hub:org/ants: {offline} is set, so no hub is asked"
    assert refused(push, trained, "hub:org/ants") == f"hub:org/ants: {offline} is set, so no hub is asked"
    assert not server.asked
    monkeypatch.delenv(offline)
    assert locate("hub:org/ants").is_dir()
    assert is_offline_mode()


def test_paths_that_leave_their_folder_are_left_out(server: type[Stub], trained: Path) -> None:
    files = contents(trained)
    server.repositories["models/org/ants"] = {**files, "../evil.json": b"{}", "a\\b.json": b"{}", "c:d.json": b"{}"}
    place = locate("hub:org/ants")
    assert {path.name for path in place.parent.rglob("*.json")} == {name for name in files if name.endswith("json")}


class FakeApi:
    """Notes what would be sent."""

    def __init__(self, endpoint: str | None = None) -> None:
        self.endpoint = endpoint

    def create_repo(self, name: str, **options: Any) -> None:
        sent.update(name=name, options=options)

    def file_exists(self, name: str, path: str) -> bool:
        return bool(sent.get("has_card"))

    def create_commit(self, name: str, operations: list[Any], commit_message: str) -> None:
        sent["files"] = {one.path_in_repo: one.path_or_fileobj for one in operations}


sent: dict[str, Any] = {}


@pytest.fixture
def fake_api(monkeypatch: pytest.MonkeyPatch) -> type[FakeApi]:
    sent.clear()
    monkeypatch.setattr("huggingface_hub.HfApi", FakeApi)
    return FakeApi


def test_a_run_is_pushed(fake_api: type[FakeApi], trained: Path, capsys: Any) -> None:
    cli.main(["push", str(trained), "hub:me/ants", "--private"])
    assert capsys.readouterr().out.endswith("to hub:me/ants; try: foveate run hub:me/ants\n")
    assert sent["name"] == "me/ants"
    assert sent["options"] == {"repo_type": "model", "private": True, "exist_ok": True}
    card = sent["files"].pop("README.md").decode()
    assert 'foveate.load("hub:me/ants")' in card
    assert "task `classify`" in card
    assert set(sent["files"]) == {name for name in contents(trained) if name.endswith((".json", ".safetensors"))}
    assert sent["files"]["model.safetensors"] == str(trained / "model.safetensors")
    sent["has_card"] = True
    assert "README.md" not in push(trained, "hub:me/ants")


def test_what_cannot_be_pushed(fake_api: type[FakeApi], trained: Path, tmp_path: Path) -> None:
    assert refused(push, trained, "me/ants").startswith("me/ants is not a name of a hub's repository")
    assert "leave out @v1" in refused(push, trained, "hub:me/ants@v1")
    refused(push, tmp_path, "hub:me/ants")
    assert not sent

    class Denied(Exception):
        response = SimpleNamespace(status_code=401)

    fake_api.create_repo, before = raises(Denied("no")), fake_api.create_repo
    try:
        told = refused(push, trained, "hub:me/ants")
    finally:
        fake_api.create_repo = before
    assert told == "the hub does not allow this for hub:me/ants: log in with `hf auth login`"


def raises(error: Exception) -> Any:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    return fail
