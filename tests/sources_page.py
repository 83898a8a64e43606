"""Writes docs/sources.md: the data and the trained weights by name, as the program says.

    python tests/sources_page.py

`test_sources_page.py` compares the page with the program.
"""

import re
from pathlib import Path

from foveate.data.sources import SOURCES
from foveate.interop.pretrained import PRETRAINED

ROOT = Path(__file__).parents[1]

PAGE, TEMPLATE = ROOT / "docs" / "sources.md", Path(__file__).with_suffix(".md")

_ROW = re.compile(r"^\| \[([\w, -]+)\]\(docs/([^)]+)\)", re.MULTILINE)


def pages() -> dict[str, str]:
    """The page of each task that the table in the README links."""
    rows = _ROW.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    return {task: page for names, page in rows for task in names.split(", ")}


def sources() -> str:
    page = pages()
    rows = []
    for source in SOURCES.values():
        tasks = ", ".join(f"[{task}]({page[task]})" for task in source.tasks)
        languages = f"; {len(source.languages)} languages" if source.languages else ""
        rows.append(f"| `{source.name}` | {tasks} | {source.about}{languages} | {source.size} | {source.licence} |")
    return "\n".join(["| name | for | what it is | fetched | licence |", "| --- | --- | --- | --- | --- |", *rows])


def trained() -> str:
    rows = [f"| `{name}` | {found.about} | {found.size} | {found.licence} |" for name, found in PRETRAINED.items()]
    return "\n".join(["| name | what it is | fetched | licence |", "| --- | --- | --- | --- |", *rows])


def page() -> str:
    template = TEMPLATE.read_text(encoding="utf-8")
    return template.replace("{sources}", sources()).replace("{weights}", trained())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
