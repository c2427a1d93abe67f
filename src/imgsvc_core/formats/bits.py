"""Numbers of any count of bits, as the headers of video streams hold them."""

from __future__ import annotations

from typing import NamedTuple


class StreamColors(NamedTuple):
    """What a stream states of its colors: the code points of primaries and transfer, and the range."""

    code_points: tuple[int, int] | None
    full_range: bool


class BitReader:
    """Takes bits from bytes, the highest first. Taking more than there are raises `IndexError`."""

    def __init__(self, data: bytes) -> None:
        self._bits = int.from_bytes(data, "big")
        self._left = 8 * len(data)

    def take(self, count: int) -> int:
        """Return the number that the next bits stand for."""
        self._left -= count
        if self._left < 0:
            raise IndexError("bits")
        return self._bits >> self._left & ((1 << count) - 1)

    def flag(self) -> bool:
        """Return the next bit."""
        return self.take(1) == 1

    def skip(self, *counts: int) -> None:
        """Leave out numbers of so many bits."""
        self.take(sum(counts))

    def golomb(self) -> int:
        """Return a number in Exponential-Golomb code: ``ue(v)`` of HEVC, ``uvlc()`` of AV1."""
        zeros = 0
        while not self.flag():
            zeros += 1
        return (1 << zeros) - 1 + self.take(zeros)
