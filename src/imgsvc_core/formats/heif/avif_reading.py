"""Decode AVIF stills of 8 bits by Pillow.

Its decoder dav1d takes half of the time of libvips' one. Halved colors become whole as in browsers, while
libvips repeats pixels.
"""

from __future__ import annotations

import io

import pyvips

from imgsvc_core.formats.boundary import decoder
from imgsvc_core.formats.heif import Heif
from imgsvc_core.formats.heif.av1 import coded_sizes
from imgsvc_core.formats.heif.header import shown_items
from imgsvc_core.formats.heif.items import content_of
from imgsvc_core.formats.heif.pillow_writing import has_avif

NO_TURN = "d0"
TURNS = (NO_TURN, "d270", "d180", "d90")
"""How libvips turns a picture, by the quarters that ``irot`` states, counter-clockwise."""
_FLIPS = ("vertical", "horizontal")  # by the axis that `imir` states
_STILL = b"avif"
# Coefficients of luma and chroma that libvips' decoder and this one know alike, see ITU-T H.273.
_MATRICES = frozenset({1, 5, 6, 9})


def suits(picture: Heif) -> bool:
    """Return True for a whole picture in color of 8 bits, coded in one piece, as its transparency is.

    Premultiplied colors become straight less exactly. A picture that is coded in another size than the file
    states is none: the decoder would scale it.
    """
    info, items, reader = picture.info, picture.header.items, picture.header_reader
    properties = items.properties.get(items.primary, ())
    colors = [box for box in properties if box.kind == b"colr" and reader.read(box.start, 4) == b"nclx"]
    stored = next(reader.unpack(">II", box.start + 4) for box in properties if box.kind == b"ispe")
    return (
        info.format == "avif"
        and info.depth == 8
        and info.colorspace == "srgb"
        and not picture.header.premultiplied
        and all(box.kind != b"clap" for box in properties)
        and all(reader.unpack(">H", box.start + 8)[0] in _MATRICES for box in colors)
        and reader.read(8, 4) == _STILL
        and all(
            items.kinds.get(item) == b"av01" and set(coded_sizes(content_of(reader, items, item))) == {stored}
            for item in shown_items(reader, items)
        )
        and has_avif()
    )


def decoded(picture: Heif) -> pyvips.Image | None:
    """Return the pixels, upright and with straight alpha; None if the decoder does not open the file.

    It refuses metadata and boxes that others bear.

    Raises:
        CorruptImage: the file is damaged or cut short.
    """
    items, reader = picture.header.items, picture.header_reader
    with decoder("avif"):
        from PIL.AvifImagePlugin import AvifImageFile

        try:
            opened = AvifImageFile(io.BytesIO(picture.source.read()))
        except (RuntimeError, SyntaxError, ValueError):
            return None
        pixels = opened.convert("RGBA" if picture.info.alpha else "RGB").tobytes()
    image = pyvips.Image.new_from_memory(pixels, *opened.size, 4 if picture.info.alpha else 3, "uchar")
    image = image.copy(interpretation="srgb")
    for box in items.properties[items.primary]:
        if box.kind == b"irot":
            image = image.rot(TURNS[reader.byte(box.start) & 3])
        elif box.kind == b"imir":
            image = image.flip(_FLIPS[reader.byte(box.start) & 1])
    return image
