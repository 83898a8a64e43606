"""The words of 35 programs in many languages: their gettext catalogues, from Debian packages."""

from pathlib import Path, PurePosixPath

from foveate.data.sources.cache import BeforeFetch, fetched
from foveate.data.sources.debian import debian_packages, locale
from foveate.data.sources.libreoffice import LANGUAGES
from foveate.data.sources.packages import members
from foveate.data.sources.pair_files import read_parts, write_parts
from foveate.data.sources.source import Source
from foveate.data.sources.splits import Splits
from foveate.data.text.parallel_corpus import ParallelText
from foveate.files import workshop

PACKAGES = (
    *("aptitude-common", "audacity-data", "binutils-common", "blender-data", "cinnamon-l10n", "coreutils", "darktable"),
    *("digikam-data", "evolution-common", "evolution-data-server-common", "filezilla-common", "freeciv-data"),
    *(
        "gcc-12-locales",
        "gcc-14-locales",
        "gimp-data",
        "git",
        "gnome-control-center-data",
        "gnucash-common",
        "gnupg-l10n",
    ),
    *("gnumeric-common", "gramps", "inkscape", "iso-codes", "kdenlive-data", "kmymoney-common", "krita-l10n"),
    *("libgtk-3-common", "lyx-common", "mc-data", "nautilus-data", "pidgin-data", "tellico-data", "util-linux-locales"),
    "vlc-l10n",
)
"""Beside LibreOffice's own package for each language. No release has all of them."""

HELD_OUT = 0.01
"""Share of the pairs kept for dev, and again for test."""


def open_programs(source_language: str, target_language: str, before_fetch: BeforeFetch) -> Splits[ParallelText]:
    """The distinct messages, in random order."""
    name = f"gettext-debian-{source_language}-{target_language}"

    def fetch(folder: Path) -> None:
        _fetch(source_language, target_language, folder)

    return read_parts(fetched(name, fetch, before_fetch), name)


def _fetch(source_language: str, target_language: str, folder: Path) -> None:
    languages = [language for language in (source_language, target_language) if language != "en"]
    names = [*PACKAGES, *(f"libreoffice-l10n-{language}" for language in languages)]
    with (
        debian_packages(names, folder, all_needed=False) as packages,
        workshop(folder) as catalogues,
    ):
        for package in packages:
            for language in languages:
                _keep_catalogues(package, language, catalogues)
        pairs = ParallelText.from_catalogues([catalogues], source_language, target_language, folder.name)
        write_parts(pairs, HELD_OUT, folder)


def _keep_catalogues(package: Path, language: str, folder: Path) -> None:
    """Writes a language's catalogues out of a package as LANGUAGE/LC_MESSAGES/PACKAGE.PROGRAM.mo."""
    place = folder / locale(language) / "LC_MESSAGES"
    place.mkdir(parents=True, exist_ok=True)
    origin = package.name.partition("_")[0].removesuffix(f"-{language}")
    for path, content in members(package, f"*/{locale(language)}/LC_MESSAGES/*.mo"):
        (place / f"{origin}.{PurePosixPath(path).name}").write_bytes(content)


SOURCE = Source(
    name="gettext-debian",
    tasks=("translate", "match", "embed"),
    about="menus, messages and help of 35 programs, from Debian packages; large: a night to learn",
    size="about 220 MB",
    licence="each program's own, mostly GPL-2+ or GPL-3+, kept beside the text",
    open=open_programs,
    languages=LANGUAGES,
)
