"""What a JPEG XL that was made of a JPEG tells of that file, in a box (ISO/IEC 18181-2, annex A).

libjxl makes room for all segments that the box announces, and goes over all pixels for each scan, however
short the box is. So both are counted before.
"""

from __future__ import annotations

from collections.abc import Iterable

from imgsvc_core.formats.boxes import FileBox
from imgsvc_core.formats.jxl.bits import BitReader, Codestream, Distribution
from imgsvc_core.formats.reader import HeaderReader

BOX = b"jbrd"
MOST_SCANS = 100
MOST_BYTES = 1 << 26  # of all segments, which are more than all bytes of a usual source
MOST_COMPRESSED = 1 << 25  # of the box. Its numbers have at least two bits, and take up to eight bytes

_FIRST_MARKER = 0xC0
_APP, _COMMENT, _SCAN, _END, _BETWEEN = range(0xE0, 0xF0), 0xFE, 0xDA, 0xD9, 0xFF
_MOST_MARKERS = 1 << 14
_KIND_OF_APP: tuple[Distribution, ...] = ((0, 0), (1, 0), (2, 1), (4, 2))
_LONGEST = 1 << 16


def check(reader: HeaderReader, boxes: Iterable[FileBox]) -> bool:
    """Return False if the file was not made of a JPEG.

    Raises:
        CorruptImage: the box is damaged.
        UnsupportedFormat: the JPEG has too many scans.
        ImageTooLarge: the JPEG has too many bytes beside its pixels.
    """
    box = next((box for box in boxes if box.kind == BOX), None)
    if box is None:
        return False
    length = box.end - box.start
    if length > MOST_COMPRESSED:
        raise reader.too_large(
            f"how its JPEG was coded takes {length:,} bytes; at most {MOST_COMPRESSED:,} are read"
        )
    bits = BitReader(Codestream(reader, ((box.start, length),)))
    bits.skip(1)  # set for gray
    markers = _markers(bits)
    size = _LONGEST * markers.count(_BETWEEN)
    for marker in markers:
        if marker in _APP:
            bits.u32(*_KIND_OF_APP)
            size += bits.bits(16) + 1
    size += sum(bits.bits(16) + 1 for _ in range(markers.count(_COMMENT)))
    if size > MOST_BYTES:
        raise reader.too_large(
            f"its JPEG could have {size:,} bytes beside its pixels; at most {MOST_BYTES:,} are read"
        )
    scans = markers.count(_SCAN)
    if scans > MOST_SCANS:
        raise reader.unsupported(f"its JPEG has {scans} scans; at most {MOST_SCANS} are decoded")
    return True


def _markers(bits: BitReader) -> list[int]:
    """Return the second bytes of all markers up to the end of the picture, and FF for bytes between them."""
    markers: list[int] = []
    while not markers or markers[-1] != _END:
        if len(markers) == _MOST_MARKERS:
            raise bits.corrupt(f"its JPEG has more than {_MOST_MARKERS:,} markers")
        markers.append(_FIRST_MARKER + bits.bits(6))
    return markers
