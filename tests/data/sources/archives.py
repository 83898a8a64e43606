"""Packages made by hand: wheels, .tar.gz and .tgz, and Debian's."""

import io
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path


def write_archive(path: Path, contents: Mapping[str, str | bytes]) -> None:
    """A package of the kind that the path's ending says, with these texts or bytes under these names."""
    files = {name: content if isinstance(content, bytes) else content.encode() for name, content in contents.items()}
    if path.suffix == ".deb":
        path.write_bytes(_debian(files))
    elif path.suffix == ".whl":
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
    else:
        path.write_bytes(_tar(files))


def packages_in(folder: Path) -> Callable[[list[str], Path], AbstractContextManager[list[Path]]]:
    """What stands for `debian_packages`: it finds `NAME.deb` in a folder."""

    @contextmanager
    def packages(names: list[str], _: Path) -> Iterator[list[Path]]:
        yield [folder / f"{name}.deb" for name in names]

    return packages


def _tar(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def _debian(files: Mapping[str, bytes]) -> bytes:
    """An `ar` archive of three files, see deb(5)."""
    control = {"./control": b"Package: fish\nVersion: 1\nArchitecture: all\nMaintainer: nobody\nDescription: fish\n"}
    parts = {
        "debian-binary": b"2.0\n",
        "control.tar.gz": _tar(control),
        "data.tar.gz": _tar({f"./{name}": content for name, content in files.items()}),
    }
    packed = b"!<arch>\n"
    for name, content in parts.items():
        packed += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode()
        packed += content + b"\n" * (len(content) % 2)
    return packed
