"""The shapes of answers: JSON bodies, and pictures with their metadata in a header."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import attrs
from aiohttp import Payload, web
from aiohttp.abc import AbstractStreamWriter

from imgsvc_http.answering.header_names import META, METADATA, with_prefix
from imgsvc_http.answering.refusals import Refusal

_PIECE_BYTES = 1 << 18
_MOST_HEADER_BYTES = 7_000
_MOST_LETTERS = 500
_SURROGATE = re.compile("[\ud800-\udfff]")


@attrs.frozen
class Answer:
    """An HTTP answer that can be kept and given again."""

    status: int
    headers: Mapping[str, str]
    body: bytes = attrs.field(repr=False)

    def response(self) -> web.Response:
        """What is sent; large bodies in pieces, so that encrypting them holds nobody up."""
        body = _InPieces(self.body) if len(self.body) > _PIECE_BYTES else self.body
        return web.Response(status=self.status, headers=dict(self.headers), body=body)


class _InPieces(Payload):
    """Bytes of which no copy is made, and between whose pieces others have their turn."""

    _value: bytes

    @property
    def size(self) -> int:
        return len(self._value)

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return self._value.decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        view = memoryview(self._value)
        for start in range(0, len(view), _PIECE_BYTES):
            await writer.write(view[start : start + _PIECE_BYTES])
            await asyncio.sleep(0)


def success(status: HTTPStatus = HTTPStatus.OK, **fields: Any) -> Answer:
    """``success``, ``code`` and the fields as JSON."""
    return _json(status, {"success": True, "code": status.value, **fields})


def failure(refusal: Refusal, request_id: str) -> Answer:
    """The shape of every error."""
    return _json(refusal.status, describe(refusal, request_id), refusal.headers)


def picture(data: bytes, media_type: str, metadata: Mapping[str, Any], prefix: str) -> Answer:
    """A picture with its metadata in a header."""
    headers = {"Content-Type": media_type, "X-Content-Type-Options": "nosniff", **_carried(metadata, prefix)}
    return Answer(HTTPStatus.OK, headers, data)


def no_picture(refusal: Refusal, request_id: str, prefix: str) -> Answer:
    """An error where a picture was asked for: no body, all in the header."""
    return Answer(refusal.status, {**refusal.headers, **_carried(describe(refusal, request_id), prefix)}, b"")


def describe(refusal: Refusal, request_id: str) -> dict[str, Any]:
    """An error as JSON values; ``errors`` lists every wrong parameter."""
    described: dict[str, Any] = {
        "success": False,
        "code": refusal.status.value,
        "id": request_id,
        "error": refusal.slug,
        "message": _readable(refusal.message),
    }
    if refusal.problems:
        described["errors"] = [
            {"path": _readable(problem.path), "message": _readable(problem.message)}
            for problem in refusal.problems
        ]
    return described


def _readable(text: str) -> str:
    """Text in Unicode: bytes of a header that are no UTF-8 come as halves of surrogate pairs."""
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def _json(
    status: HTTPStatus, document: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> Answer:
    body = _ascii(document).encode("ascii")
    return Answer(status, {"Content-Type": "application/json; charset=utf-8", **(headers or {})}, body)


def _carried(metadata: Mapping[str, Any], prefix: str) -> dict[str, str]:
    """The metadata in ASCII, under both names; short enough for servers between here and the client."""
    text = _ascii(metadata)
    if len(text) > _MOST_HEADER_BYTES:
        text = _ascii(_shortened(metadata))
    return {with_prefix(name, prefix): text for name in (METADATA, META)}


def _shortened(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same with the start of a long message, and as many wrong parameters or faces as have room."""
    if len(message := metadata.get("message", "")) > _MOST_LETTERS:
        metadata = {**metadata, "message": message[:_MOST_LETTERS] + "..."}
    excess = len(_ascii(metadata)) - _MOST_HEADER_BYTES
    if "errors" in metadata:
        return {**metadata, "errors": _fewer(metadata["errors"], excess)}
    output = metadata.get("output", {})
    if "faces" in output:
        return {**metadata, "output": {**output, "faces": _fewer(output["faces"], excess)}}
    return metadata


def _fewer(items: Sequence[Any], excess: int) -> list[Any]:
    """Items without the last ones, which take so many bytes as are too many."""
    kept = list(items)
    while kept and excess > 0:
        excess -= len(_ascii(kept.pop())) + 1
    return kept


def _ascii(document: object) -> str:
    return json.dumps(document, separators=(",", ":"))
