"""Reading request bodies, refused while they come in rather than after."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import secrets
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from aiohttp import HttpVersion11, web

from imgsvc_core.jsontext import check_depth, without_repeats
from imgsvc_http.context import INVITED
from imgsvc_http.refusals import (
    ENCODINGS,
    body_too_large,
    body_too_slow,
    broken_body,
    invalid_json,
    unsupported_encoding,
    unsupported_media_type,
)
from imgsvc_http.unpacking import PLAIN, BrokenEncoding, unpacked

_QUICK_BYTES = 1 << 14  # JSON that is parsed in less than a millisecond
_MOST_OBJECTS = 1000
_MOST_DIGITS = 4000


class IncomingFolder:
    """Where sources lie while they are worked on; what a killed process left is cleared away."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for left in folder.iterdir():
            left.unlink(missing_ok=True)

    @contextlib.contextmanager
    def path(self) -> Iterator[Path]:
        """A path for one source, which is gone after the block."""
        path = self.folder / secrets.token_hex(16)
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)


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
    """The bytes of a body as they come in, unpacked, and refused as soon as there are too many of them."""
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
    """JSON values, strictly: no repeated keys.

    NaN and infinities are let through, for what reads the values to refuse them with their paths; so are
    integers of any length, cut to a length at which they still lie outside of every range.
    """
    return await asyncio.to_thread(_parsed, body) if len(body) > _QUICK_BYTES else _parsed(body)


def _parsed(body: bytes) -> Any:
    objects = itertools.count(1)

    def checked(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if next(objects) > _MOST_OBJECTS:
            raise ValueError(f"it has more than {_MOST_OBJECTS:,} objects")
        return without_repeats(pairs)

    try:
        text = body.decode("utf-8-sig")
        document = json.loads(text, object_pairs_hook=checked, parse_int=_integer)
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
    return int(digits[:_MOST_DIGITS])  # Python converts no more than 4,300
