"""Tasks of the worker, and the clients that wait for their results."""

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

LEASE_SECONDS = 30.0
"""How long a look is wanted after a client asked for it last."""


@dataclass
class Job:
    """A task of the worker, in any state."""

    owner: str = ""
    """The browser that began it."""
    future: Future = field(default_factory=Future)
    started: float | None = None
    asked: float = field(default_factory=time.monotonic)
    """When a client asked for it last."""
    clients: int = 0
    """Number of requests that wait for it now."""

    @property
    def state(self) -> dict[str, Any]:
        if self.started is None:
            return {"state": "waiting"}
        return {"state": "running", "seconds": round(time.monotonic() - self.started, 1)}

    def wanted(self) -> bool:
        """Returns whether a client waits for it, or may ask again."""
        return self.clients > 0 or time.monotonic() - self.asked < LEASE_SECONDS


async def wait_for_jobs(request: Request, jobs: Sequence[Job], seconds: float | None = None) -> None:
    """Wait until jobs are done, at most for some seconds.

    Raises HTTPException if the client leaves. Jobs that no other client waits for are then no longer wanted.
    """
    for job in jobs:
        job.clients += 1
    left = False
    try:
        left = await _wait([job.future for job in jobs], request, seconds)
    finally:
        for job in jobs:
            job.clients -= 1
            job.asked = -LEASE_SECONDS if left else time.monotonic()
    if left:
        raise HTTPException(400, "the client left")


async def _wait(futures: Sequence[Future], request: Request, seconds: float | None) -> bool:
    """Wait until futures are done, at most for some seconds. Returns whether the client left before."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def check(_: Future) -> None:
        if all(future.done() for future in futures):
            with suppress(RuntimeError):  # the server has ended
                loop.call_soon_threadsafe(done.set)

    for future in futures:
        future.add_done_callback(check)
    finished, left = asyncio.ensure_future(done.wait()), asyncio.ensure_future(_client_leaves(request))
    try:
        await asyncio.wait([finished, left], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return left.done() and not finished.done()
    finally:
        finished.cancel()
        left.cancel()


async def _client_leaves(request: Request) -> None:
    """Wait until the client of a request that was read has closed its connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
