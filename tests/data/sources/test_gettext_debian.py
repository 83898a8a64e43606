"""Catalogues out of packages made here."""

from contextlib import contextmanager

import pytest
from archives import write_archive
from catalogue_maker import write_mo

from foveate.data.sources import gettext_debian, open_source

PROGRAMS = {
    "fish-data": {"fr": {"Open": "Ouvrir", "Close": "Fermer", "OK": "OK"}, "pt_BR": {"Open": "Abrir"}},
    "bird": {"fr": {"Close": "Fermer", "Fly": "Voler"}, "pt_BR": {"Fly": "Voar"}},
    "libreoffice-l10n-fr": {"fr": {"~Cut": "Couper"}},
    "libreoffice-l10n-pt-br": {"pt_BR": {"~Cut": "Recortar"}},
}

NUMBERS = range(293)
"""Messages enough that some are held out."""


@pytest.fixture
def asked(tmp_path, monkeypatch):
    asked = []

    @contextmanager
    def packages(names, folder, all_needed):
        assert not all_needed
        asked.append(names)
        places = []
        for name, languages in PROGRAMS.items():
            if name in names:
                contents = {}
                for language, messages in languages.items():
                    many = {f"Fish {number}": f"{language} {number}" for number in NUMBERS}
                    content = write_mo(tmp_path / "x.mo", {**messages, **many}).read_bytes()
                    contents[f"usr/share/locale/{language}/LC_MESSAGES/x.mo"] = content
                places.append(folder / f"{name}_1.0_all.tgz")
                write_archive(places[-1], contents)
        yield places

    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(gettext_debian, "debian_packages", packages)
    monkeypatch.setattr(gettext_debian, "HELD_OUT", 0.1)
    monkeypatch.setattr(gettext_debian, "PACKAGES", ("fish-data", "bird", "not-there"))
    return asked


def pairs(*languages):
    splits = open_source("gettext-debian", *languages, announce=lambda _: None)
    found = {pair for text in (splits.train, splits.dev, splits.test) for pair in text}
    return sorted(pair for pair in found if not pair[1][-1].isdigit())


def test_messages_of_all_packages(asked, tmp_path):
    expected = [("Close", "Fermer"), ("Cut", "Couper"), ("Fly", "Voler"), ("Open", "Ouvrir")]
    assert pairs("en", "fr") == expected
    assert asked == [["fish-data", "bird", "not-there", "libreoffice-l10n-fr"]]
    report = (tmp_path / "cache/gettext-debian-en-fr/report.txt").read_text()
    assert report == "gettext-debian-en-fr: 297 pairs; left out: 587 repeated, 1 untranslated\n"
    assert pairs("en", "fr") == expected
    assert len(asked) == 1


def test_two_translations(asked):
    assert pairs("fr", "pt-br") == [("Couper", "Recortar"), ("Ouvrir", "Abrir"), ("Voler", "Voar")]
    assert asked[0][-2:] == ["libreoffice-l10n-fr", "libreoffice-l10n-pt-br"]
