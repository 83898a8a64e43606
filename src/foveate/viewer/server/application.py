"""The server as an ASGI application: its page, and what the page asks for.

    GET  /                              the page
    POST /looks                         {"text": ...} or {"name": ..., "data": base64}: look at it; {"id": ...}
    GET  /looks/ID                      200 and the head of its page, 202 while it is not there yet, 422 if it failed
    GET  /looks/ID/maps/SITE            the small maps of a site
    GET  /looks/ID/rows/SITE/HEAD       ?rows=FROM,TO  what these queries look at most
    GET  /looks/ID/tile/SITE/HEAD       ?rows=FROM,TO&columns=FROM,TO&size=ROWS,COLUMNS  a finer map of a part

Numbers are sent as the browser's typed arrays have them. An error is {"message": a text for the user}.
"""

import asyncio
import re
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from foveate.errors import UserError
from foveate.viewer.protocol import Input, Takes, Viewer
from foveate.viewer.server.page import About, page
from foveate.viewer.server.requests import given, json_body
from foveate.viewer.server.session_cache import Shelf, Shown
from foveate.viewer.server.worker import Busy, Worker

BINARY = "application/octet-stream"


@dataclass(frozen=True)
class Limits:
    """What the server takes and keeps at most."""

    tokens: int = 32_768
    """Tokens of an input (patches of an image, frames of a sound)."""
    file_bytes: int = 12 * 2**20
    """Bytes of an image or a sound."""
    sights: int = 6
    """Inputs whose sights are kept."""
    sight_bytes: int = 4 * 2**30
    """Queries and keys of all sights that are kept; the last one is kept in any case."""
    waiting: int = 64
    """Requests that wait for the model."""

    def body_bytes(self, takes: Takes) -> int:
        """Bytes of a request: of a text 32 for each token, of a file what it has in base64; and some around it."""
        return (32 * self.tokens if takes == "text" else self.file_bytes * 4 // 3) + 2**16


@dataclass
class Job:
    """An input that is looked at, was, or will be."""

    future: Future
    begun: float | None = None

    @property
    def state(self) -> dict[str, Any]:
        if self.begun is None:
            return {"state": "waiting"}
        return {"state": "running", "seconds": round(time.monotonic() - self.begun, 1)}


def application(viewer: Viewer, limits: Limits, worker: Worker) -> Starlette:
    """The server of one model, which runs in the worker. Whoever serves it must let a `Guard` decide who may ask."""
    explorer = Explorer(viewer, limits, worker)
    part = "/looks/{name}"
    routes = [
        Route("/", explorer.page),
        Route("/looks", explorer.begin, methods=["POST"]),
        Route(part, explorer.head),
        Route(part + "/maps/{site:int}", explorer.maps),
        Route(part + "/rows/{site:int}/{head:int}", explorer.rows),
        Route(part + "/tile/{site:int}/{head:int}", explorer.tile),
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: _told, Exception: _unforeseen})


class Explorer:
    """What the server knows: the model, what it does now, and the sights that are kept."""

    def __init__(self, viewer: Viewer, limits: Limits, worker: Worker) -> None:
        self._viewer, self._limits, self._worker = viewer, limits, worker
        self._shelf = Shelf(limits.sights, limits.sight_bytes)
        self._jobs: dict[str, Job] = {}
        self._page = page(About(viewer.name, viewer.takes, limits.tokens, limits.file_bytes))

    async def page(self, request: Request) -> Response:
        return HTMLResponse(self._page.text, headers={"content-security-policy": self._page.policy})

    async def begin(self, request: Request) -> Response:
        """Look at an input, after all that is asked before it."""
        takes = self._viewer.takes
        wanted = given(await json_body(request, self._limits.body_bytes(takes)), takes, self._limits.file_bytes)
        name = self._shelf.name()
        job = Job(Future())
        job.future = self._submit(lambda: self._look(name, job, wanted))
        self._jobs[name] = job
        over = [each for each, job in self._jobs.items() if job.future.done() and each not in self._shelf]
        for each in over[: -self._limits.sights]:  # the last of them may be asked for still: why they failed is told
            del self._jobs[each]
        return JSONResponse({"id": name}, 202)

    def _look(self, name: str, job: Job, wanted: Input) -> bytes:
        """Run the model, in the worker's thread; the head of the page."""
        job.begun = time.monotonic()
        shown = Shown(self._viewer.look(wanted, self._limits.tokens))
        head = shown.head()
        self._shelf.put(name, shown)
        return head

    async def head(self, request: Request) -> Response:
        name = request.path_params["name"]
        job = self._jobs.get(name)
        if job is None:
            raise _gone()
        if not job.future.done():
            return JSONResponse(job.state, 202)
        head = await _result(job.future)
        if self._shelf.get(name) is None:
            raise _gone()
        return Response(head, media_type="application/json")

    async def maps(self, request: Request) -> Response:
        shown, site = self._shown(request), request.path_params["site"]
        return await self._measured(lambda: shown.maps(site))

    async def rows(self, request: Request) -> Response:
        shown, site, head = self._shown(request), request.path_params["site"], request.path_params["head"]
        rows = _pair(request, "rows")
        return await self._measured(lambda: shown.rows(site, head, rows))

    async def tile(self, request: Request) -> Response:
        shown, site, head = self._shown(request), request.path_params["site"], request.path_params["head"]
        rows, columns, size = (_pair(request, name) for name in ("rows", "columns", "size"))
        return await self._measured(lambda: shown.tile(site, head, rows, columns, size))

    def _shown(self, request: Request) -> Shown:
        shown = self._shelf.get(request.path_params["name"])
        if shown is None:
            raise _gone()
        return shown

    async def _measured(self, task: Callable[[], bytes]) -> Response:
        return Response(await _result(self._submit(task)), media_type=BINARY)

    def _submit(self, task: Callable[[], Any]) -> Future:
        try:
            return self._worker.submit(task)
        except Busy:
            raise HTTPException(503, "the model has too much to do; try again in a moment") from None


async def _result(future: Future) -> Any:
    """What a task gave. An error of the user's is 422; any other is told, too, for it is the model's."""
    try:
        return await asyncio.wrap_future(future)
    except UserError as error:
        raise HTTPException(422, str(error)) from None
    except Exception as error:
        first = (str(error).splitlines() or [""])[0][:200]
        raise HTTPException(422, f"the model failed: {type(error).__name__}: {first}") from error


def _gone() -> HTTPException:
    return HTTPException(404, "this sight is no longer kept: look at the input again")


def _pair(request: Request, name: str) -> tuple[int, int]:
    """Two numbers of the address."""
    found = re.fullmatch(r"(\d{1,9}),(\d{1,9})", request.query_params.get(name, ""))
    if found is None:
        raise HTTPException(400, f"'{name}' must be two numbers, such as {name}=0,64")
    return int(found[1]), int(found[2])


async def _told(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"message": error.detail}, error.status_code, error.headers)


async def _unforeseen(request: Request, error: Exception) -> Response:
    return JSONResponse({"message": "the server failed; its terminal says why"}, 500)
