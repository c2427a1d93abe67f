"""Answers as HTTP responses: JSON bodies, and pictures with their metadata in a header."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import attrs

from imgsvc_http.answering.answers import Failure, WrongParameter, unstructured
from imgsvc_http.answering.bodies import WHOLE_BYTES, BodiesUnderWay, Body, SentBody
from imgsvc_http.answering.errors import Refusal
from imgsvc_http.answering.headers import HeaderNames

_MOST_HEADER_BYTES = 7_000  # servers and clients often have a limit of 8 kB for all headers
_MOST_LETTERS = 500
_JSON = {"Content-Type": "application/json; charset=utf-8", "Cache-Control": "no-store"}
_SURROGATE = re.compile("[\ud800-\udfff]")


@attrs.frozen
class Response:
    """An HTTP response that can be kept and sent again."""

    status: int
    headers: Mapping[str, str]
    body: Body = attrs.field(repr=False)

    def payload(self, bodies: BodiesUnderWay) -> bytes | SentBody:
        """Return the body as aiohttp takes it.

        Raises:
            Refusal: there is no memory for the body, unless it is that of an error.
        """
        if len(self.body) <= WHOLE_BYTES:
            return bytes(self.body)
        if self.status < HTTPStatus.BAD_REQUEST:
            bodies.check_room(self.body)
        return SentBody(self.body, bodies)


def success(answer: attrs.AttrsInstance | None = None, status: int = HTTPStatus.OK) -> Response:
    """Return an answer as JSON, with ``success`` and ``code``."""
    told = unstructured(answer) if answer else {}
    return _json(status, {"success": True, "code": int(status), **told})


def finished(text: str) -> Response:
    """Return the JSON of a result."""
    return Response(HTTPStatus.OK, _JSON, text.encode("ascii"))


def picture(text: str, data: bytes, media_type: str, names: HeaderNames) -> Response:
    """Return a picture, with the JSON of its result in a header."""
    headers = {"Content-Type": media_type, "X-Content-Type-Options": "nosniff", **_metadata(text, names)}
    return Response(HTTPStatus.OK, headers, data)


def failure(refusal: Refusal, request_id: str, binary: HeaderNames | None = None) -> Response:
    """Return an error as JSON, or in binary mode without a body and with its JSON in a header."""
    document = failure_body(refusal, request_id)
    if binary is None:
        return _json(refusal.status, document, refusal.headers)
    return Response(refusal.status, {**refusal.headers, **_metadata(_ascii(document), binary)}, b"")


def failure_body(refusal: Refusal, request_id: str) -> dict[str, Any]:
    """Return the JSON of an error."""
    answer = Failure(
        id=request_id,
        error=refusal.slug,
        message=_readable(refusal.message),
        errors=tuple(
            WrongParameter(path=_readable(item.path), message=_readable(item.message))
            for item in refusal.problems
        ),
    )
    return {"success": False, "code": int(refusal.status), **unstructured(answer)}


def _readable(text: str) -> str:
    """Replace the surrogates that stand for bytes of a header which are not UTF-8."""
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def _json(status: int, document: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    body = _ascii(document).encode("ascii")
    return Response(status, {**_JSON, **(headers or {})}, body)


def _metadata(text: str, names: HeaderNames) -> dict[str, str]:
    """Return the header of the metadata under both of its names, short enough for proxies."""
    if len(text) > _MOST_HEADER_BYTES:
        text = _ascii(_shortened(json.loads(text)))
    return {names.metadata: text, names.meta: text}


def _shortened(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Cut a long message, and leave out the plan, and as many wrong parameters or faces as have no room."""
    if len(message := document.get("message", "")) > _MOST_LETTERS:
        document = {**document, "message": message[:_MOST_LETTERS] + "..."}
    document = {name: value for name, value in document.items() if name != "plan"}
    excess = len(_ascii(document)) - _MOST_HEADER_BYTES
    if "errors" in document:
        return {**document, "errors": _fewer(document["errors"], excess)}
    output = document.get("output", {})
    if "faces" in output:
        return {**document, "output": {**output, "faces": _fewer(output["faces"], excess)}}
    return document


def _fewer(items: Sequence[Any], excess: int) -> list[Any]:
    """Leave out the last items until the wanted number of bytes is saved."""
    kept = list(items)
    while kept and excess > 0:
        excess -= len(_ascii(kept.pop())) + 1
    return kept


def _ascii(document: object) -> str:
    return json.dumps(document, separators=(",", ":"))
