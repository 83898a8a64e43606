"""Data by name: what packages hold ready to train on, fetched into the user's cache when first asked for."""

from typing import TYPE_CHECKING

from foveate.lazy import import_late

if TYPE_CHECKING:
    from foveate.data.sources.named import SOURCES as SOURCES
    from foveate.data.sources.named import open_source as open_source

__getattr__ = import_late(__name__, dict.fromkeys(("SOURCES", "open_source"), "foveate.data.sources.named"))
