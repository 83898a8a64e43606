"""Folders of catalogues: which are found, how two languages are joined, what is counted."""

import shutil
import tempfile

import pytest
from catalogue_maker import write_mo, write_po

from foveate.data.gettext.catalogues import Catalogues
from foveate.errors import UserError
from foveate.files import UNFINISHED

FRENCH = {"_Open": "_Ouvrir", "Close": "Fermer", "OK": "OK", "%s": "%s !", "menu\x04Close": "Fermer"}
GERMAN = {"_Open": "Ö_ffnen", "Save": "Sichern", "menu\x04Close": "Zumachen"}


@pytest.fixture
def folder(tmp_path):
    write_mo(tmp_path / "fr/LC_MESSAGES/fish.mo", FRENCH)
    write_mo(tmp_path / "de/LC_MESSAGES/fish.mo", GERMAN)
    write_mo(tmp_path / "fr_FR/LC_MESSAGES/fish.mo", {"Lost": "Perdu"})
    write_mo(tmp_path / "fr_FR/LC_MESSAGES/bird.mo", {"Close": "Fermer", "Fly": "Voler"})
    return tmp_path


def test_from_and_to_english(folder):
    catalogues = Catalogues([folder], "en", "fr")
    pairs = [("Close", "Fermer"), ("Fly", "Voler"), ("Open", "Ouvrir")]
    for _ in range(2):
        assert sorted(catalogues()) == pairs
        assert catalogues.left_out == {"untranslated": 1, "without words": 1, "repeated": 2}
    assert sorted(Catalogues([folder], "fr", "en")()) == sorted(pair[::-1] for pair in pairs)


def test_cleaned_once(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    catalogues = Catalogues([folder], "en", "fr")
    next(catalogues())
    whole = list(catalogues())
    shutil.rmtree(folder / "fr")
    assert list(catalogues()) == whole
    assert len(list(tmp_path.glob(f"{UNFINISHED}*"))) == 2
    del catalogues
    assert list(tmp_path.glob(f"{UNFINISHED}*")) == []


def test_two_translations_are_joined_by_context_and_id(folder):
    assert sorted(Catalogues([folder], "fr", "de")()) == [("Fermer", "Zumachen"), ("Ouvrir", "Öffnen")]


@pytest.mark.parametrize(
    "path", ["fr.po", "po/fr.po", "po/FR.po", "fr/fish.po", "x/fr_FR/a/fish.mo", "fr.UTF-8/LC_MESSAGES/fish.mo"]
)
def test_where_catalogues_are_found(tmp_path, path):
    if path.endswith(".po"):
        write_po(tmp_path / path, 'msgid "Open"\nmsgstr "Ouvrir"\n')
    else:
        write_mo(tmp_path / path, {"Open": "Ouvrir"})
    assert list(Catalogues([tmp_path], "en", "fr")()) == [("Open", "Ouvrir")]


def test_the_folder_itself_may_be_the_language_s(folder, tmp_path):
    for place in (folder / "fr", folder / "fr/LC_MESSAGES"):
        assert len(list(Catalogues([place], "en", "fr")())) == 2


def test_regions_have_two_names(tmp_path):
    write_mo(tmp_path / "pt_BR/LC_MESSAGES/fish.mo", {"Open": "Abrir"})
    assert list(Catalogues([tmp_path], "en", "pt-br")()) == [("Open", "Abrir")]


def test_several_folders(tmp_path):
    write_mo(tmp_path / "one/fr.mo", {"Open": "Ouvrir"})
    write_mo(tmp_path / "two/fr.mo", {"Close": "Fermer"})
    assert len(list(Catalogues([tmp_path / "one", tmp_path / "two"], "en", "fr")())) == 2


def test_damaged_files_are_counted(folder):
    (folder / "fr_FR/LC_MESSAGES/bird.mo").write_bytes(b"bird")
    catalogues = Catalogues([folder], "en", "fr")
    assert sorted(catalogues()) == [("Close", "Fermer"), ("Open", "Ouvrir")]
    assert catalogues.left_out["damaged files"] == 1


@pytest.mark.parametrize(
    ("languages", "complaint"),
    [
        (("en", "fx"), r"unknown language of the catalogues below .*'fx'; did you mean fr"),
        (("en", "en"), "source and target language are both 'en'"),
        (("fr", "it"), "no program below .* is translated into both fr and it"),
    ],
)
def test_languages_that_are_not_there(folder, languages, complaint):
    write_mo(folder / "it/LC_MESSAGES/tree.mo", {"Open": "Apri"})
    with pytest.raises(UserError, match=complaint):
        Catalogues([folder], *languages)


def test_a_folder_without_catalogues(tmp_path):
    with pytest.raises(UserError, match=r"^there are no gettext catalogues \(\.mo or \.po files\) below "):
        Catalogues([tmp_path], "en", "fr")


def test_no_space_for_the_temporary_file(folder, tmp_path, monkeypatch, full_disk):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with (
        pytest.raises(UserError, match=rf"^cannot write into {tmp_path}: File too large; TMPDIR can name another"),
        full_disk(5),
    ):
        list(Catalogues([folder], "en", "fr")())
