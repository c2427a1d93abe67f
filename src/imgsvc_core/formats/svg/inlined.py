"""Pictures inside of a drawing as ``data:`` URIs: librsvg decodes them whole, however small it draws them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from urllib.parse import unquote_to_bytes

from imgsvc_core.errors import ImageTooLarge, UnsupportedFormat
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.probe import sniff
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.svg.bounds import bound
from imgsvc_core.formats.svg.markup import read_markup
from imgsvc_core.formats.svg.size import natural_size

_MOST_NESTED = 5
_PIXEL = 4  # bytes of a pixel of a decoded picture


def inlined_bytes(links: Iterable[str], most: float) -> int:
    """Return how many bytes pictures in ``data:`` URIs need when decoded, by their headers.

    Call this before librsvg opens the drawing: it decodes the pictures if it has to find the size.

    Raises:
        ImageTooLarge: there are more than ``most`` pixels.
        CorruptImage: the XML or the header of a picture is damaged.
        UnsupportedFormat: drawings are nested too deeply.
    """
    pixels, decoding = _count(links, most, depth=1)
    return pixels * _PIXEL + decoding


def _count(links: Iterable[str], most: float, *, depth: int) -> tuple[int, int]:
    """Return the pixels of all pictures, at any depth, and the most bytes of one while it is decoded."""
    pixels = decoding = 0
    for source in map(ByteSource, filter(None, map(decoded, links))):
        format = sniff(source)
        if format is None:
            continue
        reader = HeaderReader(source, format.title)
        if format.name == "svg":
            if depth > _MOST_NESTED:
                raise UnsupportedFormat(
                    f"The SVG image cannot be read: it holds drawings in more than {_MOST_NESTED} levels; "
                    "simplify the drawing."
                )
            markup = read_markup(reader)
            width, height = (max(1, round(side)) for side in natural_size(markup))
            drawing = bound(markup)
            inner, needed = _count(drawing.links, most, depth=depth + 1)
            pixels += width * height * (1 + drawing.layers) + inner
            needed = max(needed, drawing.contents)
        else:
            try:
                info = format.probe(reader).info
            except UnsupportedFormat:
                continue
            pixels += info.width * info.height
            needed = info.width * info.height * (_PIXEL + info.stored_pixel)
        decoding = max(decoding, needed)
        if pixels > most:
            raise ImageTooLarge(
                f"The pictures that are inlined in the SVG image have {pixels:,} pixels or more together; "
                f"at most {most:,} are allowed: inline smaller ones."
            )
    return pixels, decoding


def decoded(uri: str) -> bytes:
    """Return the content of a ``data:`` URI; nothing if it is damaged."""
    kind, _, text = uri.partition(",")
    data = unquote_to_bytes(text.partition("#")[0])
    try:
        return base64.b64decode(data + b"==") if kind.rstrip().lower().endswith("base64") else data.strip()
    except binascii.Error:
        return b""
