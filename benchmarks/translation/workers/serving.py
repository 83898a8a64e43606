"""The worker's half of a benchmark: whenever a line comes in, do the job once and answer with its time, as JSON."""

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any


def serve(job: Callable[[], dict[str, Any]]) -> None:
    """`job` gives what is to be told besides the seconds on the clock and of the processor."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print must not come between the answers
    print(json.dumps({"ready": True}), file=answers)
    for _ in sys.stdin:
        clock, used = time.perf_counter(), time.process_time()
        found = job()
        spent = {"seconds": time.perf_counter() - clock, "processor": time.process_time() - used}
        print(json.dumps({**spent, **found}), file=answers)
