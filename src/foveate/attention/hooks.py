"""A hook that intercepts every attention call.

`interceptor` is None by default and then costs nothing. Otherwise it is a function that runs in place of the kernel: it
gets the `Call` and the chosen `Kernel`, and returns what the kernel would return. It is a plain module-level name
because a context variable would break full-graph compilation.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from foveate.attention.call import Call
from foveate.attention.kernels import Kernel
from foveate.attention.selection import Attended

Interceptor = Callable[[Call, Kernel], Attended]

interceptor: Interceptor | None = None


@contextmanager
def intercept(function: Interceptor) -> Iterator[None]:
    """Send every attention call inside the block to `function`.

    Inside the block of another interceptor, the kernel that `function` gets is that interceptor.
    """
    global interceptor
    outer = interceptor

    def inner(call: Call, kernel: Kernel) -> Attended:
        assert outer is not None
        return function(call, replace(kernel, attend=lambda changed: outer(changed, kernel)))

    interceptor = function if outer is None else inner
    try:
        yield
    finally:
        interceptor = outer
