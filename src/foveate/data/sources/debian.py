"""What Debian has: its packages, and its descriptions of them in many languages; fetched without being root."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from foveate.data.sources.packages import members, run
from foveate.errors import UserError
from foveate.files import workshop


@contextmanager
def debian_packages(names: Sequence[str], folder: Path, all_needed: bool = True) -> Iterator[list[Path]]:
    """Debian packages, of the versions of the user's release, for as long as the context lasts.

    Their licences stay: `NAME.copyright` in the folder. Where not all are needed, those that the release does not have
    are left out. Raises UserError when they cannot be fetched, or when nobody knows which there are; apt checks what
    comes.
    """
    needed = f"{' and '.join(names)} come as Debian packages" if all_needed else "it is made of Debian packages"
    with _apt(needed, folder) as apt:
        if not all_needed:
            names = apt.known(names)
        packages = apt.download(names)
        for name, package in zip(names, packages, strict=True):
            for _, licence in members(package, f"usr/share/doc/{name}/copyright"):
                (folder / f"{name}.copyright").write_bytes(licence)
        yield packages


@contextmanager
def debian_descriptions(languages: Sequence[str], folder: Path) -> Iterator[list[list[Path]]]:
    """The files with the descriptions of all packages in each language, for as long as the context lasts.

    A file is a row of paragraphs with the fields Package, Description-md5 and Description-LANGUAGE. Raises UserError
    when one of them cannot be fetched.
    """
    with _apt("Debian's descriptions are read by apt", folder, languages) as apt:
        apt.check()
        yield [sorted(apt.lists.glob(f"*_Translation-{language}")) for language in languages]


def locale(language: str) -> str:
    """Returns Debian's and gettext's name of a language: "pt_BR" for "pt-br", "fr" for "fr"."""
    name, _, region = language.partition("-")
    return f"{name}_{region.upper()}" if region else name


class _Apt:
    """apt, with its lists of packages and its archives under a folder instead of /var."""

    def __init__(self, folder: Path, languages: Sequence[str]) -> None:
        """Fetches the lists, with the packages' descriptions in the `languages`."""
        self.lists = folder / "state/lists"
        self._folder = folder
        archives = folder / "cache/archives"
        for place in (self.lists, archives):
            (place / "partial").mkdir(parents=True)
        options = {
            "Acquire::Languages": ",".join(languages) or "none",
            "Acquire::GzipIndexes": "false",
            "APT::Update::Error-Mode": "any",
            "Dir::State": self.lists.parent,
            "Dir::State::Lists": self.lists,
            "Dir::Cache": archives.parent,
        }
        self._options = ["-qq", *(word for name, value in options.items() for word in ("-o", f"{name}={value}"))]
        self._trouble: UserError | None = None
        try:
            self._run(["apt-get", "update"], "read Debian's lists of packages (is the network up?)")
        except UserError as error:
            self._trouble = error  # one list of many may be out of reach, and not the one needed

    def check(self) -> None:
        """Raise UserError where a list could not be fetched."""
        if self._trouble:
            raise self._trouble

    def known(self, names: Sequence[str]) -> list[str]:
        """Those of the names that packages have. Raises UserError where one may be in a list that did not come."""
        there = set(self._run(["apt-cache", "pkgnames"], "list Debian's packages").split())
        if not there.issuperset(names):
            self.check()
        return [name for name in names if name in there]

    def download(self, names: Sequence[str]) -> list[Path]:
        try:
            self._run(["apt-get", "download", *names], f"fetch {' and '.join(names[:3])} (is the network up?)")
            return [next(self._folder.glob(f"{name}_*.deb")) for name in names]
        except UserError as error:
            raise self._trouble or error from None

    def _run(self, command: Sequence[str], purpose: str) -> str:
        program, *words = command
        return run([program, *self._options, *words], purpose, self._folder)


@contextmanager
def _apt(needed: str, folder: Path, languages: Sequence[str] = ()) -> Iterator[_Apt]:
    """apt in a folder of its own, which is removed in the end."""
    if not shutil.which("apt-get"):
        raise UserError(
            f"{needed}, which need apt-get, and this machine has none; train on text of your own with --data"
        )
    with workshop(folder) as work:
        yield _Apt(work, languages)
