"""SVG, plain or compressed: its size as librsvg computes it, from its width, height, viewBox or drawing."""

from __future__ import annotations

import re
import zlib

from imgsvc_core.codecs.headers.reader import HeaderReader
from imgsvc_core.errors import CorruptImage
from imgsvc_core.info import ImageInfo

GZIP_SIGNATURE = b"\x1f\x8b"
MOST_MARKUP = 10_000_000
"""Bytes of markup that libvips accepts; a compressed file may not unfold to more."""

_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_BEFORE_ROOT = re.compile(
    r"""\ufeff? (?> \s | <\?.*?\?> | <!--.*?--> | <!DOCTYPE [^\[>]* (?: \[.*?\]\s* )? > )*+
        <(?:[\w.-]+:)? svg [\s/>]""",
    re.DOTALL | re.VERBOSE,
)
_ENCODINGS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be", b"<\0": "utf-16-le", b"\0<": "utf-16-be"}


def starts_svg(head: bytes) -> bool:
    """Whether the first bytes of a file, decompressed, are those of an SVG document."""
    encoding = _ENCODINGS.get(head[:2], "utf-8")
    return _BEFORE_ROOT.match(head.decode(encoding, errors="replace")) is not None


def unfold(compressed: bytes, most: int) -> bytes:
    """At most ``most`` bytes of what gzip has compressed; as far as it goes where it is damaged."""
    try:
        return zlib.decompressobj(_GZIP_WINDOW).decompress(compressed, most)
    except zlib.error:
        return b""


def read_markup(reader: HeaderReader) -> bytes:
    """The XML of the document, decompressed; `CorruptImage` where it is larger than libvips reads."""
    markup = reader.read(0, min(reader.size, MOST_MARKUP + 1))
    if markup.startswith(GZIP_SIGNATURE):
        markup = unfold(markup, MOST_MARKUP + 1)
    if len(markup) > MOST_MARKUP:
        raise reader.corrupt(f"it has more than {MOST_MARKUP:,} bytes of markup")
    return markup


def read_info(reader: HeaderReader) -> ImageInfo:
    """Facts of an SVG at 72 dots per inch. It is opened from memory, so that it reaches no other file."""
    import pyvips

    try:
        image = pyvips.Image.svgload_buffer(read_markup(reader))
    except pyvips.Error as error:
        raise _translate(reader, error) from error
    return ImageInfo(
        format="svg",
        width=image.width,
        height=image.height,
        colorspace="srgb",
        bytes=reader.size,
        alpha=True,
    )


def _translate(reader: HeaderReader, error: Exception) -> CorruptImage:
    detail = str(error).strip().splitlines()[-1].strip().rstrip(".")
    return reader.corrupt(f"librsvg cannot read it ({detail})")
