"""The page of a gallery: pictures with captions and commands, as HTML that needs no network."""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
h1 { font-size: 1.5rem } h2 { font-size: 1.1rem; margin: 2.5rem 0 .3rem }
img { max-width: 100%; background: #fff } iframe { width: 100%; height: 36rem; border: 1px solid #bbb }
pre { background: #f3f3f5; padding: .5rem .8rem; white-space: pre-wrap; overflow-wrap: anywhere; font-size: .85rem }
.problem { color: #b00020 } .page { color: #666; font-size: .85rem }
@media (prefers-color-scheme: dark) { body { background: #16181d; color: #ddd } pre { background: #24272e } }
"""


@dataclass(frozen=True)
class GalleryEntry:
    """A picture on the page. `files` are paths from the page, of pictures and of pages (.html)."""

    name: str
    shows: str
    commands: Sequence[str]
    files: Sequence[str]
    page: str
    problem: str = ""


def gallery_page(entries: Sequence[GalleryEntry]) -> str:
    """The page as HTML; every text is escaped, and every path is quoted."""
    head = f'<meta charset="utf-8"><title>foveate: gallery</title><style>{STYLE}</style>'
    body = "".join(_section(entry) for entry in entries)
    about = "<p>Each picture was made by the commands below it.</p>"
    return f'<!doctype html><html lang="en"><head>{head}</head><body><h1>Gallery</h1>{about}{body}</body></html>\n'


def _section(entry: GalleryEntry) -> str:
    shows = html.escape(entry.shows)
    files = "".join(_file(name, shows) for name in entry.files)
    problem = f'<p class="problem">{html.escape(entry.problem)}</p>' if entry.problem else ""
    commands = html.escape("\n".join(entry.commands))
    page = f'<p class="page">Explained in {html.escape(entry.page)}</p>'
    return f"<h2>{html.escape(entry.name)}</h2><p>{shows}</p>{problem}{files}<pre>{commands}</pre>{page}"


def _file(name: str, shows: str) -> str:
    path = html.escape(quote(name))
    if name.endswith(".html"):
        return f'<iframe src="{path}" title="{shows}" loading="lazy"></iframe><p><a href="{path}">whole page</a></p>'
    return f'<p><img src="{path}" alt="{shows}"></p>'
