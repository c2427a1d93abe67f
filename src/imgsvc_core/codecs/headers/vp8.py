"""The quality setting behind the quantiser of a VP8 key frame, the lossy coding of WebP (RFC 6386)."""

from __future__ import annotations

from imgsvc_core.codecs.headers.reader import HeaderReader

_LONGEST_HEADER = 64
_QUANTISER_BITS, _FILTER_BITS, _DELTA_BITS, _TREE_BITS = 7, 6, 6, 8


def read_quality(reader: HeaderReader, start: int) -> int | None:
    """Quality 1 to 100, estimated from the quantisers of the frame header at ``start``.

    An encoder of the WebP project spreads its quantisers around the one that the quality stands for, by how
    busy each part of the picture is, so that this is right to a few units; None where the header is cut off.
    """
    data = reader.read(start, max(0, min(_LONGEST_HEADER, reader.size - start)))
    if len(data) < _LONGEST_HEADER // 4:
        return None
    return _quality(_quantiser(_BoolDecoder(data)))


def _quality(quantiser: float) -> int:
    """The inverse of libwebp's quality curve: a cube root with a knee at quality 75, rounded down."""
    linear = max(0.0, 1 - (quantiser + 0.5) / 127) ** 3
    quality = 150 * linear if linear < 0.5 else 50 * (1 + linear)
    return min(100, max(1, round(quality)))


class _BoolDecoder:
    """The arithmetic decoder of RFC 6386, section 7; beyond the data it reads zeros."""

    __slots__ = ("_bit_count", "_data", "_next", "_range", "_value")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._value = int.from_bytes(data[:2], "big")
        self._next = 2
        self._range = 255
        self._bit_count = 0

    def bit(self, probability: int = 128) -> int:
        split = 1 + ((self._range - 1) * probability >> 8)
        found = self._value >= split << 8
        if found:
            self._range -= split
            self._value -= split << 8
        else:
            self._range = split
        while self._range < 128:
            self._value <<= 1
            self._range <<= 1
            self._bit_count += 1
            if self._bit_count == 8:
                self._bit_count = 0
                self._value |= self._data[self._next] if self._next < len(self._data) else 0
                self._next += 1
        return int(found)

    def number(self, bits: int) -> int:
        value = 0
        for _ in range(bits):
            value = value << 1 | self.bit()
        return value

    def optional(self, bits: int, *, signed: bool) -> int | None:
        """A number after a bit that says whether it is there."""
        if not self.bit():
            return None
        value = self.number(bits)
        return -value if signed and self.bit() else value


def _quantiser(decoder: _BoolDecoder) -> float:
    """Quantiser index 0 to 127 of the frame, or the mean over its segments (RFC 6386, section 9.3 to 9.6)."""
    decoder.number(2)  # color space and clamping
    segments: list[int] = []
    absolute = 0
    shares = [0.25] * 4
    if decoder.bit():
        has_map, has_values = decoder.bit(), decoder.bit()
        if has_values:
            absolute = decoder.bit()
            segments = [decoder.optional(_QUANTISER_BITS, signed=True) or 0 for _ in range(4)]
            for _ in range(4):
                decoder.optional(_FILTER_BITS, signed=True)
        if has_map:
            shares = _shares([decoder.optional(_TREE_BITS, signed=False) for _ in range(3)])
    decoder.number(1 + 6 + 3)  # loop filter
    if decoder.bit() and decoder.bit():
        for _ in range(8):
            decoder.optional(_DELTA_BITS, signed=True)
    decoder.number(2)  # partitions
    base = decoder.number(_QUANTISER_BITS)
    if not segments:
        return base
    quantisers = segments if absolute else [base + delta for delta in segments]
    return sum(
        share * min(127, max(0, quantiser)) for share, quantiser in zip(shares, quantisers, strict=True)
    )


def _shares(probabilities: list[int | None]) -> list[float]:
    """The share of each segment in the picture, from the probabilities of its binary tree."""
    root, left, right = (1.0 if value is None else value / 255 for value in probabilities)
    return [root * left, root * (1 - left), (1 - root) * right, (1 - root) * (1 - right)]
