"""Bodies over HTTP, for every client: paced requests and bounded responses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.base_protocol import BaseProtocol

_MOST_REFUSAL_BYTES = 2**16
"""The most bytes that are read of an error response. Codes and reasons take some hundred bytes."""

_MOST_ANSWER_BYTES = 2**20
"""The most bytes that are read of other responses. The longest hold a token and many addresses."""

_CHUNK_BYTES = 2**18


class Body(aiohttp.Payload):
    """Bytes that are sent in chunks without a copy. Bodies of aiohttp copy, or send no chunks."""

    def __init__(self, data: bytes, content_type: str = "application/octet-stream") -> None:
        super().__init__(data, content_type=content_type)
        self._size = len(data)

    async def write(self, writer: AbstractStreamWriter) -> None:
        view = memoryview(self._value)
        for start in range(0, len(view), _CHUNK_BYTES):
            await writer.write(view[start : start + _CHUNK_BYTES])

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        data: bytes = self._value
        return data.decode(encoding, errors)


def tracing_for(pace: Callable[[], Awaitable[None]]) -> aiohttp.TraceConfig:
    """Return the tracing of an aiohttp session that writes to a store.

    ``pace`` is awaited before each chunk of a body, so that many bodies, encrypted above all, do not block
    the event loop.
    """

    async def wait(*about: Any) -> None:
        await pace()

    tracing = aiohttp.TraceConfig()
    tracing.on_request_chunk_sent.append(wait)
    tracing.on_request_end.append(_shorten)
    tracing.freeze()
    return tracing


async def _shorten(
    session: aiohttp.ClientSession, context: object, params: aiohttp.TraceRequestEndParams
) -> None:
    """Replace a response body by its beginning."""
    answer = params.response
    most = _MOST_ANSWER_BYTES if answer.status < 300 else _MOST_REFUSAL_BYTES
    start = bytearray()
    try:
        while len(start) < most and (chunk := await answer.content.read(most)):
            start += chunk
    finally:
        if not answer.content.at_eof():
            answer.close()
    loop = asyncio.get_running_loop()
    content = aiohttp.StreamReader(BaseProtocol(loop), most, loop=loop)
    content.feed_data(bytes(start[:most]))
    content.feed_eof()
    answer.content = content
