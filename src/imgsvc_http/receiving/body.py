"""Reading request bodies, refused while they come in rather than after."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any

from aiohttp import HttpVersion11, web

from imgsvc_core.jsontext import check_depth, check_values, without_repeats
from imgsvc_http.answering.refusals import (
    ENCODINGS,
    body_too_large,
    body_too_slow,
    broken_body,
    invalid_json,
    unsupported_encoding,
    unsupported_media_type,
)
from imgsvc_http.context import INVITED
from imgsvc_http.fetching.content_encoding import PLAIN, BrokenEncoding, unpacked

_QUICK_BYTES = 1 << 14  # JSON that is parsed in less than a millisecond
_MOST_VALUES = 10_000  # keys and values
_MOST_DIGITS = 400


async def read_json(request: web.Request, *, limit: int, seconds: float) -> Any:
    """The JSON body of a request."""
    if request.content_type != "application/json":
        raise unsupported_media_type("application/json", request.headers.get("Content-Type", ""))
    return await parse_json(await read_body(request, limit=limit, seconds=seconds))


async def read_body(request: web.Request, *, limit: int, seconds: float) -> bytes:
    """All bytes of a body."""
    check_announced(request, limit, "The body")
    await invite(request)
    body = bytearray()
    async with arriving(seconds):
        async for chunk in received(request, limit, "The body"):
            body += chunk
    return bytes(body)


def received(request: web.Request, limit: int, what: str) -> AsyncIterator[bytes]:
    """The bytes of a body as they come in, unpacked, and refused as soon as there are too many of them.

    No piece is empty.
    """
    chunks = _at_most(limit, request.content.iter_any(), what)
    encoding = _encoding(request)
    if encoding in PLAIN or request.content.total_compressed_bytes is not None:  # the server unpacks it
        return chunks
    return _at_most(limit, unpacked(chunks, encoding), what)


async def _at_most(limit: int, chunks: AsyncIterable[bytes], what: str) -> AsyncIterator[bytes]:
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > limit:
            raise body_too_large(what, limit)
        yield chunk


async def parse_json(body: bytes) -> Any:
    """JSON values, strictly: no repeated keys, and only so many.

    NaN and infinities are let through, for what reads the values to refuse them with their paths; so are
    integers of any length, cut to a length at which they still lie outside of every range.
    """
    return await asyncio.to_thread(_parsed, body) if len(body) > _QUICK_BYTES else _parsed(body)


def _parsed(body: bytes) -> Any:
    try:
        text = body.decode("utf-8-sig")
        check_values(text, _MOST_VALUES)
        document = json.loads(
            text, object_pairs_hook=without_repeats, parse_int=_integer, parse_float=_decimal
        )
        check_depth(text)
        if "\\u" in text:
            json.dumps(document, ensure_ascii=False).encode()  # finds halves of surrogate pairs
    except RecursionError:
        raise invalid_json("it is nested too deeply") from None
    except UnicodeError:
        raise invalid_json("it must be text in UTF-8") from None
    except ValueError as error:
        raise invalid_json(str(error).rstrip(".")) from None
    return document


@contextlib.asynccontextmanager
async def arriving(seconds: float) -> AsyncIterator[None]:
    """Around the reading of a body: one that is too slow or breaks off is a `Refusal`."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise body_too_slow(seconds) from None
    except (BrokenEncoding, web.RequestPayloadError, ConnectionError) as error:
        raise broken_body() from error


def check_announced(request: web.Request, limit: int, what: str) -> None:
    """Refuse a body that says that it is larger than the limit, or compressed in a way that is not known."""
    encoding = _encoding(request)
    if encoding not in (*PLAIN, *ENCODINGS):
        raise unsupported_encoding(encoding)
    if request.content_length is not None and request.content_length > limit:
        raise body_too_large(what, limit)


def announced_bytes(request: web.Request) -> int | None:
    """How many bytes a body has, where that is known before it comes."""
    return request.content_length if _encoding(request) in PLAIN else None


async def invite(request: web.Request) -> None:
    """Tell a client that waits for it to send its body."""
    if waits_for_invitation(request):
        request[INVITED] = True
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0


def waits_for_invitation(request: web.Request) -> bool:
    """Whether the client holds its body back, and has not been told to send it."""
    expects = request.headers.get("Expect", "").strip().lower() == "100-continue"
    return expects and request.version >= HttpVersion11 and INVITED not in request


def _encoding(request: web.Request) -> str:
    return request.headers.get("Content-Encoding", "").strip().lower()


def _integer(digits: str) -> int:
    return int(digits[:_MOST_DIGITS])  # Python converts no more than 4,300, and slowly


def _decimal(digits: str) -> float:
    """Other threads have their turn between two numbers, which they have not while many are read at once."""
    return float(digits)
