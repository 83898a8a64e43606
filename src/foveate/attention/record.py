"""The tap: how what `attend` computes can be seen without computing anything for it.

`tap` is None, and then free, or a function that every attention call hands its `Call` and its result. It is a plain
module-level name because a context variable would break full-graph compilation.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from foveate.attention.call import Call
from foveate.attention.selection import Attended

Tap = Callable[[Call, Attended], None]

tap: Tap | None = None


@contextmanager
def tapped(listener: Tap) -> Iterator[None]:
    """Hand every attention call inside the block to `listener`; taps do not nest."""
    global tap
    if tap is not None:
        raise RuntimeError("attention is already being recorded; close the other recording first")
    tap = listener
    try:
        yield
    finally:
        tap = None
