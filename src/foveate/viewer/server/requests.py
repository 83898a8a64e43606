"""What comes with a request to look at something: bounded, of one form, and data only."""

import base64
import binascii
import json
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

from foveate.viewer.protocol import File, Input, Takes

NAME = 120
"""Characters of a file's name that are kept."""


async def json_body(request: Request, most: int) -> dict[str, Any]:
    """The JSON object in a request of at most so many bytes. Raises HTTPException: 415, 413 or 400."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, "a request must be application/json")
    if int(request.headers.get("content-length", 0)) > most:
        raise _too_large(most)
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > most:
            raise _too_large(most)
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise HTTPException(400, "the request is no JSON") from None
    if not isinstance(found, dict):
        raise HTTPException(400, "the request is no JSON object")
    return found


def given(body: dict[str, Any], takes: Takes, most_bytes: int) -> Input:
    """The text or the file of a request. Raises HTTPException where it is another than the model takes."""
    wanted = {"text"} if takes == "text" else {"name", "data"}
    if set(body) != wanted or not all(isinstance(value, str) for value in body.values()):
        raise HTTPException(400, f"the request must hold {' and '.join(sorted(wanted))}, as text")
    if takes == "text":
        return body["text"].encode("utf-8", "replace").decode("utf-8")  # JSON may hold half a character
    try:
        data = base64.b64decode(body["data"], validate=True)
    except (binascii.Error, ValueError):
        raise HTTPException(400, "the file is no base64") from None
    if len(data) > most_bytes:
        raise _too_large(most_bytes)
    return File(body["name"][:NAME], data)


def _too_large(most: int) -> HTTPException:
    return HTTPException(413, f"that is too large: at most {most / 2**20:.1f} MiB are taken")
