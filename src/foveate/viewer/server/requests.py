"""Reads the body of a request to look at an input: bounded JSON with a text or a file."""

import asyncio
import base64
import binascii
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from foveate.errors import UserError
from foveate.files import parse_json
from foveate.sight.measured_look import MEASURES
from foveate.viewer.protocol import File, Input, InputKind
from foveate.viewer.server.removals import Removal

UPLOAD_SECONDS = 60
"""The longest that a request may take to arrive."""

MOST_REMOVED, MOST_HEADS, LONGEST_SITE = 4096, 2**16, 500
"""Removed heads and weights at most, the greatest number of a head, and characters of the name of a site."""

MOST_PAIRS = 64
"""Single weights that a look can do without: each is a mask more in the calls of its head."""

NAME = 120
"""Maximum length of a file name; longer names are cut."""


async def read_json_body(request: Request, max_bytes: int) -> dict[str, Any]:
    """The JSON object in a request of at most `max_bytes` bytes. Raises HTTPException with status 415, 413 or 400."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, "the content type must be application/json")
    try:
        found = parse_json(await read_body(request, max_bytes), "the request", strict=False)
    except UserError:
        raise HTTPException(400, "the request is not JSON") from None
    if not isinstance(found, dict):
        raise HTTPException(400, "the request is not a JSON object")
    return found


async def read_body(request: Request, max_bytes: int) -> bytes:
    """The body of a request, at most `max_bytes` bytes. Raises HTTPException with status 413, 408 or 400."""
    if int(request.headers.get("content-length", 0)) > max_bytes:
        raise _too_large(max_bytes)
    body = bytearray()
    try:
        async with asyncio.timeout(UPLOAD_SECONDS):
            async for part in request.stream():
                body += part
                if len(body) > max_bytes:
                    raise _too_large(max_bytes)
    except TimeoutError:
        raise HTTPException(408, f"the request took more than {UPLOAD_SECONDS} seconds") from None
    except ClientDisconnect:
        raise HTTPException(400, "the client left") from None
    return bytes(body)


def parse_input(body: dict[str, Any], takes: InputKind, max_bytes: int) -> Input:
    """The text or file of a request. Raises HTTPException if the model takes another kind of input."""
    wanted = {"text"} if takes == "text" else {"name", "data"} | ({"question"} if takes == "question" else set())
    if set(body) != wanted or not all(isinstance(value, str) for value in body.values()):
        raise HTTPException(400, f"the request must have {' and '.join(sorted(wanted))}, as text")
    if takes == "text":
        return _whole(body["text"])
    try:
        data = base64.b64decode(body["data"], validate=True)
    except (binascii.Error, ValueError):
        raise HTTPException(400, "the file is not base64") from None
    if len(data) > max_bytes:
        raise _too_large(max_bytes)
    return File(_whole(body["name"])[:NAME], data, _whole(body.get("question", "")))


def parse_removals(body: dict[str, Any]) -> list[Removal]:
    """What a look is to do without, which is taken from the request. Raises HTTPException for anything else."""
    given = body.pop("removed", [])
    if not isinstance(given, list) or len(given) > MOST_REMOVED or not all(map(_is_removal, given)):
        told = "lists of a site, a head, and perhaps a query and a key"
        raise HTTPException(400, f"removed must be at most {MOST_REMOVED} {told}")
    found = list(dict.fromkeys(Removal(*each) for each in given))
    if sum(not each.whole for each in found) > MOST_PAIRS:
        raise HTTPException(400, f"at most {MOST_PAIRS} single weights can be removed at once")
    return found


def parse_measure(body: dict[str, Any]) -> str:
    """What maps shall show, which is taken from the request: weights where it does not say."""
    measure = body.pop("measure", "weights")
    if measure not in MEASURES:
        raise HTTPException(400, f"measure must be one of {', '.join(MEASURES)}")
    return str(measure)


def _is_removal(given: Any) -> bool:
    if not isinstance(given, list) or len(given) not in (2, 4):
        return False
    site, head, *pair = given
    numbers = all(type(number) is int and number >= 0 for number in (head, *pair))
    return isinstance(site, str) and 0 < len(site) <= LONGEST_SITE and numbers and head < MOST_HEADS


def parse_writing(body: dict[str, Any]) -> tuple[str, bool]:
    """The text to go on with, and whether it is a chat. Raises HTTPException for another request."""
    if set(body) != {"text", "chat"} or not all(isinstance(value, str) for value in body.values()):
        raise HTTPException(400, "the request must have chat and text, as text")
    return _whole(body["text"]), bool(body["chat"])


def _whole(text: str) -> str:
    """The text with ? for each half of a character, which JSON may have and no answer can."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _too_large(max_bytes: int) -> HTTPException:
    return HTTPException(413, f"the input is too large: at most {max_bytes / 2**20:.1f} MiB are accepted")
