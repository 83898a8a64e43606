"""Lines of a pipe in groups, without waiting for its end."""

import queue
import threading
from collections.abc import Iterator

_END = object()


def groups_as_they_come(lines: Iterator[str], most: int) -> Iterator[list[str]]:
    """All lines that have come by now, at most `most` together; waits only while there is none.

    A program that gives a line and waits for its answer gets it; lines that come faster than they are answered are
    answered together. An error of `lines` is raised when the lines before it were given.
    """
    received: queue.Queue[object] = queue.Queue(maxsize=most)
    threading.Thread(target=_read, args=(lines, received), daemon=True).start()
    last: object = None
    while last is None:
        group: list[str] = []
        while last is None and len(group) < most and (not group or not received.empty()):
            item = received.get()
            if isinstance(item, str):
                group.append(item)
            else:
                last = item
        if group:
            yield group
    if isinstance(last, Exception):
        raise last


def _read(lines: Iterator[str], received: "queue.Queue[object]") -> None:
    try:
        for line in lines:
            received.put(line)
    except Exception as error:
        received.put(error)
    else:
        received.put(_END)
