"""The page of the explorer: the page of `foveate.viewer.page`, with a prompt, and the server as its source of data."""

import json
import re
from dataclasses import asdict, dataclass
from importlib import resources
from typing import NamedTuple

from foveate.viewer.page.compose import JSON, PageData, compose
from foveate.viewer.protocol import InputKind

SCRIPTS = ("remote.js", "fields.js", "past.js", "removed.js", "writer.js", "prompt.js")


@dataclass(frozen=True)
class ServerInfo:
    """The facts that the page knows about its server."""

    name: str
    """Description of the model."""
    takes: InputKind
    tokens: int
    """Maximum length of an input."""
    bytes: int
    """Maximum size of a file."""
    examples: tuple[str, ...] = ()
    """Texts to begin with."""
    writes: bool = False
    """Whether the model goes on with a text."""
    chats: bool = False
    """Whether it answers messages."""
    removes: bool = False
    """Whether heads can be removed."""
    second: str = ""
    """Description of the model beside it; empty if there is none."""


class Page(NamedTuple):
    """The page's text, and its content security policy for the HTTP header, which is stricter than the one inside."""

    text: str
    policy: str


def make_page(about: ServerInfo) -> Page:
    """The page for a model."""
    text = compose(
        f"{about.name}{' beside ' + about.second if about.second else ''} · foveate",
        [PageData("explorer", JSON, _data(about).encode("ascii"))],
        [_asset(name) for name in SCRIPTS],
        begin="explore();",
        connect="'self'",
        styles=[_asset("prompt.css")],
    )
    found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    assert found is not None
    return Page(text, f"{found[1]}; frame-ancestors 'none'")


def _data(about: ServerInfo) -> str:
    """JSON without characters that could end the element."""
    return json.dumps(asdict(about)).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")
