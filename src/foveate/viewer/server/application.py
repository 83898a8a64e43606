"""The server as an ASGI application: its page, and the requests of the page.

    GET  /                              the page
    POST /looks                         {"text": ...} or {"name": ..., "data": base64}: look at an input; {"id": ...}
    POST /looks                         ... "removed": [[SITE, HEAD], ...]}: the same without these heads; with
                                        [SITE, HEAD, QUERY, KEY] without what a query takes from a key
    POST /looks                         ... "measure": "values"}: the same with maps of another measure
    POST /looks?model=second            the same by the model that stands beside the first
    POST /writings                      {"text": ..., "chat": "" or "yes"}: {"text": with a few more tokens, "ended"}
    GET  /looks/ID                      200 and the head of its page, 202 after a second if it is not ready, 422 if it
                                        failed
    GET  /looks/ID/maps/SITE            the small maps of a site
    GET  /looks/ID/rows/SITE/HEAD       ?rows=FROM,TO  the largest weights of these queries
    GET  /looks/ID/points/SITE/HEAD     ?rows=FROM,TO  the points of feature maps that these queries look at
    GET  /looks/ID/tile/SITE/HEAD       ?rows=FROM,TO&columns=FROM,TO&size=ROWS,COLUMNS  a finer map of a part

ID~ID in place of an ID is the page of two looks beside each other.
Numbers are sent in the format of typed arrays. An error is {"message": a text for the user}.
A cookie of the page names the browser, whose last looks are kept. What a client waits for is given up when it leaves.
"""

import re
import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from itertools import islice
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from foveate.errors import UserError, one_line
from foveate.viewer.protocol import Input, InputKind, ModelViewer, WritingViewer
from foveate.viewer.server.jobs import Job, wait_for_jobs
from foveate.viewer.server.page import ServerInfo, make_page
from foveate.viewer.server.pair import PairedSession
from foveate.viewer.server.removals import Removal, can_remove, without
from foveate.viewer.server.requests import parse_input, parse_measure, parse_removals, parse_writing, read_json_body
from foveate.viewer.server.session_cache import Session, SessionCache
from foveate.viewer.server.worker import Busy, Unwanted, Worker

BINARY = "application/octet-stream"

BESIDE = "~"
"""Between the names of two looks; no name has one."""

HELD_SECONDS = 1.0
"""How long a request for a look waits for it, before it says how far it is."""

LONGEST_COOKIE = 64
"""Characters of a cookie that names a browser."""

WRITTEN_AT_ONCE = 4
"""Tokens that a model writes for one request: the page looks after each."""


@dataclass(frozen=True)
class Limits:
    """Upper limits of what the server accepts and keeps."""

    tokens: int = 32_768
    """Tokens of an input (patches of an image, frames of a sound)."""
    file_bytes: int = 12 * 2**20
    """Bytes of an image or a sound."""
    sights: int = 12
    """Number of inputs of a browser whose sights are kept: the page lists six, of one or two looks each."""
    browsers: int = 64
    """Number of browsers whose sights are kept."""
    sight_bytes: int = 4 * 2**30
    """Bytes of the queries and keys of all kept sights, and of answers; the last one is always kept."""
    waiting: int = 256
    """Number of requests that may wait for the model."""

    def body_bytes(self, takes: InputKind) -> int:
        """Bytes of a request: 32 for each token of a text, or a file in base64; and some for the JSON around it."""
        return (32 * self.tokens if takes == "text" else self.file_bytes * 4 // 3) + 2**16


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
        Route(part + "/points/{site:int}/{head:int}", explorer.points),
        Route(part + "/tile/{site:int}/{head:int}", explorer.tile),
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: _error_response, Exception: _failure_response})


class Explorer:
    """The state of the server: the model, its jobs, and the kept sessions."""

    def __init__(self, viewer: ModelViewer, limits: Limits, worker: Worker, second: ModelViewer | None = None) -> None:
        self._viewer, self._second, self._limits, self._worker = viewer, second, limits, worker
        self._sessions = SessionCache(limits.sights, limits.sight_bytes, limits.browsers)
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
            removes=second is None and can_remove(viewer),
        )
        self._page = make_page(about)

    async def page(self, request: Request) -> Response:
        response = HTMLResponse(self._page.text, headers={"content-security-policy": self._page.policy})
        if not _owner(request):
            response.set_cookie(_cookie(request), secrets.token_urlsafe(16), httponly=True, samesite="strict")
        return response

    async def begin(self, request: Request) -> Response:
        """Queue a look at an input."""
        takes, viewer = self._viewer.takes, self._requested_model(request)
        body = await read_json_body(request, self._limits.body_bytes(takes))
        removed, measure = parse_removals(body), parse_measure(body)
        given = parse_input(body, takes, self._limits.file_bytes)
        name = self._sessions.new_name()
        job = Job(_owner(request))
        self._submit(job, lambda: self._look(viewer, name, job, given, removed, measure))
        self._jobs[name] = job
        self._forget_jobs()
        return JSONResponse({"id": name}, 202)

    def _forget_jobs(self) -> None:
        """Remove jobs whose results are no longer kept, but for the last ones: why they failed may be requested."""
        finished = [each for each, job in self._jobs.items() if job.future.done() and each not in self._sessions]
        for each in islice(finished, max(0, len(finished) - self._limits.sights * self._limits.browsers)):
            del self._jobs[each]

    def _requested_model(self, request: Request) -> ModelViewer:
        """The model that a request names."""
        if "model" not in request.query_params:
            return self._viewer
        if self._second is None or request.query_params["model"] != "second":
            raise HTTPException(400, "there is no such model")
        return self._second

    def _look(
        self,
        viewer: ModelViewer,
        name: str,
        job: Job,
        given: Input,
        removed: Sequence[Removal],
        measure: str,
    ) -> bytes:
        """Run a model without what is removed, in the worker's thread, and return the head of the page."""
        job.started = time.monotonic()
        with without(viewer, removed):
            found = viewer.look(given, self._limits.tokens, measure=measure)
        for each in removed:
            each.check(found.sight)
        session = Session(found)
        head = session.head()
        self._sessions.put(name, session, job.owner)
        return head

    async def write(self, request: Request) -> Response:
        """Go on with a text."""
        viewer = self._viewer
        if not isinstance(viewer, WritingViewer):
            raise HTTPException(422, "this model writes no text")
        text, chat = parse_writing(await read_json_body(request, self._limits.body_bytes("text")))
        if chat and not viewer.chats:
            raise HTTPException(422, "this model was not trained to chat")
        grown = await self._compute(request, lambda: viewer.write(text, WRITTEN_AT_ONCE, chat))
        return JSONResponse({"text": grown.text, "ended": grown.ended})

    async def head(self, request: Request) -> Response:
        names = request.path_params["name"].split(BESIDE)
        jobs = [job for name in names if (job := self._jobs.get(name)) is not None]
        if len(jobs) < len(names):
            raise _expired()
        await wait_for_jobs(request, jobs, HELD_SECONDS)
        for job in jobs:
            if not job.future.done():
                return JSONResponse(job.state, 202)
            head = _result(job)
        session = self._session(request)
        if len(jobs) > 1:
            head = session.head()
        return Response(head, media_type="application/json")

    async def maps(self, request: Request) -> Response:
        session, site = self._session(request), request.path_params["site"]
        return await self._numbers(request, lambda: session.maps(site))

    async def rows(self, request: Request) -> Response:
        session, site, head = self._session(request), request.path_params["site"], request.path_params["head"]
        rows = _pair(request, "rows")
        return await self._numbers(request, lambda: session.rows(site, head, rows))

    async def points(self, request: Request) -> Response:
        session, site, head = self._session(request), request.path_params["site"], request.path_params["head"]
        rows = _pair(request, "rows")
        return await self._numbers(request, lambda: session.points(site, head, rows))

    async def tile(self, request: Request) -> Response:
        session, site, head = self._session(request), request.path_params["site"], request.path_params["head"]
        rows, columns, size = (_pair(request, name) for name in ("rows", "columns", "size"))
        return await self._numbers(request, lambda: session.tile(site, head, rows, columns, size))

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

    async def _numbers(self, request: Request, task: Callable[[], bytes]) -> Response:
        return Response(await self._compute(request, task), media_type=BINARY)

    async def _compute(self, request: Request, task: Callable[[], Any]) -> Any:
        """The result of a task, which is given up if the client leaves."""
        job = Job()
        self._submit(job, task)
        await wait_for_jobs(request, [job])
        return _result(job)

    def _submit(self, job: Job, task: Callable[[], Any]) -> None:
        try:
            job.future = self._worker.submit(task, job.wanted)
        except Busy:
            raise HTTPException(503, "too many requests are waiting for the model; try again in a moment") from None


def _cookie(request: Request) -> str:
    """The name of the cookie: browsers do not tell the ports of a host apart."""
    return f"foveate-{request.scope['server'][1]}"


def _owner(request: Request) -> str:
    """The browser of a request; empty for one that has not loaded the page."""
    return request.cookies.get(_cookie(request), "")[:LONGEST_COOKIE]


def _result(job: Job) -> Any:
    """The result of a job that is done. Every error becomes status 422: a UserError, or a failure of the model."""
    try:
        return job.future.result()
    except (CancelledError, Unwanted):
        raise _expired() from None
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
