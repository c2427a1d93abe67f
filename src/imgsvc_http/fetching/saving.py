"""Writing bodies of sources into files, decoded in steps that do not block the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable
from pathlib import Path

from imgsvc_core.errors import EmptySource, SourceTooLarge, SourceUnreachable
from imgsvc_core.sources import Decoding, InvalidCoding, TooManyBytes
from imgsvc_http.storage.source_files import Allocate


async def save(
    chunks: AsyncIterable[bytes],
    encoding: str,
    announced: int | None,
    allocate: Allocate,
    limit_bytes: int | None,
    show: Callable[[], str],
) -> Path:
    """Write a body into a file.

    Args:
        chunks: the body.
        encoding: its ``Content-Encoding``.
        announced: how many bytes it has, if that is known.
        allocate: gives the file.
        limit_bytes: the most bytes, before and after decoding.
        show: names the source in errors.

    Raises:
        SourceUnreachable: the body is not encoded so, ends too early or has more bytes.
        EmptySource, SourceTooLarge: there are too few or too many bytes.
    """
    size = 0
    try:
        if limit_bytes is not None and announced is not None and announced > limit_bytes:
            raise TooManyBytes
        decoding = Decoding(encoding, limit_bytes)
        file = allocate(announced if decoding.is_plain else None)
        with file.writing() as target:
            async for chunk in _decoded(chunks, decoding):
                size += target.write(chunk)
    except InvalidCoding as error:
        raise SourceUnreachable(f"{show()} {error}.") from error
    except TooManyBytes:
        assert limit_bytes is not None
        raise too_large(show(), limit_bytes) from None
    if size == 0:
        raise empty(show())
    return file.path


async def _decoded(chunks: AsyncIterable[bytes], decoding: Decoding) -> AsyncIterator[bytes]:
    """Yield the content. Nothing is decoded before it is asked for. Other work is done after each step."""
    async for chunk in chunks:
        for piece in decoding.feed(chunk):
            if piece:
                yield piece
            if not decoding.is_plain:
                await asyncio.sleep(0)
    decoding.finish()


def empty(shown: str) -> EmptySource:
    """Return the error of a source without bytes."""
    return EmptySource(f"{shown} is empty; expected an image.")


def too_large(shown: str, limit_bytes: int) -> SourceTooLarge:
    """Return the error of a source with too many bytes."""
    return SourceTooLarge(
        f"{shown} has more than {limit_bytes:,} bytes, which is the limit: use a smaller file."
    )
