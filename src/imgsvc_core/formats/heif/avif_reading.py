"""Decode plain AVIF stills by Pillow.

Its decoder dav1d takes half of the time of libvips' one, and gives halved colors back more exactly.
"""

from __future__ import annotations

import io

import pyvips

from imgsvc_core.formats.boundary import decoder
from imgsvc_core.formats.heif import Heif
from imgsvc_core.formats.heif.items import content_of
from imgsvc_core.formats.heif.pillow_writing import has_avif
from imgsvc_core.formats.reader import HeaderReader

_CHANGES = frozenset({b"irot", b"imir", b"clap"})
_STILL = b"avif"
_SEQUENCE_HEADER = 1
_MOST_UNITS = 16  # encoders write three
_BYTES_OF_SIZE = 7  # at most, from the start of a sequence header
_SHORT_AT, _LENGTHS_AT = 4, 10  # bits
# Coefficients of luma and chroma that libvips' decoder and this one know alike, see ITU-T H.273.
_MATRICES = frozenset({1, 5, 6, 9})


def suits(picture: Heif) -> bool:
    """Return True for an opaque picture in color of 8 bits, coded in one piece and stored upright.

    A picture that is coded in another size than the file states is none: the decoder would scale it.
    """
    info, items, reader = picture.info, picture.header.items, picture.header_reader
    properties = items.properties.get(items.primary, ())
    colors = [box for box in properties if box.kind == b"colr" and reader.read(box.start, 4) == b"nclx"]
    return (
        info.format == "avif"
        and info.depth == 8
        and info.colorspace == "srgb"
        and not info.alpha
        and items.kinds.get(items.primary) == b"av01"
        and _CHANGES.isdisjoint(box.kind for box in properties)
        and all(reader.unpack(">H", box.start + 8)[0] in _MATRICES for box in colors)
        and reader.read(8, 4) == _STILL
        and _coded_sizes(content_of(reader, items, items.primary)) == [(info.width, info.height)]
        and has_avif()
    )


def _coded_sizes(coded: HeaderReader) -> list[tuple[int, int]]:
    """Return the sizes that the sequence headers among the units of a picture state (AV1, section 5.3).

    Return nothing if there are very many units.
    """
    sizes: list[tuple[int, int]] = []
    place = 0
    for _ in range(_MOST_UNITS):
        if place == coded.size:
            return sizes
        head = coded.byte(place)
        kind, is_extended, has_length = head >> 3 & 15, head >> 2 & 1, head >> 1 & 1
        place += 1 + is_extended
        length, digits = (coded.size - place, 0) if not has_length else _length(coded, place)
        place += digits
        if kind == _SEQUENCE_HEADER:
            sizes.append(_sequence_size(coded.read(place, min(_BYTES_OF_SIZE, length))))
        place += length
    return []


def _length(coded: HeaderReader, place: int) -> tuple[int, int]:
    """Return a number of seven bits in each byte, lowest first, and how many bytes it has."""
    value = digits = 0
    while True:
        byte = coded.byte(place + digits)
        value |= (byte & 0x7F) << 7 * digits
        digits += 1
        if byte < 0x80 or digits == 8:
            return value, digits


def _sequence_size(header: bytes) -> tuple[int, int]:
    """Return the size in a sequence header, or nothing if it is not the short one of stills (section 5.5)."""
    bits = int.from_bytes(header.ljust(_BYTES_OF_SIZE, b"\0"), "big")

    def number(start: int, count: int) -> int:
        return bits >> 8 * _BYTES_OF_SIZE - start - count & (1 << count) - 1

    if not number(_SHORT_AT, 1):
        return 0, 0
    across, down = number(_LENGTHS_AT, 4) + 1, number(_LENGTHS_AT + 4, 4) + 1
    start = _LENGTHS_AT + 8
    return number(start, across) + 1, number(start + across, down) + 1


def decoded(picture: Heif) -> pyvips.Image:
    """Return the pixels in memory.

    Raises:
        CorruptImage: the file is damaged or cut short.
    """
    with decoder("avif"):
        from PIL import AvifImagePlugin, Image  # noqa: F401  (or Pillow loads all of its formats)

        opened = Image.open(io.BytesIO(picture.source.read()), formats=["AVIF"])
        pixels = opened.convert("RGB").tobytes()
    image = pyvips.Image.new_from_memory(pixels, *opened.size, 3, "uchar")
    return image.copy(interpretation="srgb")
