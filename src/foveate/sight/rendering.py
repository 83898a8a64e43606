"""How a sight is drawn: an interface, which the package above this one, `foveate.viewer`, implements."""

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from foveate.contracts import Picture
from foveate.sight.measures import Choice


@runtime_checkable
class Renderer(Protocol):
    """Draws figures and pages of a `foveate.sight.Sight`."""

    def figure(
        self,
        sight: Any,
        site: str,
        tokens: Sequence[str] | None,
        keys: Sequence[str] | None,
        heads: Choice,
        example: int,
    ) -> Picture: ...

    def save(self, sight: Any, path: Path | str, tokens: Any, example: int, **options: Any) -> None: ...

    def frame(self, sight: Any, tokens: Any, example: int, **options: Any) -> str: ...


RENDERER = "foveate.viewer.sight_renderer"
"""The module that draws; by name, because the package is above this one."""


def renderer() -> Renderer:
    """What draws figures and pages."""
    return importlib.import_module(RENDERER)
