"""Models of the hub by name, such as hub:openai-community/gpt2: weights, settings and tokenizers, nothing else."""

from collections.abc import Callable, Sequence
from pathlib import Path

from foveate import limits
from foveate.data.sources.hub import HubFile, fetch_files, repository
from foveate.errors import UserError
from foveate.interop.weight_files import INDEX, WHOLE

WEIGHTS = 32 * 2**30
"""Bytes of a model that are fetched."""

TOKENIZERS = ("vocab.txt", "merges.txt", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model")
"""Files of tokenizers that are neither JSON nor safetensors: lists of words, and sentencepiece's tables."""


def fetch_model(name: str, announce: Callable[[str], None]) -> Path:
    """The folder in the cache of "hub:org/name". Raises UserError, in one line, as `fetch_files` does, and for a
    repository without safetensors."""
    found = repository(name)

    def before_fetch(place: Path) -> None:
        announce(f"fetching {found} into {place}; see the licence on its page")

    return fetch_files(found, "model", lambda files: _choose(str(found), files), WEIGHTS, before_fetch)


def _choose(name: str, files: Sequence[HubFile]) -> list[HubFile]:
    """The files of the model itself, not those of other layouts in folders below."""
    top = [file for file in files if "/" not in file.path]
    names = {file.path for file in top}
    settings = [file for file in top if file.path.endswith(".json") or file.path in TOKENIZERS]
    weights = [file for file in top if file.path.endswith(".safetensors")]
    if WHOLE in names:  # others beside it are the same in shards, or adapters
        weights = [file for file in weights if file.path == WHOLE]
        settings = [file for file in settings if file.path != INDEX]
    if "config.json" not in names:
        raise UserError(f"{name} has no config.json: it is not a model that foveate reads")
    if not weights:
        raise UserError(f"{name} has no weights as .safetensors; other formats may run code, and are not fetched")
    for file in settings:
        if file.size > limits.FILE:
            size = f"{file.size / 2**20:,.0f} MiB"
            raise UserError(f"{name}: {file.path} has {size}; the limit is {limits.FILE // 2**20} MiB")
    return [*settings, *weights]
