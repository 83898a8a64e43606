"""Files of a repository of the Hugging Face hub, fetched once into the cache.

Only files that are asked for by name are fetched, and their sizes are checked before. Nothing of a repository is run.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from foveate.data.sources.cache import BeforeFetch, fetched
from foveate.errors import UserError

PREFIX = "hub:"

Kind = Literal["model", "dataset"]

MOST_FILES = 200
"""Files of one repository that are fetched."""

TIMEOUT = 30
"""Seconds to wait for an answer of the hub."""

OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
"""Environment variables by which huggingface_hub asks no network."""

_NAME = re.compile(r"(?:[A-Za-z0-9][\w.-]{0,95}/)?[A-Za-z0-9][\w.-]{0,95}")
_REVISION = re.compile(r"\w[\w./-]{0,99}")


@dataclass(frozen=True)
class Repository:
    """A repository by its name, "org/name", and a branch, tag or commit; None is the main branch."""

    name: str
    revision: str | None = None

    def __str__(self) -> str:
        return f"{PREFIX}{self.name}" + (f"@{self.revision}" if self.revision else "")

    def folder(self, kind: Kind) -> str:
        """The name of its folder in the cache."""
        words = ["hub", kind, *self.name.split("/"), *([self.revision.replace("/", "--")] if self.revision else [])]
        return "--".join(words)


@dataclass(frozen=True)
class HubFile:
    """A file of a repository: its path there, and its size in bytes."""

    path: str
    size: int


def is_hub_name(name: object) -> bool:
    """Returns whether a name or path begins with "hub:"."""
    return str(name).startswith(PREFIX)


def repository(name: str) -> Repository:
    """The repository of "hub:org/name" or "hub:org/name@revision". Raises UserError for what is none."""
    path, mark, revision = name.removeprefix(PREFIX).partition("@")
    named = _NAME.fullmatch(path) and ".." not in name and not path.endswith(".git")
    if not named or (mark and not _REVISION.fullmatch(revision)):
        raise UserError(f"{name} is not a name of a hub's repository; it is hub:ORGANISATION/NAME, or with @REVISION")
    return Repository(path, revision or None)


def fetch_files(
    found: Repository,
    kind: Kind,
    choose: Callable[[Sequence[HubFile]], Sequence[HubFile]],
    most: int,
    before_fetch: BeforeFetch,
    part: str = "",
) -> Path:
    """The folder in the cache with the files that `choose` takes of all that a repository has, `most` bytes in all.

    `part` names the choice, where a repository has several.

    What is in the cache is used without a network. Raises UserError, in one line, where there is no such repository,
    no network or no huggingface_hub, and for more than `most` bytes.
    """

    def fetch(folder: Path) -> None:
        with hub_client(found) as hub:
            endpoint = os.environ.get("HF_ENDPOINT") or None
            with_files = {"repo_type": kind, "revision": found.revision, "files_metadata": True, "timeout": TIMEOUT}
            info = hub.HfApi(endpoint=endpoint).repo_info(found.name, **with_files)
            listed = [HubFile(str(one.rfilename), int(one.size or 0)) for one in info.siblings or ()]
            chosen = choose([file for file in listed if _is_plain(file.path)])
            _check_sizes(found, chosen, most)
            where = {"repo_type": kind, "revision": info.sha, "local_dir": folder, "endpoint": endpoint}
            for file in chosen:
                path = Path(hub.hf_hub_download(found.name, file.path, **where))
                if path.stat().st_size != file.size:
                    raise UserError(f"{found}: {file.path} came with {path.stat().st_size:,} bytes, not {file.size:,}")
        shutil.rmtree(folder / ".cache", ignore_errors=True)  # notes of huggingface_hub about its downloads

    return fetched(found.folder(kind) + (f"--{part}" if part else ""), fetch, before_fetch)


@contextmanager
def hub_client(found: Repository) -> Iterator[Any]:
    """huggingface_hub, to ask for a repository or to send it one. Raises UserError for whatever it raises.

    Reading a Hugging Face folder imports it without a network (`interop.huggingface`). Here it has one, unless the
    environment forbids it.
    """
    try:
        import huggingface_hub.constants
    except ImportError:
        raise UserError("the hub needs the package huggingface_hub: pip install 'foveate[hub]'") from None
    constants, before = huggingface_hub.constants, huggingface_hub.constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = before and any(os.environ.get(name) for name in OFFLINE)
    try:
        yield huggingface_hub
    except UserError:
        raise
    except Exception as error:
        raise UserError(explain(found, error)) from None
    finally:
        constants.HF_HUB_OFFLINE = before


def explain(found: Repository, error: Exception) -> str:
    """Explains an error of huggingface_hub in one line."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if "GatedRepoError" in kinds:
        return f"{found} is open only to those who accepted its terms: accept them on its page, then `hf auth login`"
    if "RevisionNotFoundError" in kinds:
        return f"{found}: the repository has no such revision"
    if "RepositoryNotFoundError" in kinds:
        return f"the hub has no {found}, or it is private: `hf auth login` logs in"
    if "OfflineModeIsEnabled" in kinds:
        return f"{found}: {' or '.join(name for name in OFFLINE if os.environ.get(name))} is set, so no hub is asked"
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status in (401, 403):
        return f"the hub does not allow this for {found}: log in with `hf auth login`"
    told = (str(error).strip().splitlines() or [type(error).__name__])[0]
    if status is not None:
        return f"{found}: the hub answers with status {status}: {told}"
    where = os.environ.get("HF_ENDPOINT") or "the hub"
    return f"{found}: cannot reach {where} (is the network up?): {told}"


def _is_plain(path: str) -> bool:
    """Returns whether a path stays in its folder and can be a file of it on every system."""
    parts = path.split("/")
    return not set("\\:\0") & set(path) and all(part not in ("", ".", "..") for part in parts) and len(path) < 250


def _check_sizes(found: Repository, files: Sequence[HubFile], most: int) -> None:
    if len(files) > MOST_FILES:
        raise UserError(f"{found} has {len(files):,} files to fetch; the limit is {MOST_FILES}")
    total = sum(file.size for file in files)
    if total > most:
        raise UserError(f"{found} has {total / 2**20:,.0f} MiB to fetch; the limit is {most // 2**20:,} MiB")
