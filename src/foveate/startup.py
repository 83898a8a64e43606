"""Ctrl-C while a command is starting: one line and exit status 130, no traceback of what was being imported."""

import contextlib
import os
import signal
import sys
from types import FrameType


def end_at_once_on_interrupt() -> None:
    """Have Ctrl-C end this process, if it is the command `foveate` and Python's own handling of Ctrl-C is in place.

    An exception would crash libraries in C that are being imported. Programs that import foveate keep their handling.
    """
    if _is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def interrupt_as_usual() -> None:
    """Have Ctrl-C raise KeyboardInterrupt again."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_command() -> bool:
    """While Python looks for the module of `python -m foveate`, "-m" stands for the program."""
    program = os.path.splitext(os.path.basename((sys.argv or [""])[0]))[0]
    if program != "-m":
        return program == "foveate"
    given = sys.orig_argv[1:]
    return "-m" in given and given[given.index("-m") + 1 :][:1] == ["foveate"]


def _end(number: int, frame: FrameType | None) -> None:
    with contextlib.suppress(OSError):  # nobody may read
        os.write(2, b"foveate: stopped\n")
    os._exit(128 + number)
