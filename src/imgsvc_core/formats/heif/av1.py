"""The sequence header of AV1, as far as its statement about colors (AV1 Bitstream & Decoding Process)."""

from __future__ import annotations

from collections.abc import Iterator

from imgsvc_core.formats.bits import BitReader, StreamColors

_SEQUENCE_HEADER = 1
_RGB = (1, 13, 0)  # code points of sRGB without a matrix
_ONE_BYTE = 7  # bits of a length in each of its bytes


def read_colors(data: bytes) -> StreamColors | None:
    """Return what the start of a stream states of its colors, or None without a whole sequence header."""
    try:
        header = next((content for kind, content in _units(data) if kind == _SEQUENCE_HEADER), None)
        return None if header is None else _read_sequence_header(BitReader(header))
    except IndexError:
        return None


def _units(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield kind and content of each open bitstream unit (5.3)."""
    start = 0
    while start < len(data):
        head = data[start]
        start += 2 if head & 4 else 1
        length = len(data) - start
        if head & 2:
            length = shift = 0
            more = True
            while more:
                length |= (data[start] & 127) << shift
                more = data[start] > 127
                shift += _ONE_BYTE
                start += 1
        yield head >> 3 & 15, data[start : start + length]
        start += length


def _read_sequence_header(bits: BitReader) -> StreamColors:
    """Follow 5.5.1 up to the range in color_config(). RGB has the full range and does not state it."""
    profile = bits.take(3)
    bits.skip(1)
    reduced = bits.flag()
    if reduced:
        bits.skip(5)
    else:
        _skip_operating_points(bits)
    sides = bits.take(4) + 1, bits.take(4) + 1
    bits.skip(*sides)
    if not reduced and bits.flag():
        bits.skip(4, 3)
    bits.skip(3)
    if not reduced:
        _skip_tools(bits)
    bits.skip(3)
    deep = bits.flag()
    if profile == 2 and deep:
        bits.skip(1)
    if profile != 1:
        bits.skip(1)
    if not bits.flag():
        return StreamColors(None, bits.flag())
    primaries, transfer, matrix = bits.take(8), bits.take(8), bits.take(8)
    return StreamColors((primaries, transfer), (primaries, transfer, matrix) == _RGB or bits.flag())


def _skip_operating_points(bits: BitReader) -> None:
    delay_bits = 0
    if bits.flag():  # timing_info
        bits.skip(32, 32)
        if bits.flag():
            bits.golomb()
        if bits.flag():  # decoder_model_info
            delay_bits = bits.take(5) + 1
            bits.skip(32, 5, 5)
    initial_delays = bits.flag()
    for _ in range(bits.take(5) + 1):
        bits.skip(12)
        if bits.take(5) > 7:
            bits.skip(1)
        if delay_bits and bits.flag():
            bits.skip(delay_bits, delay_bits, 1)
        if initial_delays and bits.flag():
            bits.skip(4)


def _skip_tools(bits: BitReader) -> None:
    bits.skip(4)
    order_hint = bits.flag()
    if order_hint:
        bits.skip(2)
    screen_content = bits.flag() or bits.flag()
    if screen_content and not bits.flag():
        bits.skip(1)
    if order_hint:
        bits.skip(3)
