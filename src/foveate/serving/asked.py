"""What one client asks for."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from typing import Any

from foveate.errors import OwnError, UserError, out_of_memory


@dataclass(eq=False)
class Asked:
    """Inputs of one client, which wait for their answers."""

    inputs: Sequence[Any]
    options: Any
    wanted: Callable[[], bool]
    """Whether the client is still there."""
    alone: bool
    """Whether others may not be answered with them."""
    future: Future = field(default_factory=Future)
    arrived: float = field(default_factory=time.monotonic)

    def goes_with(self, other: "Asked") -> bool:
        """Whether both can be answered together."""
        return self is other or (not (self.alone or other.alone) and self.options == other.options)

    def start(self) -> bool:
        """Whether the answers are still wanted, so that they can be begun with."""
        if self.wanted() and self.future.set_running_or_notify_cancel():
            return True
        self.drop()
        return False

    def drop(self) -> None:
        """Give no answer, since nobody waits for it."""
        if not self.future.cancel():  # as none can be that has been begun with
            self.future.set_exception(CancelledError())

    def fail(self, error: BaseException) -> None:
        """Every error belongs to the client. Its traceback is left out: it holds intermediate results."""
        if isinstance(error, Exception) and out_of_memory(error):
            error = OwnError("this takes more memory than there is")
        error.__cause__ = error.__context__ = None
        told = error.with_traceback(None) if isinstance(error, UserError) else _unexpected(error)
        self.future.set_exception(told)


def _unexpected(error: BaseException) -> UserError:
    first = (str(error).splitlines() or [""])[0][:200]
    return OwnError(f"the model failed: {type(error).__name__}: {first}")
