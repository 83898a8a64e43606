"""Errors of tokenizers' library, which is written in Rust: reported in one line instead of the library's own pages."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile

from foveate.errors import UserError

UNREADABLE = "the tokenizer cannot read the text"

_writes = threading.RLock()
"""Held while standard error is replaced: two threads would put back each other's replacement."""


def is_panic(error: BaseException) -> bool:
    """Returns whether an error is a panic of Rust's, which is no Exception, and whose class cannot be imported."""
    return type(error).__name__ == "PanicException"


@contextmanager
def panics_as_errors(what: str) -> Iterator[None]:
    """Turn a panic into a UserError that begins with `what`, and drop what the library writes about it by itself.

    A regular expression that backtracks without end is one: the library gives it up after some seconds.
    """
    try:
        with _standard_error_if_no_panic():
            yield
    except BaseException as error:
        if not is_panic(error):
            raise
        raise UserError(f"{what}: {' '.join(str(error).split())}") from None


@contextmanager
def _standard_error_if_no_panic() -> Iterator[None]:
    """Hold back what is written to standard error, and write it at the end, unless that is a panic."""
    with _writes:
        try:
            own = os.dup(2)
        except OSError:  # it is closed
            yield
            return
        with TemporaryFile() as held:
            os.dup2(held.fileno(), 2)
            panicked = False
            try:
                yield
            except BaseException as error:
                panicked = is_panic(error)
                raise
            finally:
                os.dup2(own, 2)
                os.close(own)
                held.seek(0)
                if not panicked and (output := held.read()):
                    os.write(2, output)
