"""How torch's threads wait for work, which is decided before torch is imported: OpenMP reads it once."""

import os
import sys
import time
from pathlib import Path

SHORT, LONG = 2_000, 30_000
"""How often a thread looks for work before it sleeps: for some microseconds, or fifteen times as long.

Where another program wants a core too, threads that spin make training two to ten times slower. Where none does,
going to sleep and waking up takes a fifth of training's time, and a third of that of writing sentences: see
docs/log/training.md.
"""

RUNNING = Path("/proc/loadavg")
"""Where Linux tells how many threads want a processor now, this one among them: "0.42 0.31 0.18 1/80 4711"."""

LASTING = ("train", "demo", "bench")
"""Commands that last: other programs may come while they run, so that their threads always give way."""

_LOOKS = 5


def choose_waiting() -> None:
    """Have threads spin before they sleep: longer in a short command where there are cores to spare.

    What a user set stays as it is.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if "GOMP_SPINCOUNT" not in os.environ:
        os.environ["GOMP_SPINCOUNT"] = str(SHORT if _lasts() or not _cores_to_spare() else LONG)


def _lasts() -> bool:
    """Returns whether this process is a command that lasts; `-m` stands for the program while Python looks for its
    module."""
    program, *arguments = sys.argv or [""]
    return Path(program).name in ("foveate", "__main__.py", "-m") and arguments[:1] in [[verb] for verb in LASTING]


def _cores_to_spare() -> bool:
    try:
        cores = len(os.sched_getaffinity(0))
        threads = int(os.environ.get("OMP_NUM_THREADS", cores))
        return other_running_threads() + threads <= cores
    except (AttributeError, OSError, ValueError, IndexError):  # another system, or several levels of threads
        return False


def other_running_threads() -> int:
    """Counts the threads of other programs that want a processor: who does so all the time is seen at each look."""
    seen = []
    for _ in range(_LOOKS):
        seen.append(int(RUNNING.read_text().split()[3].split("/")[0]) - 1)
        time.sleep(0.001)
    return min(seen)
