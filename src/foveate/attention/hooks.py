"""A hook that intercepts every attention call.

`interceptor` is None by default and then costs nothing. Otherwise it is a function that runs in place of the kernel: it
gets the `Call` and the chosen `Kernel`, and returns what the kernel would return. It is a plain module-level name
because a context variable would break full-graph compilation.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from foveate.attention.call import Call
from foveate.attention.kernels import Kernel
from foveate.attention.selection import Attended
from foveate.errors import UserError

Interceptor = Callable[[Call, Kernel], Attended]

interceptor: Interceptor | None = None


@contextmanager
def intercept(function: Interceptor) -> Iterator[None]:
    """Send every attention call inside the block to `function`.

    Raises UserError if another interceptor is active: they do not nest.
    """
    global interceptor
    if interceptor is not None:
        raise UserError("another look is open, here or in another thread: close it first, there is one at a time")
    interceptor = function
    try:
        yield
    finally:
        interceptor = None
