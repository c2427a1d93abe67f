"""Bodies that are compressed on their way, unpacked in steps that hold nobody up."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterable, AsyncIterator

PLAIN = ("", "identity")
"""Values of ``Content-Encoding`` that mean bytes as they are."""

_PIECE_BYTES = 1 << 16
_EITHER_HEADER = zlib.MAX_WBITS | 32  # that of gzip or of zlib
_NO_HEADER = -zlib.MAX_WBITS
_DEFLATED = 8


class BrokenEncoding(Exception):
    """Bytes that are not encoded as was said; the text says what is wrong with them."""


async def unpacked(chunks: AsyncIterable[bytes], encoding: str) -> AsyncIterator[bytes]:
    """The content of bytes in gzip or deflate, in pieces of 64 KiB at most, of which none is empty.

    A few bytes may unpack to a thousand times as many: nothing is unpacked before it is asked for, and
    others have their turn after each piece.

    Raises:
        BrokenEncoding: the bytes are not encoded so, or end before the encoding does, or after it.
    """
    decoder = None
    async for chunk in chunks:
        left = chunk
        if decoder is None and left:
            decoder = _decoder(encoding, left[0])
        while left and decoder is not None:
            try:
                piece = decoder.decompress(left, _PIECE_BYTES)
            except zlib.error as error:
                raise BrokenEncoding("has a broken Content-Encoding") from error
            if decoder.unused_data:  # kept without a limit if it were ignored
                raise BrokenEncoding("goes on after the end of its Content-Encoding")
            left = decoder.unconsumed_tail
            if piece:
                yield piece
            await asyncio.sleep(0)
    if decoder is not None:
        if rest := decoder.flush():
            yield rest
        if not decoder.eof:
            raise BrokenEncoding("ended before it was complete")


def _decoder(encoding: str, first: int) -> zlib._Decompress:
    """What is called deflate has a header of zlib by the standard, but often none."""
    bare = encoding == "deflate" and first & 0xF != _DEFLATED
    return zlib.decompressobj(_NO_HEADER if bare else _EITHER_HEADER)
