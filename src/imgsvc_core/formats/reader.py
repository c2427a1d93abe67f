"""Reads of pieces of a header, wherever in the file they are."""

from __future__ import annotations

import math
import struct
from typing import Any

from imgsvc_core.errors import CorruptImage, ImageTooLarge, UnsupportedFormat
from imgsvc_core.formats.bytesource import ByteSource

_BLOCK = 1 << 14
_MOST_READS = 2_000_000


class HeaderReader:
    """Exact reads at offsets of a source, through one block of 16 kB, so that skipped data is never read.

    A read beyond the end raises `CorruptImage`. So do millions of reads, which bounds the time that a
    hostile file can take. ``most_memory`` is the most bytes that a library may need to find facts.
    ``most_inlined`` is the most pixels that all pictures inside of a drawing may have together. ``start`` is
    where offset 0 is in the source.
    """

    __slots__ = (
        "_block", "_block_start", "_reads_left", "most_inlined", "most_memory", "size", "source", "start",
        "title",
    )  # fmt: skip

    def __init__(
        self,
        source: ByteSource,
        title: str,
        *,
        start: int = 0,
        size: int | None = None,
        most_memory: float = math.inf,
        most_inlined: float = math.inf,
    ) -> None:
        self.source = source
        self.start = start
        self._block = b""
        self._block_start = 0
        self._reads_left = _MOST_READS
        self.title = title
        self.most_memory = most_memory
        self.most_inlined = most_inlined
        self.size = source.size - start if size is None else size

    def read(self, offset: int, length: int) -> bytes:
        """Return exactly ``length`` bytes from ``offset``."""
        begin = offset - self._block_start
        if begin < 0 or begin + length > len(self._block):
            self._fill(offset, length)
            begin = 0
        self._reads_left -= 1  # as in `count`, which is called less often
        if self._reads_left < 0:
            self.count(0)
        return self._block[begin : begin + length]

    def count(self, parts: int) -> None:
        """Raise `CorruptImage` if there were too many parts so far, with these."""
        self._reads_left -= parts
        if self._reads_left < 0:
            raise self.corrupt(f"its header has more than {_MOST_READS:,} parts")

    def byte(self, offset: int) -> int:
        """Return the byte at ``offset``."""
        return self.read(offset, 1)[0]

    def unpack(self, layout: str, offset: int) -> tuple[Any, ...]:
        """Return values in the notation of `struct` from ``offset``."""
        return struct.unpack(layout, self.read(offset, struct.calcsize(layout)))

    def part(self, offset: int, length: int) -> HeaderReader:
        """Return a reader of a file within the file, whose offsets start at 0 again."""
        length = max(0, min(length, self.size - offset))
        return HeaderReader(self.source, self.title, start=self.start + offset, size=length)

    def check_size(self, width: int, height: int) -> None:
        """Raise `CorruptImage` unless both sides are positive."""
        if width < 1 or height < 1:
            raise self.corrupt(f"its size of {width} x {height} pixels is impossible")

    def corrupt(self, reason: str) -> CorruptImage:
        """Return the error of a damaged file, with the reason as a clause after "is damaged:"."""
        return CorruptImage(f"{self._subject()} is damaged: {reason}.")

    def unsupported(self, reason: str) -> UnsupportedFormat:
        """Return the error of a variant that cannot be read, with the reason as a clause."""
        return UnsupportedFormat(f"{self._subject()} cannot be read: {reason}.")

    def too_large(self, reason: str) -> ImageTooLarge:
        """Return the error of a size that no limits could allow, with the reason as a clause."""
        return ImageTooLarge(f"{self._subject()} is too large: {reason}.")

    def _fill(self, offset: int, length: int) -> None:
        if offset < 0 or offset + length > self.size:
            raise self.corrupt(f"it ends after {self.size:,} bytes, before its header is complete")
        wanted = min(max(length, _BLOCK), self.size - offset)
        self._block = self.source.read(self.start + offset, wanted)
        self._block_start = offset
        if len(self._block) < length:
            raise self.corrupt("it became shorter while it was read")

    def _subject(self) -> str:
        return f"{self.title} image '{self.source.name}'" if self.source.name else f"The {self.title} image"
