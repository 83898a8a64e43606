"""The page of the explorer: the one that is saved elsewhere, with a prompt above it and the server as its source."""

import json
import re
from dataclasses import asdict, dataclass
from importlib import resources
from typing import NamedTuple

from foveate.viewer.page.compose import JSON, Block, compose
from foveate.viewer.protocol import Takes

SCRIPTS = ("remote.js", "prompt.js")


@dataclass(frozen=True)
class About:
    """What the page knows of its server."""

    name: str
    """The model."""
    takes: Takes
    tokens: int
    """The longest input."""
    bytes: int
    """The largest file."""


class Page(NamedTuple):
    """The page's text, and its content security policy, for the header that is stronger than its own."""

    text: str
    policy: str


def page(about: About) -> Page:
    """The page for a model."""
    text = compose(
        f"{about.name} · foveate",
        [Block("explorer", JSON, _data(about).encode("ascii"))],
        [_asset(name) for name in SCRIPTS],
        begin="explore();",
        connect="'self'",
        styles=[_asset("prompt.css")],
    )
    found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    assert found is not None
    return Page(text, f"{found[1]}; frame-ancestors 'none'")


def _data(about: About) -> str:
    """JSON that ends no element."""
    return json.dumps(asdict(about)).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")
