"""Trained weights by name: fetched once into the cache, as a run folder or a folder in the layout of Hugging Face."""

import contextlib
import difflib
import hashlib
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from foveate.data.sources.cache import BeforeFetch, fetched
from foveate.data.sources.hub import is_hub_name
from foveate.errors import UserError


@dataclass(frozen=True)
class Weights:
    """Trained weights that can be had by name."""

    about: str
    """One line: what the model is, and where it comes from."""
    size: str
    """What is fetched the first time, such as "93 MB"."""
    licence: str
    module: str
    """The module of this package that fetches them. It is imported late: most import torch."""

    def fetch(self, before_fetch: BeforeFetch) -> Path:
        """The folder in the cache. `before_fetch` is called before something is fetched."""
        folder: Path = importlib.import_module(f"{__name__}.{self.module}").fetch(before_fetch)
        return folder


PRETRAINED = {
    "efficientnet-lite0": Weights(
        about="EfficientNet-Lite0, a small convolutional network that names 1,000 kinds of things, from a Python "
        "package",
        size="18 MB",
        licence="Apache-2.0; of the names of its classes, MIT",
        module="efficientnet",
    ),
    "minilm": Weights(
        about="all-MiniLM-L6-v2, a small BERT (6 blocks, width 384) for sentence embeddings, from a Python package",
        size="84 MB",
        licence="Apache-2.0",
        module="minilm",
    ),
    "smollm2": Weights(
        about="SmolLM2-135M-Instruct, a language model that follows prompts, in 4 bits, from a Python package",
        size="93 MB, 540 MB when converted",
        licence="Apache-2.0",
        module="smollm2",
    ),
    "whisper-tiny.en": Weights(
        about="Whisper tiny.en, which transcribes English speech (4+4 blocks, width 384), from a Python package",
        size="71 MB, 151 MB when converted",
        licence="MIT",
        module="whisper",
    ),
}
"""The weights by their names."""

GGUF = ".gguf"

ADAPTER, CONFIG = "adapter_config.json", "config.json"


def is_adapter(folder: Path) -> bool:
    """Whether a folder has an adapter of the peft library, and no model."""
    return (folder / ADAPTER).is_file() and not (folder / CONFIG).is_file()


def converted(path: Path, announce: Callable[[str], None]) -> Path:
    """The folder in the cache with the model of a GGUF file, in single precision. Raises UserError for a damaged file,
    and for a model that foveate does not read."""
    from foveate.interop.gguf import read_gguf
    from foveate.interop.gguf_llama import convert

    state = path.resolve().stat()
    key = hashlib.blake2b(f"{path.resolve()} {state.st_size} {state.st_mtime_ns}".encode(), digest_size=8).hexdigest()
    name = f"{path.stem}-{key}"
    before = lambda place: announce(f"converting {path} into {place}")  # noqa: E731
    return fetched(name, lambda folder: convert(read_gguf(path), folder), before)


def _no_model(folder: Path) -> UserError:
    """The error for what is no folder and no name, with the nearest folder beside it, or name."""
    known = [*PRETRAINED]
    with contextlib.suppress(OSError):  # perhaps of a folder that may not be listed
        known += [str(path) for path in folder.parent.iterdir() if (path / CONFIG).is_file()]
    near = difflib.get_close_matches(str(folder), known, n=1, cutoff=0.75)
    names = f"nor trained weights of this name ({', '.join(PRETRAINED)})"
    hint = f"did you mean {near[0]}?" if near else "a model of the hub is hub:ORGANISATION/NAME"
    return UserError(f"there is no folder {folder}, {names}; {hint}")


def locate(folder: Path | str, announce: Callable[[str], None] = lambda line: None) -> Path:
    """Returns the folder itself. For a name in PRETRAINED, of a hub's repository ("hub:org/name"), of a GGUF file
    or of an adapter of peft, returns the folder of these weights in the cache.

    `announce` receives a line before something is fetched or converted. Raises UserError for a name of nothing.
    """
    folder = Path(folder)
    if folder.is_file() and folder.suffix == GGUF:
        return converted(folder, announce)
    if is_adapter(folder):
        from foveate.interop.peft_merged import merged

        return merged(folder, announce)
    if folder.exists():
        return folder
    if is_hub_name(folder):
        from foveate.interop.pretrained.hub import fetch_model

        return fetch_model(str(folder), announce)
    if str(folder) not in PRETRAINED:
        raise _no_model(folder)
    found = PRETRAINED[str(folder)]

    def before_fetch(place: Path) -> None:
        announce(f"fetching {folder} ({found.size}; licence {found.licence}) into {place}")

    return found.fetch(before_fetch)
