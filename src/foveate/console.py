"""What prints for people: tables and lines, as wide as the terminal."""

from typing import Any

from rich.console import Console


def plain_console(**settings: Any) -> Console:
    """A console that prints names as they are. By default, rich draws a train for `:train:`, which may stand in the
    name of a file or a label."""
    return Console(emoji=False, **settings)
