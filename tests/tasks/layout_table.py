"""Writes docs/layouts.md: which tasks read each layout of public data, as the program says.

    python tests/tasks/layout_table.py

`test_every_layout.py` compares the page with the program.
"""

from pathlib import Path

from foveate.data.layout import FOLDERS, TABLES
from foveate.tasks import TASKS, find_task

PAGE = Path(__file__).parents[2] / "docs" / "layouts.md"

TEMPLATE = Path(__file__).with_suffix(".md")
"""The page around its table."""


def page() -> str:
    tasks: dict[str, list[str]] = {}
    files: dict[str, str] = {}
    for name in TASKS:
        for layout in find_task(name).layouts:
            tasks.setdefault(layout.name, []).append(f"`{name}`")
            files[layout.name] = layout.files
    tasks |= {FOLDERS.name: ["all whose data are a folder"], TABLES.name: ["all that read [tables](tables.md)"]}
    files |= {layout.name: layout.files for layout in (FOLDERS, TABLES)}
    rows = [f"| {name} | {', '.join(own)} | {files[name]} |" for name, own in tasks.items()]
    table = "\n".join(["| layout | tasks | names |", "| --- | --- | --- |", *rows])
    return TEMPLATE.read_text(encoding="utf-8").replace("{table}", table)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
