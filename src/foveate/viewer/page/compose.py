"""One HTML file of it all, and back: the page's own text, and in it what it shows as blocks of data.

Nothing that comes from a document can be run. It stands in blocks that no browser executes, as JSON without any of
< > & or as other harmless letters; the scripts put it on the page as text only; and a policy at the page's head lets
nothing run but the scripts whose hash it names, and loads nothing.
"""

import base64
import binascii
import hashlib
import html as markup
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
from foveate.files import written
from foveate.viewer.document import Document
from foveate.viewer.page import base85
from foveate.viewer.page.header import Head, document_of, head_of
from foveate.viewer.page.packing import pack
from foveate.viewer.sides import picture_type

STYLES = ("base.css", "bar.css", "overview.css", "head.css", "views.css", "details.css", "narrow.css")
"""In the order in which they stand in the page: a later one may say otherwise than one before it."""

SCRIPTS = (
    "basics.js",
    "cells.js",
    "windows.js",
    "colours.js",
    "source.js",
    "head.js",
    "tip.js",
    "overview.js",
    "camera.js",
    "axes.js",
    "ground.js",
    "heatmap.js",
    "tokens.js",
    "lines.js",
    "overlays.js",
    "picture.js",
    "details.js",
    "search.js",
    "stage.js",
    "keyboard.js",
    "page.js",
)
"""In the order in which they stand in the page, inside one function: each may use the names of those before it."""

EMBEDDED = "show(new EmbeddedSource(document));"

JSON, BINARY = "application/json", "application/octet-stream;base85"
"""How blocks are written; pictures, as browsers want them, in base64."""

_BLOCK = re.compile(r'<script type="([a-z0-9/;-]+)" id="([a-z]+(?:-\d+)?)">([^<]*)</script>')


class Block(NamedTuple):
    """Data in a page: an element that no browser runs."""

    name: str
    type: str
    data: bytes

    def __str__(self) -> str:
        if self.type == JSON:
            text = self.data.decode("ascii")
        else:
            text = base85.encode(self.data) if self.type == BINARY else base64.b64encode(self.data).decode("ascii")
        return f'<script type="{self.type}" id="{self.name}">{text}</script>'


def html(document: Document) -> str:
    """The page as one self-contained text."""
    head, pictures = head_of(document)
    packed = [pack(panel) for panel in document.sites]
    blocks = [Block("document", JSON, dumps(head).encode())]
    blocks += [Block(f"picture-{place}", picture_type(data), data) for place, data in enumerate(pictures)]
    for name in ("maps", "rows"):
        blocks += [Block(f"{name}-{place}", BINARY, parts[name]) for place, parts in enumerate(packed) if name in parts]
    return compose(document.title, blocks)


def save(path: Path | str, document: Document) -> None:
    """Write the page to a file, or to what a link leads to. Raises UserError where the disk refuses; an older file is
    then still there."""
    with written(Path(os.path.realpath(path)) if os.path.islink(path) else Path(path)) as unfinished:
        unfinished.write_text(html(document), encoding="utf-8", newline="\n")


def frame(document: Document, height: int = 760) -> str:
    """The page as an element for a notebook, so many pixels high: it can neither reach the notebook nor be reached."""
    inner = markup.escape(html(document))
    style = f"width:100%;height:{height}px;border:0;border-radius:8px"
    name = markup.escape(_ascii(document.title))
    return f'<iframe title="{name}" sandbox="allow-scripts" style="{style}" srcdoc="{inner}"></iframe>'


def read(path: Path | str) -> Document:
    """The document of a page that `save` wrote: its weights as exact as the page has them; nothing in it is run.

    Raises UserError for a file that is no such page, or is damaged.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"could not read {path}: {error.strerror}") from None
    except ValueError:
        raise UserError(f"{path} is no page of foveate: it is no text") from None
    found = {name: (kind, data) for kind, name, data in _BLOCK.findall(text)}
    if "document" not in found:
        raise UserError(f"{path} is no page of foveate: it has no block 'document'")

    def data(name: str) -> bytes:
        kind, content = found[name]
        return base85.decode(content) if kind == BINARY else base64.b64decode(content, validate=True)

    def blocks(place: int) -> dict[str, bytes]:
        return {name: data(f"{name}-{place}") for name in ("maps", "rows") if f"{name}-{place}" in found}

    try:
        head = from_dict(Head, json.loads(found["document"][1]), "the page")
        return document_of(head, lambda place: data(f"picture-{place}"), blocks)
    except (UserError, binascii.Error, json.JSONDecodeError, RecursionError) as error:
        raise UserError(f"{path}: {error}") from None


def compose(
    title: str,
    blocks: Iterable[Block],
    scripts: Sequence[str] = (),
    begin: str = EMBEDDED,
    connect: str = "'none'",
    styles: Sequence[str] = (),
) -> str:
    """The text of a page: foveate's own style and scripts, the blocks, and how it begins.

    A server gives `scripts` and `styles` of its own, which define another source than the blocks of the page, `begin`,
    which starts the page with it, and in `connect` where the page may send requests to, as a content security policy
    writes it.
    """
    style = "\n".join([*map(asset, STYLES), *styles])
    script = "\n".join(['"use strict";', "(() => {", *map(asset, SCRIPTS), *scripts, begin, "})();", ""])
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
        "title": markup.escape(_ascii(title)),
        "style": style,
        "blocks": "\n".join(map(str, blocks)),
        "script": script,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: filling[found[1]], asset("page.html"))


def dumps(head: Head) -> str:
    """JSON that ends no element and holds nothing but ASCII, whatever the tokens are."""
    text = json.dumps(asdict(head), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def asset(name: str) -> str:
    """A file of the page's own."""
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def _ascii(text: str) -> str:
    """Without half a character, which a token may be but a file may not hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
