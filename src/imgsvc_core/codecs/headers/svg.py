"""SVG, plain or compressed: its size as librsvg computes it, from its width, height, viewBox or drawing."""

from __future__ import annotations

import re
import zlib

from imgsvc_core.codecs.headers.reader import HeaderReader
from imgsvc_core.codecs.headers.svg_contents import content_bytes
from imgsvc_core.codecs.headers.svg_dashes import dash_bytes
from imgsvc_core.codecs.headers.svg_layers import most_layers
from imgsvc_core.codecs.headers.svg_size import states_side_beyond
from imgsvc_core.errors import CorruptImage, ImageTooLarge, MemoryLimitExceeded
from imgsvc_core.info import ImageInfo

GZIP_SIGNATURE = b"\x1f\x8b"
MOST_MARKUP = 10_000_000
"""Bytes of markup that libvips accepts; a compressed file may not unfold to more."""
MOST_CONTENTS = 2**32
"""Bytes that librsvg may need to read an SVG, before anything is drawn."""
MOST_SIDE = 100_000_000
"""Pixels of a side that libvips can count."""

_HEAD = 1 << 14  # bytes of a file in which the root element begins
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_BEFORE_ROOT = re.compile(
    r"""\ufeff? (?> \s | <\?.*?\?> | <!--.*?--> | <!DOCTYPE [^\[>]* (?: \[.*?\]\s* )? > )*+
        <(?:[\w.-]+:)? svg [\s/>]""",
    re.DOTALL | re.VERBOSE,
)
_GROWTH = 4
"""A scale at which a side of 1 pixel, or of half a pixel rounded up, is longer."""
_ENCODINGS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be", b"<\0": "utf-16-le", b"\0<": "utf-16-be"}


def is_svg(reader: HeaderReader) -> bool:
    """Return True if the first bytes, decompressed, are those of an SVG document."""
    head = reader.read(0, min(reader.size, _HEAD))
    if head.startswith(GZIP_SIGNATURE):
        head = unfold(head, _HEAD)
    encoding = _ENCODINGS.get(head[:2], "utf-8")
    return _BEFORE_ROOT.match(head.decode(encoding, errors="replace")) is not None


def unfold(compressed: bytes, most: int) -> bytes:
    """Decompress at most ``most`` bytes of gzip; nothing if it is damaged."""
    try:
        return zlib.decompressobj(_GZIP_WINDOW).decompress(compressed, most)
    except zlib.error:
        return b""


def read_markup(reader: HeaderReader) -> bytes:
    """Return the XML of the document, decompressed; `CorruptImage` if it is larger than libvips reads."""
    markup = reader.read(0, min(reader.size, MOST_MARKUP + 1))
    if markup.startswith(GZIP_SIGNATURE):
        markup = unfold(markup, MOST_MARKUP + 1)
    if len(markup) > MOST_MARKUP:
        raise reader.corrupt(f"it has more than {MOST_MARKUP:,} bytes of markup")
    return markup


def read_info(reader: HeaderReader) -> ImageInfo:
    """Read the facts of an SVG at 72 dots per inch, from memory, so that it reaches no other file.

    Raises:
        MemoryLimitExceeded: librsvg could need more memory than the reader allows. It would end the process
            if it got less than it needs, so it is not called.
    """
    import pyvips

    from imgsvc_core.codecs.boundary import readable_messages  # with libvips

    markup = read_markup(reader)
    if states_side_beyond(markup, MOST_SIDE):
        raise _too_large(reader)
    contents = content_bytes(markup)
    if contents > reader.most_memory:
        raise MemoryLimitExceeded(
            f"The elements of the SVG image could need {contents:,} bytes of memory; at most "
            f"{reader.most_memory:,} are allowed: remove elements, or long values that many of them inherit."
        )
    if contents > MOST_CONTENTS:
        raise reader.too_large(
            f"its elements could need {contents:,} bytes; remove long values that many elements inherit"
        )
    try:
        with readable_messages():
            image = pyvips.Image.svgload_buffer(markup)
            size = image.width, image.height
            if 1 in size:
                _check_not_overflown(reader, markup, size)
    except pyvips.Error as error:
        raise _translate(reader, error) from error
    return ImageInfo(
        format="svg",
        width=size[0],
        height=size[1],
        colorspace="srgb",
        bytes=reader.size,
        alpha=True,
        layers=most_layers(markup, *size),
        contents=contents + dash_bytes(markup, *size),
    )


def _too_large(reader: HeaderReader) -> ImageTooLarge:
    return reader.too_large(
        f"it is more than {MOST_SIDE:,} pixels wide or high; give it a smaller width and height or viewBox"
    )


def _check_not_overflown(reader: HeaderReader, markup: bytes, size: tuple[int, int]) -> None:
    """Refuse a side of more than 100 million pixels, which libvips reports as 1 at any scale.

    If the other side would overflow at a larger scale, the check is left out.
    """
    import pyvips

    if max(size) * _GROWTH > MOST_SIDE:
        return
    large = pyvips.Image.svgload_buffer(markup, scale=_GROWTH)
    if (size[0] == 1 and large.width == 1) or (size[1] == 1 and large.height == 1):
        raise _too_large(reader)


def _translate(reader: HeaderReader, error: Exception) -> CorruptImage:
    detail = str(error).strip().splitlines()[-1].strip().rstrip(".")
    if detail.endswith(("bad dimensions", "zero-sized image")):
        return reader.corrupt(
            "it has no size, or one of less than half a pixel; give it a larger width and height or viewBox"
        )
    return reader.corrupt(f"librsvg cannot read it ({detail})")
