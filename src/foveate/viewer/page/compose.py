"""Writes a document as one HTML file and reads it back. The file has foveate's own code and blocks of data.

Nothing from a document can be executed. It is in blocks that browsers do not run, as JSON without < > & or in an
encoding without them. The scripts insert it as text only. A content security policy allows only scripts with known
hashes and no requests.
"""

import base64
import binascii
import hashlib
import html
import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import cache
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from foveate.config import from_dict
from foveate.errors import UserError
from foveate.files import parse_json, written
from foveate.viewer.document import Document
from foveate.viewer.page import base85
from foveate.viewer.page.header import Head, make_head, restore_document
from foveate.viewer.page.packing import pack
from foveate.viewer.sides import picture_type

STYLES = (
    "base.css",
    "bar.css",
    "overview.css",
    "pieces.css",
    "effects.css",
    "head.css",
    "beside.css",
    "views.css",
    "picture.css",
    "details.css",
    "narrow.css",
)
"""In the order of the page: a later file overrides earlier ones."""

SCRIPTS = (
    "basics.js",
    "cells.js",
    "windows.js",
    "colours.js",
    "diverging.js",
    "source.js",
    "means.js",
    "measures.js",
    "decided.js",
    "parts.js",
    "head.js",
    "layers.js",
    "player.js",
    "tip.js",
    "inputs.js",
    "effects.js",
    "groups.js",
    "overview.js",
    "camera.js",
    "axes.js",
    "ground.js",
    "heatmap.js",
    "tokens.js",
    "lines.js",
    "overlays.js",
    "points.js",
    "picture.js",
    "details.js",
    "search.js",
    "links.js",
    "steps.js",
    "beside.js",
    "stage.js",
    "keyboard.js",
    "page.js",
)
"""In the order of the page, inside one function: each may use the names of earlier files."""

BLOCKS = ("maps", "rows", "points", "signs")
"""What a page may have of each site."""

EMBEDDED = "show(new EmbeddedSource(document));"

JSON, BINARY = "application/json", "application/octet-stream;base85"
"""Types of blocks; pictures are in base64, which browsers can read."""

_BLOCK = re.compile(r'<script type="([a-z0-9/;-]+)" id="([a-z]+(?:-\d+)?)">([^<]*)</script>')


class PageData(NamedTuple):
    """Data in a page: a script element that browsers do not run."""

    name: str
    type: str
    data: bytes

    def __str__(self) -> str:
        if self.type == JSON:
            text = self.data.decode("ascii")
        else:
            text = base85.encode(self.data) if self.type == BINARY else base64.b64encode(self.data).decode("ascii")
        return f'<script type="{self.type}" id="{self.name}">{text}</script>'


def to_html(document: Document) -> str:
    """The page as one self-contained HTML text."""
    head, pictures = make_head(document)
    packed = [pack(panel) for panel in document.sites]
    blocks = [PageData("document", JSON, head_json(head).encode())]
    blocks += [PageData(f"picture-{place}", picture_type(data), data) for place, data in enumerate(pictures)]
    for name in BLOCKS:
        blocks += [
            PageData(f"{name}-{place}", BINARY, parts[name]) for place, parts in enumerate(packed) if name in parts
        ]
    return compose(document.title, blocks)


def save(path: Path | str, document: Document) -> None:
    """Write the page to a file, or to the target of a link.

    Raises UserError if the file cannot be written; an older file is then kept.
    """
    with written(Path(os.path.realpath(path)) if os.path.islink(path) else Path(path)) as unfinished:
        unfinished.write_text(to_html(document), encoding="utf-8", newline="\n")


def to_iframe(document: Document, height: int = 760) -> str:
    """The page as a sandboxed iframe for notebooks, `height` pixels high, isolated from the notebook."""
    inner = html.escape(to_html(document))
    style = f"width:100%;height:{height}px;border:0;border-radius:8px"
    name = html.escape(_valid_text(document.title))
    return f'<iframe title="{name}" sandbox="allow-scripts" style="{style}" srcdoc="{inner}"></iframe>'


def read(path: Path | str) -> Document:
    """Read a page that `save` wrote, without running it. Weights have the precision of the page.

    Raises UserError for a file that is not such a page, or is damaged.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"could not read {path}: {error.strerror}") from None
    except ValueError:
        raise UserError(f"{path} is not a page of foveate: it is not a text file") from None
    found = {name: (kind, data) for kind, name, data in _BLOCK.findall(text)}
    if "document" not in found:
        raise UserError(f"{path} is not a page of foveate: it has no block 'document'")

    def data(name: str) -> bytes:
        kind, content = found[name]
        return base85.decode(content) if kind == BINARY else base64.b64decode(content, validate=True)

    def blocks(place: int) -> dict[str, bytes]:
        return {name: data(f"{name}-{place}") for name in BLOCKS if f"{name}-{place}" in found}

    try:
        head = from_dict(Head, parse_json(found["document"][1], "the page", strict=False), "the page")
        return restore_document(head, lambda place: data(f"picture-{place}"), blocks)
    except (UserError, binascii.Error) as error:
        raise UserError(f"{path}: {error}") from None


def compose(
    title: str,
    blocks: Iterable[PageData],
    scripts: Sequence[str] = (),
    begin: str = EMBEDDED,
    connect: str = "'none'",
    styles: Sequence[str] = (),
) -> str:
    """The HTML text of a page: foveate's styles and scripts, the blocks, and the statement that starts it.

    A server passes more `scripts` and `styles`, which define another source of data than the blocks; `begin`, which
    starts the page with that source; and `connect`, where the page may send requests, as in a content security policy.
    """
    style = "\n".join([*map(read_asset, STYLES), *styles])
    script = "\n".join(['"use strict";', "(() => {", *map(read_asset, SCRIPTS), *scripts, begin, "})();", ""])
    policy = {
        "default-src": "'none'",
        "script-src": _hash(script),
        "style-src": _hash(style),
        "img-src": "data:",
        "connect-src": connect,
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    filling = {
        "policy": "; ".join(f"{what} {where}" for what, where in policy.items()),
        "title": html.escape(_valid_text(title)),
        "style": style,
        "blocks": "\n".join(map(str, blocks)),
        "script": script,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: filling[found[1]], read_asset("page.html"))


def head_json(head: Head) -> str:
    """ASCII JSON without characters that could end the element, for any tokens."""
    text = json.dumps(asdict(head), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def read_asset(name: str) -> str:
    """The text of a file in `assets`."""
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def _valid_text(text: str) -> str:
    """Replace lone surrogates, which a token may have but a file may not."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
