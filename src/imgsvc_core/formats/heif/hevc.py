"""The sequence parameter set of HEVC, as far as its statement about colors (ITU-T H.265)."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from imgsvc_core.formats.bits import BitReader, StreamColors

_ARRAYS_AT = 22  # in the configuration, after the facts that it has of its own (ISO/IEC 14496-15, 8.3.3)
_PARAMETER_SET = 33
_UNIT_HEAD = 2  # bytes
_PROFILE_BITS, _LEVEL_BITS = 88, 8
_MOST_LAYERS = 8
_OTHER_ASPECT = 255
_CHROMA_FULL = 3


def read_colors(configuration: bytes) -> StreamColors | None:
    """Return what the configuration of a picture states of its colors, or None if it states nothing."""
    try:
        unit = next((unit for kind, unit in _units(configuration) if kind == _PARAMETER_SET), None)
        return None if unit is None else _read_parameter_set(BitReader(_unescaped(unit)))
    except (IndexError, struct.error):
        return None


def _units(configuration: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield kind and content of each unit of the network abstraction layer."""
    offset = _ARRAYS_AT + 1
    for _ in range(configuration[_ARRAYS_AT]):
        kind, count = struct.unpack_from(">BH", configuration, offset)
        offset += 3
        for _ in range(count):
            (length,) = struct.unpack_from(">H", configuration, offset)
            offset += 2 + length
            yield kind & 63, configuration[offset - length + _UNIT_HEAD : offset]


def _unescaped(unit: bytes) -> bytes:
    """Remove the bytes that keep start codes out of a unit (7.3.1.1)."""
    return unit.replace(b"\0\0\3", b"\0\0")


def _read_parameter_set(bits: BitReader) -> StreamColors | None:
    """Follow 7.3.2.2 up to the first fields of vui_parameters()."""
    bits.skip(4)
    layers = bits.take(3)
    bits.skip(1)
    _skip_levels(bits, layers)
    bits.golomb()
    if bits.golomb() == _CHROMA_FULL:
        bits.skip(1)
    _skip_golombs(bits, 2)
    if bits.flag():  # conformance window
        _skip_golombs(bits, 4)
    _skip_golombs(bits, 2)
    order_bits = bits.golomb() + 4
    _skip_golombs(bits, 3 * (layers + 1 if bits.flag() else 1))
    _skip_golombs(bits, 6)
    if bits.flag() and bits.flag():
        _skip_scaling_lists(bits)
    bits.skip(2)
    if bits.flag():  # samples without coding
        bits.skip(8)
        _skip_golombs(bits, 2)
        bits.skip(1)
    distances: list[int] = []
    for number in range(bits.golomb()):
        distances = _read_references(bits, distances, first=number == 0)
    if bits.flag():
        for _ in range(bits.golomb()):
            bits.skip(order_bits, 1)
    bits.skip(2)
    return _read_usability(bits) if bits.flag() else None


def _read_references(bits: BitReader, before: list[int], *, first: bool) -> list[int]:
    """Read st_ref_pic_set() (7.3.7), which may be based on the set before it.

    Return the distances to the pictures: of earlier ones first, and of nearer before farther ones.
    """
    if not first and bits.flag():
        step = 1 - 2 * bits.flag()
        step *= bits.golomb() + 1
        kept = [bits.flag() or bits.flag() for _ in range(len(before) + 1)]
        moved = [distance + step for distance, used in zip([*before, 0], kept, strict=True) if used]
    else:
        earlier, later = bits.golomb(), bits.golomb()
        moved = [*_read_distances(bits, earlier, -1), *_read_distances(bits, later, 1)]
    earliest_last = sorted((distance for distance in moved if distance < 0), reverse=True)
    return [*earliest_last, *sorted(distance for distance in moved if distance > 0)]


def _read_distances(bits: BitReader, count: int, sign: int) -> Iterator[int]:
    distance = 0
    for _ in range(count):
        distance += sign * (bits.golomb() + 1)
        bits.skip(1)
        yield distance


def _read_usability(bits: BitReader) -> StreamColors | None:
    if bits.flag() and bits.take(8) == _OTHER_ASPECT:
        bits.skip(32)
    if bits.flag():  # overscan
        bits.skip(1)
    if not bits.flag():
        return None
    bits.skip(3)
    full_range = bits.flag()
    return StreamColors((bits.take(8), bits.take(8)) if bits.flag() else None, full_range)


def _skip_levels(bits: BitReader, layers: int) -> None:
    """Leave out profile_tier_level() (7.3.3)."""
    bits.skip(_PROFILE_BITS, _LEVEL_BITS)
    present = [(bits.flag(), bits.flag()) for _ in range(layers)]
    if layers:
        bits.skip(2 * (_MOST_LAYERS - layers))
    for profile, level in present:
        bits.skip(_PROFILE_BITS * profile, _LEVEL_BITS * level)


def _skip_scaling_lists(bits: BitReader) -> None:
    """Leave out scaling_list_data() (7.3.4)."""
    for size in range(4):
        for _ in range(2 if size == 3 else 6):
            if not bits.flag():
                bits.golomb()
                continue
            _skip_golombs(bits, min(64, 4 << 2 * size + 2) + (size > 1))


def _skip_golombs(bits: BitReader, count: int) -> None:
    for _ in range(count):
        bits.golomb()
