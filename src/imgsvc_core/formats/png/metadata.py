"""The color profile of a PNG; EXIF, XMP and IPTC, before the pixels or after them (W3C, section 11.3).

Decoders know only what comes before the pixels. Older programs write hexadecimal texts with the keyword
"Raw profile type" and a name, which ImageMagick introduced.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterable

from imgsvc_core.errors import CorruptImage
from imgsvc_core.formats.metadata import EXIF, IPTC, XMP, XMP_PREFIX
from imgsvc_core.formats.png.header import Chunk, read_chunks, read_content
from imgsvc_core.formats.reader import HeaderReader

XMP_KEYWORD = b"XML:com.adobe.xmp"
_RAW_PROFILE = b"Raw profile type "
_RAW_KINDS = {b"exif": EXIF, b"app1": EXIF, b"xmp": XMP, b"iptc": IPTC}
_TEXTS = (b"tEXt", b"zTXt", b"iTXt")
_MOST = 8_000_000  # bytes of a block, compressed or not; libpng leaves out larger ones


def read_blocks(reader: HeaderReader) -> dict[str, bytes]:
    """Return the first block of each kind by libvips' name, without damaged ones and what follows these."""
    blocks: dict[str, bytes] = {}
    with contextlib.suppress(CorruptImage):
        for chunk in read_chunks(reader):
            if (chunk.kind == b"eXIf" or chunk.kind in _TEXTS) and chunk.length <= _MOST:
                kind, block = _read_block(reader, chunk)
                if block:
                    blocks.setdefault(kind, block)
    return blocks


def read_profile(reader: HeaderReader, chunks: Iterable[Chunk]) -> bytes | None:
    """Return the color profile, None if it is damaged or there is none.

    libpng leaves out one whose fields or place are odd, which browsers honor.
    """
    with contextlib.suppress(CorruptImage, zlib.error):
        for chunk in chunks:
            if chunk.kind == b"iCCP":
                return _text(b"zTXt", read_content(reader, chunk).partition(b"\0")[2])
    return None


def _read_block(reader: HeaderReader, chunk: Chunk) -> tuple[str, bytes]:
    """Return the kind and the content of a block, which is empty for other chunks and for damaged ones."""
    try:
        content = read_content(reader, chunk)
        if chunk.kind == b"eXIf":
            return EXIF, content
        keyword, _, rest = content.partition(b"\0")
        if keyword == XMP_KEYWORD:
            return XMP, _text(chunk.kind, rest)
        if keyword.startswith(_RAW_PROFILE):
            return _raw_profile(keyword, _text(chunk.kind, rest))
    except (CorruptImage, zlib.error, ValueError):
        pass
    return "", b""


def _text(kind: bytes, content: bytes) -> bytes:
    """Return the text that follows a keyword, nothing if it is too long."""
    compressed = kind == b"zTXt"
    text = content[1:] if compressed else content
    if kind == b"iTXt":
        compressed, (_, _, text) = content[:1] == b"\1", content[2:].split(b"\0", 2)
    if not compressed:
        return text
    expanding = zlib.decompressobj()
    expanded = expanding.decompress(text, _MOST)
    return b"" if expanding.unconsumed_tail else expanded


def _raw_profile(keyword: bytes, text: bytes) -> tuple[str, bytes]:
    """Read a text of three lines and more: its name, the number of bytes, and their digits."""
    kind = _RAW_KINDS.get(keyword.removeprefix(_RAW_PROFILE).lower(), "")
    if not kind:
        return "", b""
    _, _, digits = text.lstrip().split(b"\n", 2)
    block = bytes.fromhex(digits.decode("ascii"))
    if block.startswith(XMP_PREFIX):
        return XMP, block.removeprefix(XMP_PREFIX)
    return kind, block
