"""Makes a page of the site of each notebook, with the outputs that it holds (a hook of mkdocs)."""

import json
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

FOLDER = Path(__file__).parent

FENCE = "````"
"""Around code, which may hold fences of its own."""


def on_files(files: Files, config: Any) -> Files:
    """Add the pages, whose links are those of the notebooks."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        content = page(json.loads(path.read_text(encoding="utf-8")), path.name)
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=content))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links to notebooks lead to their pages."""
    return markdown.replace(".ipynb)", ".md)")


def page(notebook: dict[str, Any], name: str) -> str:
    """A notebook as Markdown: its text, its code, and what each cell shows."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source.replace("<details>", '<details markdown="1">'))
        else:
            parts += [fenced("python", source), *shown(cell["outputs"])]
    title, _, rest = "\n\n".join(parts).partition("\n")
    return f"{title}\n\n*This page is the notebook `docs/notebooks/{name}`, which you can run and change.*\n{rest}\n"


def shown(outputs: list[dict[str, Any]]) -> list[str]:
    """What a cell shows: pictures, and the texts between them."""
    parts, texts = [], []
    for output in outputs:
        data = output.get("data", {})
        picture = data.get("image/png")
        if picture is None:
            texts.append("".join(output.get("text", data.get("text/plain", ""))).rstrip())
            continue
        parts += [fenced("text", "\n".join(texts))] * bool(texts)
        parts.append(f"![What the cell draws](data:image/png;base64,{''.join(picture).strip()})")
        texts = []
    return [*parts, *[fenced("text", "\n".join(texts))] * bool(texts)]


def fenced(language: str, text: str) -> str:
    return f"{FENCE}{language}\n{text}\n{FENCE}"
