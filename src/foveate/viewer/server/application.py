"""The server as an ASGI application: its page, and the requests of the page.

    GET  /                              the page
    POST /looks                         {"text": ...} or {"name": ..., "data": base64}: look at an input; {"id": ...}
    POST /looks?model=second            the same by the model that stands beside the first
    POST /writings                      {"text": ..., "chat": "" or "yes"}: {"text": with a few more tokens, "ended"}
    GET  /looks/ID                      200 and the head of its page, 202 while it is not ready, 422 if it failed
    GET  /looks/ID/maps/SITE            the small maps of a site
    GET  /looks/ID/rows/SITE/HEAD       ?rows=FROM,TO  the largest weights of these queries
    GET  /looks/ID/tile/SITE/HEAD       ?rows=FROM,TO&columns=FROM,TO&size=ROWS,COLUMNS  a finer map of a part

ID~ID in place of an ID is the page of two looks beside each other.
Numbers are sent in the format of typed arrays. An error is {"message": a text for the user}.
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

from foveate.errors import UserError, one_line
from foveate.viewer.protocol import Input, InputKind, ModelViewer, WritingViewer
from foveate.viewer.server.page import ServerInfo, make_page
from foveate.viewer.server.pair import PairedSession
from foveate.viewer.server.requests import parse_input, parse_writing, read_json_body
from foveate.viewer.server.session_cache import Session, SessionCache
from foveate.viewer.server.worker import Busy, Worker

BINARY = "application/octet-stream"

BESIDE = "~"
"""Between the names of two looks; no name has one."""

WRITTEN_AT_ONCE = 4
"""Tokens that a model writes for one request: the page looks after each."""


@dataclass(frozen=True)
class Limits:
    """Upper limits of what the server accepts and keeps."""

    tokens: int = 32_768
    """Tokens of an input (patches of an image, frames of a sound)."""
    file_bytes: int = 12 * 2**20
    """Bytes of an image or a sound."""
    sights: int = 6
    """Number of inputs whose sights are kept."""
    sight_bytes: int = 4 * 2**30
    """Bytes of the queries and keys of all kept sights; the last one is always kept."""
    waiting: int = 64
    """Number of requests that may wait for the model."""

    def body_bytes(self, takes: InputKind) -> int:
        """Bytes of a request: 32 for each token of a text, or a file in base64; and some for the JSON around it."""
        return (32 * self.tokens if takes == "text" else self.file_bytes * 4 // 3) + 2**16


@dataclass
class Job:
    """A request to look at an input, in any state."""

    future: Future
    started: float | None = None

    @property
    def state(self) -> dict[str, Any]:
        if self.started is None:
            return {"state": "waiting"}
        return {"state": "running", "seconds": round(time.monotonic() - self.started, 1)}


def make_application(
    viewer: ModelViewer, limits: Limits, worker: Worker, second: ModelViewer | None = None
) -> Starlette:
    """The application of a model, which runs in the worker. It must be served behind a `Guard`.

    With a second model, which reads the same kind of input, the heads of both stand beside each other.
    """
    explorer = Explorer(viewer, limits, worker, second)
    part = "/looks/{name}"
    routes = [
        Route("/", explorer.page),
        Route("/looks", explorer.begin, methods=["POST"]),
        Route("/writings", explorer.write, methods=["POST"]),
        Route(part, explorer.head),
        Route(part + "/maps/{site:int}", explorer.maps),
        Route(part + "/rows/{site:int}/{head:int}", explorer.rows),
        Route(part + "/tile/{site:int}/{head:int}", explorer.tile),
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: _error_response, Exception: _failure_response})


class Explorer:
    """The state of the server: the model, its jobs, and the kept sessions."""

    def __init__(self, viewer: ModelViewer, limits: Limits, worker: Worker, second: ModelViewer | None = None) -> None:
        self._viewer, self._second, self._limits, self._worker = viewer, second, limits, worker
        self._sessions = SessionCache(limits.sights, limits.sight_bytes)
        self._pair: tuple[str, PairedSession] | None = None
        self._jobs: dict[str, Job] = {}
        both = [viewer] if second is None else [viewer, second]
        tokens = min(getattr(each, "max_length", None) or limits.tokens for each in both)  # no viewer has to know
        about = ServerInfo(
            viewer.name,
            viewer.takes,
            min(limits.tokens, tokens),
            limits.file_bytes,
            examples=tuple(getattr(viewer, "examples", ())),
            writes=isinstance(viewer, WritingViewer),
            chats=isinstance(viewer, WritingViewer) and viewer.chats,
            second="" if second is None else second.name,
        )
        self._page = make_page(about)

    async def page(self, request: Request) -> Response:
        return HTMLResponse(self._page.text, headers={"content-security-policy": self._page.policy})

    async def begin(self, request: Request) -> Response:
        """Queue a look at an input."""
        takes, viewer = self._viewer.takes, self._requested_model(request)
        body = await read_json_body(request, self._limits.body_bytes(takes))
        given = parse_input(body, takes, self._limits.file_bytes)
        name = self._sessions.new_name()
        job = Job(Future())
        job.future = self._submit(lambda: self._look(viewer, name, job, given))
        self._jobs[name] = job
        finished = [each for each, job in self._jobs.items() if job.future.done() and each not in self._sessions]
        for each in finished[: -self._limits.sights]:  # the last ones may still be requested, to report why they failed
            del self._jobs[each]
        return JSONResponse({"id": name}, 202)

    def _requested_model(self, request: Request) -> ModelViewer:
        """The model that a request names."""
        if "model" not in request.query_params:
            return self._viewer
        if self._second is None or request.query_params["model"] != "second":
            raise HTTPException(400, "there is no such model")
        return self._second

    def _look(self, viewer: ModelViewer, name: str, job: Job, given: Input) -> bytes:
        """Run a model, in the worker's thread, and return the head of the page."""
        job.started = time.monotonic()
        session = Session(viewer.look(given, self._limits.tokens))
        head = session.head()
        self._sessions.put(name, session)
        return head

    async def write(self, request: Request) -> Response:
        """Go on with a text."""
        viewer = self._viewer
        if not isinstance(viewer, WritingViewer):
            raise HTTPException(422, "this model writes no text")
        text, chat = parse_writing(await read_json_body(request, self._limits.body_bytes("text")))
        if chat and not viewer.chats:
            raise HTTPException(422, "this model was not trained to chat")
        grown = await _result(self._submit(lambda: viewer.write(text, WRITTEN_AT_ONCE, chat)))
        return JSONResponse({"text": grown.text, "ended": grown.ended})

    async def head(self, request: Request) -> Response:
        name = request.path_params["name"]
        jobs = [self._jobs.get(each) for each in name.split(BESIDE)]
        for job in jobs:
            if job is None:
                raise _expired()
            if not job.future.done():
                return JSONResponse(job.state, 202)
            head = await _result(job.future)
        session = self._session(request)
        if len(jobs) > 1:
            head = session.head()
        return Response(head, media_type="application/json")

    async def maps(self, request: Request) -> Response:
        session, site = self._session(request), request.path_params["site"]
        return await self._compute(lambda: session.maps(site))

    async def rows(self, request: Request) -> Response:
        session, site, head = self._session(request), request.path_params["site"], request.path_params["head"]
        rows = _pair(request, "rows")
        return await self._compute(lambda: session.rows(site, head, rows))

    async def tile(self, request: Request) -> Response:
        session, site, head = self._session(request), request.path_params["site"], request.path_params["head"]
        rows, columns, size = (_pair(request, name) for name in ("rows", "columns", "size"))
        return await self._compute(lambda: session.tile(site, head, rows, columns, size))

    def _session(self, request: Request) -> Session | PairedSession:
        name = request.path_params["name"]
        sessions = [self._sessions.get(each) for each in name.split(BESIDE)]
        found = [session for session in sessions if session is not None]
        if len(found) < len(sessions) or len(found) > 2:
            raise _expired()
        if len(found) == 1:
            return found[0]
        if self._pair is None or self._pair[0] != name:
            self._pair = name, PairedSession(*found)
        return self._pair[1]

    async def _compute(self, task: Callable[[], bytes]) -> Response:
        return Response(await _result(self._submit(task)), media_type=BINARY)

    def _submit(self, task: Callable[[], Any]) -> Future:
        try:
            return self._worker.submit(task)
        except Busy:
            raise HTTPException(503, "too many requests are waiting for the model; try again in a moment") from None


async def _result(future: Future) -> Any:
    """The result of a task. Every error becomes status 422: a UserError, or a failure of the model."""
    try:
        return await asyncio.wrap_future(future)
    except UserError as error:
        raise HTTPException(422, one_line(error)) from None
    except Exception as error:
        first = (str(error).splitlines() or [""])[0][:200]
        raise HTTPException(422, f"the model failed: {type(error).__name__}: {first}") from error


def _expired() -> HTTPException:
    return HTTPException(404, "this result is no longer kept: submit the input again")


def _pair(request: Request, name: str) -> tuple[int, int]:
    """Two integers of the query string."""
    found = re.fullmatch(r"(\d{1,9}),(\d{1,9})", request.query_params.get(name, ""))
    if found is None:
        raise HTTPException(400, f"'{name}' must be two numbers, such as {name}=0,64")
    return int(found[1]), int(found[2])


async def _error_response(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"message": error.detail}, error.status_code, error.headers)


async def _failure_response(request: Request, error: Exception) -> Response:
    return JSONResponse({"message": "the server failed; its terminal shows the reason"}, 500)
