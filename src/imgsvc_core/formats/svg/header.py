"""SVG, plain or compressed: its size as browsers compute it, from its width, height and viewBox."""

from __future__ import annotations

import math
import re
import zlib
from typing import TYPE_CHECKING

from imgsvc_core.errors import MemoryLimitExceeded
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.svg.contents import content_bytes
from imgsvc_core.formats.svg.dashes import dash_bytes
from imgsvc_core.formats.svg.layers import most_layers
from imgsvc_core.formats.svg.size import at_size, natural_size

if TYPE_CHECKING:
    import pyvips

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
_DECLARED = re.compile(rb"""<\?xml\s[^>]*?\sencoding\s*=\s*["']([\w.:-]+)[^>]*\?>""")
_OWN_ENCODINGS = re.compile(r"utf-?8|(?:us-)?ascii", re.IGNORECASE)
_ENCODINGS_OF_FILES = re.compile(
    r"utf-?16|iso|latin|windows|cp|koi8|mac|gb|big5|shift|sjis|euc", re.IGNORECASE
)
_DECLARATION = re.compile(r"\ufeff?(?:<\?xml\s[^>]*\?>)?")
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
    """Return the XML of the document, decompressed and in UTF-8.

    Raises:
        CorruptImage: it is larger than libvips reads.
    """
    markup = reader.read(0, min(reader.size, MOST_MARKUP + 1))
    if markup.startswith(GZIP_SIGNATURE):
        markup = unfold(markup, MOST_MARKUP + 1)
    if len(markup) > MOST_MARKUP:
        raise reader.corrupt(f"it has more than {MOST_MARKUP:,} bytes of markup")
    return _in_utf8(markup)


def render(markup: bytes, width: int, height: int, **options: object) -> pyvips.Image:
    """Return a drawing at a size, not yet computed; ``options`` go to libvips.

    It comes from memory, so that it reaches no other file.
    """
    import pyvips

    dpi = 96  # that of CSS, for the lengths in it; libvips would also enlarge the drawing
    drawing = at_size(markup, width, height)
    return pyvips.Image.svgload_buffer(drawing, dpi=dpi, scale=72 / dpi, **options)


def _in_utf8(markup: bytes) -> bytes:
    """Return markup without its declaration of another encoding, as few parsers know as many as librsvg."""
    encoding = _ENCODINGS.get(markup[:2], "")
    declared = _DECLARED.match(markup)
    if not encoding and declared is not None:
        encoding = declared[1].decode("ascii", "replace")
    if not encoding or _OWN_ENCODINGS.fullmatch(encoding) or not _ENCODINGS_OF_FILES.match(encoding):
        return markup
    try:
        return _DECLARATION.sub("", markup.decode(encoding), count=1).encode()
    except (LookupError, ValueError):
        return markup


def read_info(reader: HeaderReader) -> ImageInfo:
    """Read the facts of an SVG at 96 dots per inch.

    Raises:
        MemoryLimitExceeded: librsvg could need more memory than the reader allows. It would end the process
            if it got less than it needs, so it is not called.
    """
    import pyvips

    from imgsvc_core.formats.boundary import readable_messages  # with libvips

    markup = read_markup(reader)
    sides = natural_size(markup)
    if max(sides) > MOST_SIDE:
        raise reader.too_large(
            f"it is more than {MOST_SIDE:,} pixels wide or high; "
            "give it a smaller width and height or viewBox"
        )
    width, height = (math.floor(side + 0.5) for side in sides)
    if not width or not height:
        raise reader.corrupt(
            "it has no size, or one of less than half a pixel; give it a larger width and height or viewBox"
        )
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
            render(markup, width, height)
    except pyvips.Error as error:
        detail = str(error).strip().splitlines()[-1].strip().rstrip(".")
        raise reader.corrupt(f"librsvg cannot read it ({detail})") from error
    return ImageInfo(
        format="svg",
        width=width,
        height=height,
        colorspace="srgb",
        bytes=reader.size,
        alpha=True,
        layers=most_layers(markup, width, height),
        contents=contents + dash_bytes(markup, width, height),
    )
