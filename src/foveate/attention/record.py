"""The tap: how what `attend` computes can be seen without computing anything for it.

`tap` is None, and then free, or a function that makes every attention call in place of its kernel: it is given the
`Call` and the `Kernel` that was chosen, and returns what the kernel gives. It is a plain module-level name because a
context variable would break full-graph compilation.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from foveate.attention.call import Call
from foveate.attention.kernels import Kernel
from foveate.attention.selection import Attended
from foveate.errors import UserError

Tap = Callable[[Call, Kernel], Attended]

tap: Tap | None = None


@contextmanager
def tapped(listener: Tap) -> Iterator[None]:
    """Let `listener` make every attention call inside the block; taps do not nest: UserError where one is open."""
    global tap
    if tap is not None:
        raise UserError("another look is open, here or in another thread: close it first, there is one at a time")
    tap = listener
    try:
        yield
    finally:
        tap = None
