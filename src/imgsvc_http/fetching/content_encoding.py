"""Encoded bodies of sources, decoded in steps that do not block the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator

from imgsvc_core.sources import Decoding


async def decoded(chunks: AsyncIterable[bytes], decoding: Decoding) -> AsyncIterator[bytes]:
    """Yield the content of a body.

    Nothing is decoded before it is asked for, and the event loop does other work after each step.

    Raises:
        InvalidCoding: the body is not encoded so, ends too early or has more bytes.
        TooManyBytes: there are too many before, between or after the codings.
    """
    async for chunk in chunks:
        for piece in decoding.feed(chunk):
            if piece:
                yield piece
            if not decoding.is_plain:
                await asyncio.sleep(0)
    decoding.finish()
