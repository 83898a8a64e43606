"""Lines that are typed at a terminal."""

import contextlib
import sys
from collections.abc import Iterator

from foveate.data.text.files import read_lines
from foveate.files import utf8


def typed_lines() -> Iterator[str]:
    """Each line that is typed, after a prompt, until Ctrl-D; without a prompt where answers go elsewhere."""
    if not sys.stdout.isatty():
        yield from read_lines(sys.stdin.buffer)
        return
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  # gives `input` editing and a history
    print("Type an input and press Enter; Ctrl-D ends.", file=sys.stderr)
    with contextlib.suppress(EOFError):
        while True:
            yield utf8(input("> "))
    print(file=sys.stderr)
