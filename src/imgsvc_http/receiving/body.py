"""Bodies of requests: read within limits of size and time, and JSON parsed strictly."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import HttpVersion11, web

from imgsvc_core._runtime.jsontext import STRING, check_depth, without_repeats
from imgsvc_core.limits import in_words
from imgsvc_http.answering.errors import refusal

_INLINE_BYTES = 1 << 14  # JSON that is parsed in less than a millisecond
_MOST_VALUES = 10_000  # keys and values
_MOST_DIGITS = 400
Pace = Callable[[], Awaitable[None]]
"""Waits until another part of a body may be read."""

_CONTINUED = web.RequestKey("continued", bool)


async def read_json(request: web.Request, *, limit: int, seconds: float, pace: Pace) -> Any:
    """Return the JSON body of a request."""
    if request.content_type != "application/json":
        raise unsupported_media_type("application/json", request)
    await begin_body(request, limit, "The body")
    body = bytearray()
    async with receiving(seconds):
        while chunk := await next_chunk(request, pace):
            body += chunk
            if len(body) > limit:
                raise refusal("body_too_large", what="The body", limit=limit)
    return await parse_json(bytes(body))


async def begin_body(request: web.Request, limit: int, what: str) -> None:
    """Check what the headers say of a body, and tell a client that waits for it to send the body."""
    encoding = request.headers.get("Content-Encoding", "").strip().lower()
    if encoding not in ("", "identity"):
        raise refusal("unsupported_encoding", got=encoding)
    size = request.content_length
    if size is not None and size > limit:
        raise refusal("body_too_large", what=what, limit=limit)
    if "Expect" in request.headers and awaits_continue(request):
        request[_CONTINUED] = True
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0


def awaits_continue(request: web.Request) -> bool:
    """Return True if the client holds its body back, and has not been told to send it."""
    expects = request.headers.get("Expect", "").strip().lower() == "100-continue"
    return expects and request.version >= HttpVersion11 and _CONTINUED not in request


async def next_chunk(request: web.Request, pace: Pace) -> bytes:
    """Return the next bytes of a body as they arrive, at the pace of its client, or nothing at its end."""
    chunk = await request.content.readany()
    if chunk:
        await pace()
    return chunk


class receiving:  # noqa: N801 (a context manager, without a generator for each use)
    """Turn a body that is too slow or incomplete into a `Refusal`."""

    __slots__ = ("_seconds", "_timeout")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timeout = asyncio.timeout(seconds)

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(self, *raised: Any) -> None:
        try:
            await self._timeout.__aexit__(*raised)
        except TimeoutError:
            raise refusal("body_too_slow", time=in_words(self._seconds)) from None
        if isinstance(error := raised[1], web.RequestPayloadError | ConnectionError):
            raise refusal("broken_body") from error


async def parse_json(body: bytes) -> Any:
    """Return the values of JSON text, which may have no repeated keys and a limited number of values.

    NaN, infinities and integers of any length are let through, cut to a length at which they are out of every
    range: the parsing of parameters refuses them with their paths.
    """
    return await asyncio.to_thread(_parsed, body) if len(body) > _INLINE_BYTES else _parsed(body)


def unsupported_media_type(expected: str, request: web.Request) -> Exception:
    """Return the error of a body of another type."""
    return refusal("unsupported_media_type", expected=expected, got=request.headers.get("Content-Type", ""))


def _parsed(body: bytes) -> Any:
    try:
        text = body.decode("utf-8-sig")
        check_values(text, _MOST_VALUES)
        document = _DECODER.decode(text)
        check_depth(text)
        if "\\u" in text:
            json.dumps(document, ensure_ascii=False).encode()  # finds lone surrogates
    except RecursionError:
        raise refusal("invalid_json", reason="it is nested too deeply") from None
    except UnicodeDecodeError:
        raise refusal("invalid_json", reason="it must be text in UTF-8") from None
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise refusal(
            "invalid_json", reason=f"{half} is half of a character; the other half is missing"
        ) from None
    except ValueError as error:
        raise refusal("invalid_json", reason=str(error).rstrip(".")) from None
    return document


def check_values(text: str, most: int) -> None:
    """Raise `ValueError` if valid JSON has more than ``most`` keys and values.

    The text is not parsed, because parsing would block other threads. Empty arrays and objects count twice.
    """
    if _marks(text, 0, len(text)) <= most:
        return
    seen = end = 0
    for string in STRING.finditer(text):
        between = _marks(text, end, string.start())
        if end and not between:  # two strings side by side: valid JSON ends here
            return
        seen, end = seen + between, string.end()
        if seen > most:
            break
    if seen + _marks(text, end, len(text)) > most:
        raise ValueError(f"it has more than {most:,} keys and values")


def _marks(text: str, start: int, end: int) -> int:
    """Return the number of characters that begin or separate keys and values."""
    return sum(text.count(mark, start, end) for mark in ",:[{")


def _integer(digits: str) -> int:
    return int(digits[:_MOST_DIGITS])  # Python converts no more than 4,300, and slowly


def _decimal(digits: str) -> float:
    """Convert a number in Python, so that other threads run between two of them."""
    return float(digits)


_DECODER = json.JSONDecoder(object_pairs_hook=without_repeats, parse_int=_integer, parse_float=_decimal)
