"""Processes of foveate that another one starts, and that end when it is gone, however it ended."""

import os
import signal
import socket
from collections.abc import Mapping
from threading import Thread, current_thread, main_thread
from threading import enumerate as enumerate_threads

PARENT = "FOVEATE_PARENT"
"""The environment variable with the number of the process to end with: it may be gone before a process that it started
can ask for its parent."""

BY_TORCHRUN = "TORCHELASTIC_RUN_ID"
"""The environment variable that tells a process that torchrun, or `launch`, started it."""

STORE_OF_TORCHRUN = "TORCHELASTIC_USE_AGENT_STORE"
"""The environment variable that is "True" where torchrun itself has the store in which its processes meet."""

INTERVAL = 0.5
"""Seconds between two looks at whether the parent is there."""

PATIENCE = 10.0
"""Seconds in which a process that lost its parent saves its training; else it resumes from its last checkpoint."""

_WATCHING = "foveate-parent"


def child_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of a process that ends with this one."""
    return {**environment, PARENT: str(os.getpid())}


def end_with_parent() -> None:
    """End this process, as by SIGTERM, when the one that started it has gone: nobody else would end it.

    Only where a process of foveate's or torchrun started it. Processes that this one starts do not see the variable.
    """
    named = os.environ.pop(PARENT, None)
    if named is None and BY_TORCHRUN not in os.environ:
        return
    known = any(thread.name == _WATCHING for thread in enumerate_threads())
    if not known and current_thread() is main_thread():
        parent = os.getppid() if named is None else int(named)
        # No daemon: Python stops those when the main thread is over, and then ends libraries with nobody watching.
        Thread(target=_watch, args=(parent,), name=_WATCHING).start()


def _watch(parent: int) -> None:
    had_ended = _torchrun_had_ended()
    while os.getppid() == parent and not had_ended:
        if not main_thread().is_alive():
            return
        main_thread().join(INTERVAL)
    if main_thread().is_alive():
        os.kill(os.getpid(), signal.SIGTERM)
        main_thread().join(PATIENCE)
    os._exit(128 + signal.SIGTERM)  # without the end of libraries, which takes seconds on a busy machine


def _torchrun_had_ended() -> bool:
    """Returns whether torchrun ended before this process asked for its parent: then its store, which is there before
    any process, refuses connections."""
    if os.environ.get(STORE_OF_TORCHRUN) != "True":
        return False
    try:
        place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        socket.create_connection(place, timeout=PATIENCE).close()
    except ConnectionRefusedError:
        return True
    except (OSError, KeyError, ValueError):
        return False
    return False
