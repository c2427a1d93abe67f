"""Numbers of the codestream of JPEG XL, bit by bit from the lowest (ISO/IEC 18181-1, section 9)."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate
from typing import TypeVar

from imgsvc_core.errors import CorruptImage
from imgsvc_core.formats.reader import HeaderReader

T = TypeVar("T")
Distribution = tuple[int, int]
"""What is added to a number, and how many bits the number has."""

ENUM: tuple[Distribution, ...] = ((0, 0), (1, 0), (2, 4), (18, 6))
_NAME_LENGTH: tuple[Distribution, ...] = ((0, 0), (0, 4), (16, 5), (48, 10))


class Codestream:
    """The bytes of a codestream, which a file may hold in several parts: each with its offset and length."""

    def __init__(self, reader: HeaderReader, parts: tuple[tuple[int, int], ...]) -> None:
        self.reader = reader
        self.parts = parts
        *self._starts, self.size = accumulate((length for _, length in parts), initial=0)

    def read(self, start: int, length: int) -> bytes:
        """Return bytes from a place of the codestream."""
        if start + length > self.size:
            raise self.reader.corrupt("its codestream ends before its data is complete")
        found, part = [], bisect_right(self._starts, start) - 1
        while length:
            offset, size = self.parts[part]
            begin = start - self._starts[part]
            found.append(self.reader.read(offset + begin, min(length, size - begin)))
            start, length, part = start + len(found[-1]), length - len(found[-1]), part + 1
        return b"".join(found)


class BitReader:
    """Reads the numbers of a codestream. ``position`` is counted in bits."""

    def __init__(self, codestream: Codestream, position: int = 0) -> None:
        self._codestream = codestream
        self.position = position

    def bits(self, count: int) -> int:
        """Return the number of the next bits."""
        if not count:
            return 0
        start, shift = divmod(self.position, 8)
        data = self._codestream.read(start, (shift + count + 7) // 8)
        self.position += count
        return int.from_bytes(data, "little") >> shift & (1 << count) - 1

    def flag(self) -> bool:
        """Return the next bit."""
        return bool(self.bits(1))

    def u32(self, *distributions: Distribution) -> int:
        """Return a number in one of four ranges."""
        least, count = distributions[self.bits(2)]
        return least + self.bits(count)

    def u64(self) -> int:
        """Return a number of up to 64 bits."""
        kind = self.bits(2)
        if kind < 3:
            return ((0, 0), (1, 4), (17, 8))[kind][0] + self.bits((0, 4, 8)[kind])
        number, shift = self.bits(12), 12
        while self.flag():
            count = 4 if shift == 60 else 8
            number |= self.bits(count) << shift
            shift += count
            if shift >= 64:
                break
        return number

    def enum(self) -> int:
        """Return a number of a list."""
        return self.u32(*ENUM)

    def real(self) -> float:
        """Return a real number of 16 bits."""
        return float(struct.unpack("<e", self.bits(16).to_bytes(2, "little"))[0])

    def skip(self, count: int) -> None:
        """Skip bits."""
        self.position += count

    def skip_name(self) -> bool:
        """Skip a name of a frame or of a channel. Return True if it has one."""
        length = self.u32(*_NAME_LENGTH)
        self.skip(8 * length)
        return length > 0

    def skip_extensions(self) -> None:
        """Skip what later versions of the format may add."""
        self.skip(sum(self.u64() for _ in range(self.u64().bit_count())))

    def align(self) -> None:
        """Go on at the next byte."""
        if self.position % 8 and self.bits(-self.position % 8):
            raise self.corrupt("bits that fill up a byte are not zero")

    def corrupt(self, reason: str) -> CorruptImage:
        """Return the error of a damaged file."""
        return self._codestream.reader.corrupt(reason)

    def count(self, parts: int) -> None:
        """Count work that reads no bits; see `HeaderReader.count`."""
        self._codestream.reader.count(parts)

    def placed(self, read: Callable[[], T]) -> tuple[T, tuple[int, int]]:
        """Return what a function reads, and where its bits begin and end."""
        start = self.position
        value = read()
        return value, (start, self.position)


class BitWriter:
    """Takes the numbers of a codestream."""

    def __init__(self) -> None:
        self._number = 0
        self._count = 0

    def bits(self, number: int, count: int) -> None:
        """Add a number of so many bits."""
        self._number |= number << self._count
        self._count += count

    def u32(self, number: int, *distributions: Distribution) -> None:
        """Add a number in the shortest of the ranges that hold it."""
        holding = [
            (count, kind, least)
            for kind, (least, count) in enumerate(distributions)
            if 0 <= number - least < 1 << count
        ]
        count, kind, least = min(holding)
        self.bits(kind, 2)
        self.bits(number - least, count)

    def copy(self, codestream: bytes, start: int, end: int) -> None:
        """Add bits of a codestream."""
        first = start // 8
        number = int.from_bytes(codestream[first : (end + 7) // 8], "little") >> start - 8 * first
        self.bits(number & (1 << end - start) - 1, end - start)

    def data(self) -> bytes:
        """Return all bits, filled up to a byte."""
        return self._number.to_bytes((self._count + 7) // 8, "little")
