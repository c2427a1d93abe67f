"""Pictures inside of a drawing as ``data:`` URIs: librsvg decodes them whole, however small it draws them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from urllib.parse import unquote_to_bytes
from xml.parsers import expat

import attrs

from imgsvc_core.errors import CorruptImage, ImageTooLarge, UnsupportedFormat
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.format import Format
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.probe import sniff
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.svg import header as svg

_SCHEME = "data:"
_MOST_NESTED = 5
_PIXEL = 4  # bytes of a pixel of a decoded picture


@attrs.define
class _Pictures:
    """The pictures seen so far: their pixels, and the most bytes of one while it is decoded."""

    most: float
    pixels: int = 0
    decoding: int = 0

    def add(self, info: ImageInfo) -> None:
        area = info.width * info.height
        self.pixels += area * (1 + (info.layers or 0))
        self.decoding = max(self.decoding, area * (_PIXEL + info.stored_pixel))
        if self.pixels > self.most:
            raise ImageTooLarge(
                f"The pictures that are inlined in the SVG image have {self.pixels:,} pixels or more "
                f"together; at most {self.most:,} are allowed: inline smaller ones."
            )


def inlined_bytes(reader: HeaderReader) -> int:
    """Return how many bytes the inlined pictures of a drawing need when decoded, by their headers.

    To be called before librsvg opens the drawing: it decodes the pictures to find the size of a drawing that
    states none.

    Raises:
        ImageTooLarge: there are more pixels than the reader allows.
        CorruptImage: the XML or the header of a picture is damaged.
    """
    pictures = _Pictures(reader.most_inlined)
    _count(svg.read_markup(reader), pictures, depth=0)
    return pictures.pixels * _PIXEL + pictures.decoding


def _count(markup: bytes, pictures: _Pictures, *, depth: int) -> None:
    """Count all pictures that a drawing holds inlined, at any depth."""
    if depth > _MOST_NESTED:
        raise CorruptImage(f"The SVG image holds drawings in more than {_MOST_NESTED} levels.")
    for data, included in _inlined(markup):
        source = ByteSource(data)
        format = sniff(source)
        drawing = format is not None and format.name == "svg"
        if drawing or included:
            _count(svg.read_markup(HeaderReader(source, "SVG")), pictures, depth=depth + 1)
        if format is None:
            continue
        try:
            pictures.add(_facts(format, HeaderReader(source, format.title)))
        except UnsupportedFormat:
            continue
        except CorruptImage:
            if not drawing:  # a drawing without a size is not drawn
                raise


def _facts(format: type[Format], reader: HeaderReader) -> ImageInfo:
    """Return the facts of an inlined picture. Those inlined in a drawing were counted before it."""
    return svg.read_info(reader) if format.name == "svg" else format.probe(reader).info


def _inlined(markup: bytes) -> Iterator[tuple[bytes, bool]]:
    """Yield the content of each ``data:`` URI, and True if it is XML to put in its place (XInclude)."""
    found: dict[str, bool] = {}

    def start(element: str, attributes: dict[str, str]) -> None:
        for name, value in attributes.items():
            if name.rpartition(":")[2] == "href" and value.lstrip()[: len(_SCHEME)].lower() == _SCHEME:
                found[value] = found.get(value, False) or element.rpartition(":")[2] == "include"

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    try:
        parser.Parse(markup, True)
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise CorruptImage(f"The SVG image is damaged: its XML cannot be read ({error}).") from error
    return ((data, included) for uri, included in found.items() if (data := _decoded(uri)))


def _decoded(uri: str) -> bytes:
    kind, _, text = uri.partition(",")
    data = unquote_to_bytes(text.partition("#")[0].strip())
    if not kind.rstrip().lower().endswith("base64"):
        return data
    data = b"".join(data.split())
    try:
        return base64.b64decode(data + b"=" * (-len(data) % 4))
    except binascii.Error:
        return b""
