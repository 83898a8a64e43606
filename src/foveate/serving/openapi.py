"""Describes a service for programs, by OpenAPI 3.1."""

from importlib import metadata
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from foveate.serving.given import LARGEST, OTHERS, open_options
from foveate.serving.service import Service

PLAIN = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null", Path: "string"}


def describe(service: Service) -> dict[str, Any]:
    """The OpenAPI description of a service."""
    answer = {"type": "object", "description": "The input, and the answer; or an error, for an input that is not read."}
    inputs: dict[str, Any] = {"input": _input(service.skill.takes)}
    options = {"type": "object", "properties": options_schema(service.options), "additionalProperties": False}
    many = {"type": "array", "items": inputs["input"], "minItems": 1, "maxItems": service.limits.inputs}
    asked = {
        "oneOf": [
            {"type": "object", "properties": {**inputs, "options": options}, "required": ["input"]},
            {"type": "object", "properties": {"inputs": many, "options": options}, "required": ["inputs"]},
        ]
    }
    answers = {"type": "object", "properties": {"answers": {"type": "array", "items": answer}}}
    sites = {"sites": _list("string", "Patterns of names"), "heads": _list("integer", "Else the mean over heads")}
    looked = {"type": "object", "properties": {**inputs, **sites}, "required": ["input"]}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": service.skill.name,
            "description": service.skill.task.about.removeprefix("Train "),
            "version": metadata.version("foveate"),
        },
        "paths": {
            "/answer": {"post": _post("Answer one input or several", asked, {"anyOf": [answers, answer]})},
            "/look": {"post": _post("See where the model looks", looked, {"type": "object"})},
            "/health": {"get": _get("Whether the model answers", "application/json")},
            "/metrics": {"get": _get("Counts and times for Prometheus", "text/plain")},
        },
    }


def options_schema(options: Any) -> dict[str, Any]:
    """The JSON schema of each option that a request may change."""
    return {name: _schema(kind, LARGEST.get(name, OTHERS)) for name, kind in open_options(options).items()}


def _schema(kind: Any, most: int) -> dict[str, Any]:
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"enum": [*parts]}
    if origin in (Union, UnionType):
        return {"anyOf": [_schema(part, most) for part in parts]}
    if origin in (tuple, list):
        return {"type": "array", "items": _schema(parts[0], most)}
    bound = {"maximum": most} if kind in (int, float) else {}
    return {"type": PLAIN[kind], **bound} if kind in PLAIN else {}


def _input(takes: str) -> dict[str, Any]:
    if takes == "text":
        return {"type": "string"}
    texts = {"data": {"type": "string", "contentEncoding": "base64"}, "name": {"type": "string"}}
    asked = {"question": {"type": "string"}} if takes == "question" else {}
    return {"type": "object", "properties": {**texts, **asked}, "required": ["data", *asked]}


def _list(kind: str, about: str) -> dict[str, Any]:
    return {"type": "array", "items": {"type": kind}, "description": about}


def _post(about: str, body: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    content = {"application/json": {"schema": body}}
    error = {"type": "object", "properties": {"message": {"type": "string"}}}
    return {
        "summary": about,
        "requestBody": {"required": True, "content": content},
        "responses": {
            "200": {"description": "The answer", "content": {"application/json": {"schema": answer}}},
            "4XX": {"description": "What is wrong with it", "content": {"application/json": {"schema": error}}},
            "503": {"description": "Too many requests are waiting"},
        },
    }


def _get(about: str, kind: str) -> dict[str, Any]:
    return {"summary": about, "responses": {"200": {"description": about, "content": {kind: {}}}}}
