"""One page about a training: its settings, its curves and what was measured, for any browser and without a network."""

import base64
import html
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foveate.contracts import Picture

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
h1 { font-size: 1.5rem } h2 { font-size: 1.1rem; margin-top: 2rem }
table { border-collapse: collapse } td, th { padding: .15rem 1rem .15rem 0; text-align: left; vertical-align: top }
figure { display: inline-block; margin: 0 1rem 1rem 0 } img { max-width: 100%; width: 29rem }
details { margin-top: 1rem }
@media (prefers-color-scheme: dark) { body { background: #16181d; color: #ddd } img { background: #fff } }
"""


@dataclass
class Section:
    """A part of the page: rows of a table, or pictures with what stands below them."""

    title: str
    rows: Sequence[Sequence[str]] = ()
    pictures: Sequence[tuple[str, Picture]] = ()
    folded: bool = False
    """Whether it opens with a click."""


def report_page(title: str, summary: str, sections: Sequence[Section]) -> str:
    """The page as HTML; every text is escaped."""
    parts = "".join(_section(section) for section in sections)
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{STYLE}</style>'
    return (
        f'<!doctype html><html lang="en"><head>{head}</head>'
        f"<body><h1>{html.escape(title)}</h1><p>{html.escape(summary)}</p>{parts}</body></html>\n"
    )


def flat(values: Mapping[str, Any], before: str = "") -> list[tuple[str, str]]:
    """Nested settings as rows: "training.steps", "800"."""
    rows = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            rows += flat(value, f"{before}{name}.")
        else:
            rows.append((f"{before}{name}", str(value)))
    return rows


def _section(section: Section) -> str:
    rows = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in section.rows)
    table = f"<table>{rows}</table>" if rows else ""
    pictures = "".join(
        f'<figure><img alt="{html.escape(below)}" src="data:image/png;base64,{_encoded(picture)}">'
        f"<figcaption>{html.escape(below)}</figcaption></figure>"
        for below, picture in section.pictures
    )
    title = html.escape(section.title)
    if section.folded:
        return f"<details><summary>{title}</summary>{table}{pictures}</details>"
    return f"<h2>{title}</h2>{table}{pictures}"


def _encoded(picture: Picture) -> str:
    file = io.BytesIO()
    picture.savefig(file, format="png", dpi=130)
    return base64.b64encode(file.getvalue()).decode("ascii")
