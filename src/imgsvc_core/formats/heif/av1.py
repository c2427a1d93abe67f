"""What coded pictures state themselves: the sequence headers of AV1.

Sections are those of the AV1 Bitstream & Decoding Process Specification.
"""

from __future__ import annotations

from collections.abc import Iterator

from imgsvc_core.formats.reader import HeaderReader

_SEQUENCE_HEADER = 1
_PROFILE_WITHOUT_GRAY = 1
_PROFILE_OF_12_BITS = 2
_MOST_UNITS = 1000  # of one picture; encoders write some three
_MOST_BYTES = 512  # of a header, up to its colors
_LONGEST_ZEROS = 32


def coded_sizes(coded: HeaderReader) -> Iterator[tuple[int, int]]:
    """Yield the largest size of pictures that each sequence header among the units of data states (5.3).

    Raises:
        CorruptImage: the data ends before its units, or has very many of them.
    """
    return map(_size, _sequence_headers(coded))


def is_limited_gray(coded: HeaderReader) -> bool:
    """Return True if the first sequence header among the units of data states gray in limited range (5.5.2).

    Raises:
        CorruptImage: the data ends before its units, or has very many of them.
    """
    bits = next(_sequence_headers(coded), None)
    if bits is None:
        return False
    _size(bits)
    _pass_tools(bits)
    is_deep = bits.take(1)
    if bits.profile == _PROFILE_OF_12_BITS and is_deep:
        bits.take(1)
    is_gray = bits.profile != _PROFILE_WITHOUT_GRAY and bits.take(1)
    if bits.take(1):  # color space
        bits.take(24)
    return bool(is_gray and not bits.take(1))


def _sequence_headers(coded: HeaderReader) -> Iterator[_Bits]:
    place = 0
    for _ in range(_MOST_UNITS):
        if place >= coded.size:
            return
        head = coded.byte(place)
        kind, is_extended, has_length = head >> 3 & 15, head >> 2 & 1, head >> 1 & 1
        place += 1 + is_extended
        length, digits = _length(coded, place) if has_length else (coded.size - place, 0)
        place += digits
        if kind == _SEQUENCE_HEADER:
            yield _Bits(coded.read(place, min(_MOST_BYTES, length)))
        place += length
    raise coded.corrupt(f"a picture has more than {_MOST_UNITS:,} units")


def _length(coded: HeaderReader, place: int) -> tuple[int, int]:
    """Return a number of seven bits in each byte, lowest first, and how many bytes it has (4.10.5)."""
    value = digits = 0
    while True:
        byte = coded.byte(place + digits)
        value |= (byte & 0x7F) << 7 * digits
        digits += 1
        if byte < 0x80 or digits == 8:
            return value, digits


class _Bits:
    """Reads numbers of a sequence header from the highest bit on. Zeros follow the end."""

    def __init__(self, data: bytes) -> None:
        self.profile = data[0] >> 5 if data else 0
        self.reduced = data[0] >> 3 & 1 if data else 0
        self._value = int.from_bytes(data.ljust(_MOST_BYTES, b"\0"), "big")
        self._left = 8 * _MOST_BYTES

    def take(self, count: int) -> int:
        self._left -= count
        return self._value >> self._left & (1 << count) - 1


def _size(bits: _Bits) -> tuple[int, int]:
    """Return the size in a sequence header (5.5.1)."""
    bits.take(4)  # profile, still
    if bits.take(1):
        bits.take(5)  # level
    else:
        _pass_operating_points(bits)
    across, down = bits.take(4) + 1, bits.take(4) + 1
    return bits.take(across) + 1, bits.take(down) + 1


def _pass_operating_points(bits: _Bits) -> None:
    delay_bits = 0
    if bits.take(1):  # timing
        bits.take(64)
        if bits.take(1):  # all pictures are shown as long: a number after as many zeros as it has bits
            bits.take(
                next(zeros for zeros in range(_LONGEST_ZEROS + 1) if bits.take(1) or zeros == _LONGEST_ZEROS)
            )
        if bits.take(1):  # model of the decoder
            delay_bits = bits.take(5) + 1
            bits.take(42)
    has_delays = bits.take(1)
    for _ in range(bits.take(5) + 1):
        bits.take(12)
        if bits.take(5) > 7:  # level
            bits.take(1)
        if delay_bits and bits.take(1):
            bits.take(2 * delay_bits + 1)
        if has_delays and bits.take(1):
            bits.take(4)


def _pass_tools(bits: _Bits) -> None:
    """Pass what lies between the size and the colors."""
    if not bits.reduced and bits.take(1):  # frames have numbers
        bits.take(7)
    bits.take(3)
    if not bits.reduced:
        bits.take(4)
        has_order = bits.take(1)
        if has_order:
            bits.take(2)
        may_choose_tools = bits.take(1) or bits.take(1)
        if may_choose_tools and not bits.take(1):  # each frame tells whether its motion is in whole pixels
            bits.take(1)
        if has_order:
            bits.take(3)
    bits.take(3)
