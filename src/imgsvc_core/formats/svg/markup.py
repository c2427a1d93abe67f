"""The XML of an SVG, plain or compressed, in any encoding."""

from __future__ import annotations

import re
import zlib

from imgsvc_core.formats.reader import HeaderReader

_GZIP_SIGNATURE = b"\x1f\x8b"
MOST_MARKUP = 10_000_000
"""Bytes of markup that libvips accepts; a compressed file may not unfold to more."""
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

_NAMESPACE = re.compile(rb"""(?<=\s)(xmlns(?::[\w.-]++)?+\s*+=\s*+(["']))([^"'<>]++)(?=\2)""")
_ADDRESS = re.compile(
    rb"&.*|[a-z][a-z\d+.-]*:(?:[\w~:/?#@!$&()*+,;=.-]|%[\da-f]{2})*", re.IGNORECASE | re.DOTALL
)


def is_svg(reader: HeaderReader) -> bool:
    """Return True if the first bytes, decompressed, are those of an SVG document."""
    head = reader.read(0, min(reader.size, _HEAD))
    if head.startswith(_GZIP_SIGNATURE):
        head = _unfold(head, _HEAD)
    encoding = _ENCODINGS.get(head[:2], "utf-8")
    return _BEFORE_ROOT.match(head.decode(encoding, errors="replace")) is not None


def _unfold(compressed: bytes, most: int) -> bytes:
    """Decompress at most ``most`` bytes of gzip; nothing if it is damaged."""
    try:
        return zlib.decompressobj(_GZIP_WINDOW).decompress(compressed, most)
    except zlib.error:
        return b""


def read_markup(reader: HeaderReader) -> bytes:
    """Return the XML of the document, decompressed and in UTF-8.

    Raises:
        UnsupportedFormat: it is larger than libvips reads.
    """
    markup = reader.read(0, min(reader.size, MOST_MARKUP + 1))
    if markup.startswith(_GZIP_SIGNATURE):
        markup = _unfold(markup, MOST_MARKUP + 1)
    if len(markup) > MOST_MARKUP:
        raise reader.unsupported(f"it has more than {MOST_MARKUP:,} bytes of markup; simplify the drawing")
    return _NAMESPACE.sub(_with_address, _in_utf8(markup))


def _with_address(namespace: re.Match[bytes]) -> bytes:
    """Return a namespace with an absolute address, without which librsvg reads nothing.

    Editors leave "ns_sfw;" of "&ns_sfw;" when they remove declared entities.
    """
    stated = namespace[3]
    return namespace[1] + (stated if _ADDRESS.fullmatch(stated) else b"urn:" + re.sub(rb"\W", b"", stated))


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
