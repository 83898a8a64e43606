"""The service as an ASGI application.

    GET  /               a page that says how to ask
    POST /answer         {"input": ...} or {"inputs": [...]}, perhaps with {"options": {...}}; or one text, image or
                         sound as it is, with its content type
    POST /look           {"input": ..., "sites": [...], "heads": [...]}: weights; a page for those who accept text/html
    GET  /health         200 as soon as the model answers
    GET  /metrics        counts and times for Prometheus
    GET  /openapi.json   all of this for programs

An image or a sound in JSON is {"data": base64, "name": ...}, and "question" where the model answers one. An input that
cannot be read has an "error" in its place; any other error is {"message": a text for the user}.
"""

import time
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from foveate.errors import OwnError, UserError, one_line
from foveate.files import strict_json
from foveate.serving.given import Given, changed_options, read_given
from foveate.serving.looks import Wish, weights_of
from foveate.serving.openapi import describe
from foveate.serving.page import make_page
from foveate.serving.service import Service
from foveate.viewer.page import to_html
from foveate.viewer.protocol import LookResult
from foveate.viewer.server.jobs import LEASE_SECONDS, Job, wait_for_jobs
from foveate.viewer.server.worker import Busy

PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
"""What the page that says how to ask may do."""

LOOK_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
"""What the page of a look may do: it is complete in itself."""

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Numbers of inputs in the histogram of batches."""

Endpoint = Callable[[Request], Awaitable[Response]]


def make_application(service: Service) -> Starlette:
    """The application of a service. It must be served behind a `Guard`."""
    answering = Answering(service)
    routes = [
        Route("/", answering.page),
        Route("/answer", answering.counted("answer", answering.answer), methods=["POST"]),
        Route("/look", answering.counted("look", answering.look), methods=["POST"]),
        Route("/health", answering.health),
        Route("/metrics", answering.metrics),
        Route("/openapi.json", answering.openapi),
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: _error_response, Exception: _failure_response})


class Answering:
    """The endpoints, and what they count."""

    def __init__(self, service: Service) -> None:
        self._service, self._registry = service, CollectorRegistry()
        shared: dict[str, Any] = {"namespace": "foveate", "registry": self._registry}
        self._requests = Counter("requests", "Requests by status", ["path", "status"], **shared)
        self._seconds = Histogram("request_seconds", "Seconds until a request is answered", ["path"], **shared)
        batches = Histogram("batch_inputs", "Inputs that are answered together", buckets=BATCHES, **shared)
        Gauge("waiting_requests", "Requests that wait for the model", **shared).set_function(lambda: service.waiting)
        service.on_batch = batches.observe
        self._page, self._description = make_page(service), describe(service)

    def counted(self, path: str, endpoint: Endpoint) -> Endpoint:
        """An endpoint whose requests are counted and timed."""

        async def ask(request: Request) -> Response:
            begin, status = time.perf_counter(), 500
            try:
                response = await endpoint(request)
                status = response.status_code
                return response
            except HTTPException as error:
                status = error.status_code
                raise
            finally:
                self._requests.labels(path, status).inc()
                self._seconds.labels(path).observe(time.perf_counter() - begin)

        return ask

    async def page(self, request: Request) -> Response:
        return HTMLResponse(self._page, headers={"content-security-policy": PAGE_POLICY})

    async def answer(self, request: Request) -> Response:
        given = await self._given(request)
        if given.others:
            raise HTTPException(400, f"the request has {', '.join(given.others)}; input, inputs and options are known")
        try:
            options = changed_options(self._service.options, given.options)
        except UserError as error:
            raise HTTPException(422, one_line(error)) from None
        answers = await self._wait(request, lambda wanted: self._service.answer(given.inputs, options, wanted))
        return _json(answers[0] if given.one else {"answers": answers})

    async def look(self, request: Request) -> Response:
        given, limits = await self._given(request), self._service.limits
        if not given.one or given.options or not set(given.others) <= {"sites", "heads"}:
            raise HTTPException(400, "a look has input, and perhaps sites and heads")
        try:
            wish = Wish.of(given.others.get("sites"), given.others.get("heads"))
        except UserError as error:
            raise HTTPException(400, one_line(error)) from None
        as_page = "text/html" in request.headers.get("accept", "")

        def look() -> Any:
            looked: LookResult = self._service.skill.look(given.inputs[0], limits.places, wish.sites)
            return to_html(looked.document()) if as_page else weights_of(looked, wish, limits.weights)

        (found,) = await self._wait(request, lambda wanted: self._service.compute(look, wanted))
        return HTMLResponse(found, headers={"content-security-policy": LOOK_POLICY}) if as_page else _json(found)

    async def health(self, request: Request) -> Response:
        return _json({"status": "ok", "task": self._service.skill.task.name, "model": self._service.skill.name})

    async def metrics(self, request: Request) -> Response:
        return PlainTextResponse(generate_latest(self._registry), media_type="text/plain; version=0.0.4")

    async def openapi(self, request: Request) -> Response:
        return _json(self._description)

    async def _given(self, request: Request) -> Given:
        limits = self._service.limits
        return await read_given(request, self._service.skill.takes, limits.bytes, limits.inputs)

    async def _wait(self, request: Request, submit: Callable[[Callable[[], bool]], Future]) -> Any:
        """What the model makes for a request, which is given up when the client leaves or its time is over."""
        job, seconds = Job(), self._service.limits.seconds
        try:
            job.future = submit(job.wanted)
        except Busy:
            raise HTTPException(503, "too many requests are waiting; try again", {"retry-after": "1"}) from None
        await wait_for_jobs(request, [job], seconds)
        if not job.future.done():
            job.asked = -LEASE_SECONDS  # nobody asks again
            raise HTTPException(504, f"no answer in {seconds:g} seconds")
        try:
            return job.future.result()
        except CancelledError:
            raise HTTPException(503, "the request was given up") from None
        except OwnError as error:
            raise HTTPException(500, one_line(error)) from None
        except UserError as error:
            raise HTTPException(422, one_line(error)) from None


def _json(values: Any) -> Response:
    return Response(strict_json(values), media_type="application/json")


async def _error_response(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"message": error.detail}, error.status_code, error.headers)


async def _failure_response(request: Request, error: Exception) -> Response:
    return JSONResponse({"message": "the service failed; its terminal shows the reason"}, 500)
