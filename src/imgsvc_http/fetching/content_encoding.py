"""Compressed bodies of sources, decompressed in steps that do not block the event loop."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any

PLAIN = ("", "identity")
"""Values of ``Content-Encoding`` that mean bytes as they are."""

_CHUNK_BYTES = 1 << 16
_EITHER_HEADER = zlib.MAX_WBITS | 32  # that of gzip or of zlib
_NO_HEADER = -zlib.MAX_WBITS
_DEFLATED = 8


class InvalidEncoding(Exception):
    """A body is not encoded as its header says. The text says what is wrong with it."""


async def decompressed(chunks: AsyncIterable[bytes], encoding: str) -> AsyncIterator[bytes]:
    """Yield the content of a body in gzip or deflate, in chunks of up to 64 KiB.

    A few bytes may decompress to a thousand times as many. So nothing is decompressed before it is asked for,
    and the event loop does other work after each chunk.

    Raises:
        InvalidEncoding: the body is not encoded so, ends too early or has more bytes.
    """
    decoder = None
    async for chunk in chunks:
        left = chunk
        if decoder is None and left:
            decoder = _decoder(encoding, left[0])
        while left and decoder is not None:
            try:
                piece = decoder.decompress(left, _CHUNK_BYTES)
            except zlib.error as error:
                raise InvalidEncoding("has a broken Content-Encoding") from error
            if decoder.unused_data:  # zlib would keep all of it
                raise InvalidEncoding("goes on after the end of its Content-Encoding")
            left = decoder.unconsumed_tail
            if piece:
                yield piece
            await asyncio.sleep(0)
    if decoder is not None:
        if rest := decoder.flush():
            yield rest
        if not decoder.eof:
            raise InvalidEncoding("ended before it was complete")


def _decoder(encoding: str, first: int) -> Any:
    """Return a decoder. By the standard deflate has the header of zlib, but often it has none."""
    bare = encoding == "deflate" and first & 0xF != _DEFLATED
    return zlib.decompressobj(_NO_HEADER if bare else _EITHER_HEADER)
