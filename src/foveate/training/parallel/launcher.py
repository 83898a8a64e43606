"""Starts several processes on this machine as torchrun does."""

import os
from collections.abc import Sequence

from foveate.child_processes import child_environment


def launch(processes: int, arguments: Sequence[str]) -> int:
    """Run `foveate` with these arguments in several processes, as torchrun does without its reports; the exit status.

    A signal is handed on to the processes, which save their training.
    """
    os.environ.update(child_environment())
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
