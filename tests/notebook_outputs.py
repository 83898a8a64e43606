"""Runs the notebooks of docs/notebooks in a kernel of Jupyter and stores what their cells show.

    python tests/notebook_outputs.py [NAME ...]

It needs ipykernel and jupyter_client. Pages of a look are left out: they are large, and GitHub runs no scripts. A
notebook's metadata keep a digest of its code, by which the tests know whether the outputs are those of that code.
"""

import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).parents[1] / "docs" / "notebooks"

LONGEST = 3600
"""Seconds of a cell."""

LARGEST = 300_000
"""Characters of one output, at most: of what is larger, only the plain text is stored."""

KINDS = ("image/png", "text/plain")
"""The kinds of values that are stored."""


def digest(cells: list[dict[str, Any]]) -> str:
    """A digest of the code of a notebook."""
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return hashlib.sha256("\n\0".join(code).encode()).hexdigest()[:16]


def store(path: Path) -> None:
    """Run a notebook and write its outputs into it."""
    from jupyter_client.manager import start_new_kernel

    notebook = json.loads(path.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        manager, client = start_new_kernel(kernel_name="python3", cwd=folder, env=dict(os.environ))
        try:
            count = 0
            for cell in notebook["cells"]:
                if cell["cell_type"] != "code":
                    continue
                count += 1
                cell["execution_count"], cell["outputs"] = count, []
                client.execute_interactive(
                    "".join(cell["source"]),
                    timeout=LONGEST,
                    output_hook=lambda message, cell=cell: add_output(cell["outputs"], message),
                )
                print(f"{path.stem}: {count}", flush=True)
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
    notebook["metadata"]["foveate"] = {"outputs_of": digest(notebook["cells"])}
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def add_output(outputs: list[dict[str, Any]], message: dict[str, Any]) -> None:
    """Add what a message of the kernel shows. Raises RuntimeError for an error in a cell."""
    kind, content = message["header"]["msg_type"], message["content"]
    if kind == "error":
        raise RuntimeError("\n".join(content["traceback"]))
    if kind == "stream" and content["name"] == "stdout":
        if outputs and outputs[-1]["output_type"] == "stream":
            outputs[-1]["text"] += content["text"]
        else:
            outputs.append({"output_type": "stream", "name": "stdout", "text": content["text"]})
    if kind in ("display_data", "execute_result"):
        data = {name: content["data"][name] for name in KINDS if name in content["data"]}
        data = {name: value for name, value in data.items() if name == "text/plain" or len(value) < LARGEST}
        shown = {"output_type": kind, "metadata": {}, "data": data}
        outputs.append({**shown, "execution_count": content["execution_count"]} if kind == "execute_result" else shown)


if __name__ == "__main__":
    for notebook in sorted(NOTEBOOKS.glob("*.ipynb")):
        if not sys.argv[1:] or notebook.stem in sys.argv[1:]:
            store(notebook)
