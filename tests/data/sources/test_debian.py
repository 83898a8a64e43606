"""Debian's packages and descriptions: programs stand in for apt."""

import shutil

import pytest
from archives import write_archive

from foveate.data.sources import debian
from foveate.data.sources.debian import debian_descriptions, debian_packages
from foveate.errors import UserError

needs_dpkg = pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="dpkg-deb is not installed")


class Apt:
    """What is asked of it, and what it brings."""

    def __init__(self):
        self.asked = []

    def __call__(self, command, purpose, folder):
        self.asked.append(list(command))
        if "update" in command:
            for language in ("en", "fr"):
                (folder / f"state/lists/mirror_main_i18n_Translation-{language}").write_text(language)
        if "download" in command:
            for name in command[command.index("download") + 1 :]:
                write_archive(folder / f"{name}_4%3a7.4_all.deb", {f"usr/share/doc/{name}/copyright": f"© {name}"})
        return "cod\nherring\n" if "pkgnames" in command else ""

    def options(self, place=0):
        words = self.asked[place]
        return dict(words[at + 1].split("=", 1) for at, word in enumerate(words) if word == "-o")


@pytest.fixture
def apt(monkeypatch):
    apt = Apt()
    monkeypatch.setattr(shutil, "which", lambda program: f"/usr/bin/{program}")
    monkeypatch.setattr(debian, "run", apt)
    return apt


@needs_dpkg
def test_packages_are_fetched_without_root(tmp_path, apt):
    with debian_packages(["cod", "eel-data"], tmp_path) as found:
        assert [path.name.partition("_")[0] for path in found] == ["cod", "eel-data"]
        assert all(path.is_file() for path in found)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cod.copyright", "eel-data.copyright"]
    assert (tmp_path / "cod.copyright").read_text() == "© cod"
    update, download = apt.asked
    assert update[-1] == "update"
    assert download[-3:] == ["download", "cod", "eel-data"]
    options = apt.options()
    assert options == apt.options(1)
    assert options["Acquire::Languages"] == "none"
    assert all(str(tmp_path) in options[name] for name in ("Dir::State", "Dir::State::Lists", "Dir::Cache"))


@needs_dpkg
def test_packages_that_the_release_does_not_have(tmp_path, apt):
    with debian_packages(["cod", "eel", "herring"], tmp_path, all_needed=False) as found:
        assert [path.name.partition("_")[0] for path in found] == ["cod", "herring"]
    assert apt.asked[-1][-3:] == ["download", "cod", "herring"]


def test_descriptions(tmp_path, apt):
    with debian_descriptions(["en", "fr"], tmp_path) as files:
        assert [[file.read_text() for file in each] for each in files] == [["en"], ["fr"]]
    assert apt.options()["Acquire::Languages"] == "en,fr"
    assert list(tmp_path.iterdir()) == []


def test_without_apt_get(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda program: None)
    complaint = r"^cod and eel come as Debian packages, which need apt-get, and this machine has none; .* with --data$"
    with pytest.raises(UserError, match=complaint), debian_packages(["cod", "eel"], tmp_path):
        pass


def test_a_failed_update_is_told_only_when_the_download_fails(tmp_path, monkeypatch):
    def offline(command, purpose, folder):
        raise UserError(f"cannot {purpose}: offline")

    monkeypatch.setattr(shutil, "which", lambda program: f"/usr/bin/{program}")
    monkeypatch.setattr(debian, "run", offline)
    complaint = "cannot read Debian's lists of packages"
    with pytest.raises(UserError, match=complaint), debian_packages(["cod"], tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def one_list_missing(monkeypatch, apt):
    def run(command, purpose, folder):
        brought = apt(command, purpose, folder)
        if "update" in command:
            raise UserError("a list is out of reach")
        return brought

    monkeypatch.setattr(debian, "run", run)


@needs_dpkg
@pytest.mark.usefixtures("one_list_missing")
@pytest.mark.parametrize("all_needed", [True, False])
def test_a_list_that_was_not_needed(tmp_path, all_needed):
    with debian_packages(["cod"], tmp_path, all_needed) as found:
        assert len(found) == 1


@pytest.mark.usefixtures("one_list_missing")
def test_nothing_is_left_out_because_a_list_is_missing(tmp_path):
    with pytest.raises(UserError, match="out of reach"), debian_packages(["cod", "eel"], tmp_path, all_needed=False):
        pass
    with pytest.raises(UserError, match="out of reach"), debian_descriptions(["en", "fr"], tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []
