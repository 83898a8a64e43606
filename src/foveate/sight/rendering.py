"""How a sight is drawn: an interface, which the package above this one, `foveate.viewer`, implements."""

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

    def frame(self, sight: Any) -> str: ...


_registered: list[Renderer] = []


def register(renderer: Renderer) -> None:
    """Use this renderer for every sight from now on."""
    _registered[:] = [renderer]


def renderer() -> Renderer:
    """The registered renderer; importing foveate registers the one of `foveate.viewer`."""
    return _registered[0]
