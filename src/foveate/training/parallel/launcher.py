"""Starts several processes on this machine as torchrun does, and ends them with what started them."""

import os
import signal
import threading
import time
from collections.abc import Mapping, Sequence

BY_TORCHRUN = "TORCHELASTIC_RUN_ID"
"""The environment variable that tells a process that torchrun, or `launch`, started it."""

LAUNCHER = "FOVEATE_LAUNCHER"
"""The environment variable with the number of the process that is `launch`: it may be gone before a process that it
started can ask for its parent."""

INTERVAL = 0.5
"""Seconds between two looks at whether the launcher is there."""

PATIENCE = 60.0
"""Seconds in which a process that lost its launcher saves its training."""


def launch(processes: int, arguments: Sequence[str]) -> int:
    """Run `foveate` with these arguments in so many processes, as torchrun does without its reports; the exit status.

    A signal is handed on to the processes, which save their training.
    """
    os.environ[LAUNCHER] = str(os.getpid())
    os.environ.setdefault("LOGLEVEL", "CRITICAL")  # torchrun repeats what a process said, in twenty lines
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    from torch.distributed import run
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    options = ["--standalone", "--nproc-per-node", str(processes), "-m", "foveate", *arguments]
    try:
        run.run(run.parse_args(options))
    except SignalException as error:
        return 128 + error.sigval
    except ChildFailedError as error:
        failed = next(iter(error.failures.values())).exitcode
        return 128 - failed if failed < 0 else failed
    return 0


def end_with_launcher(environment: Mapping[str, str] = os.environ) -> None:
    """End this process, as by SIGTERM, when the launcher that started it has gone: nobody else would end it."""
    if BY_TORCHRUN in environment and threading.current_thread() is threading.main_thread():
        launcher = int(environment.get(LAUNCHER, os.getppid()))
        threading.Thread(target=_watch, args=(launcher,), name="foveate-launcher", daemon=True).start()


def _watch(launcher: int) -> None:
    while os.getppid() == launcher:
        time.sleep(INTERVAL)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(PATIENCE)
    os._exit(128 + signal.SIGTERM)
