"""Change the metadata of a PNG or animated PNG without touching its coded data."""

from __future__ import annotations

from imgsvc_core.formats.apng import Apng
from imgsvc_core.formats.metadata import EXIF, XMP, Blocks, beside_stored
from imgsvc_core.formats.png import Png
from imgsvc_core.formats.png.header import SIGNATURE, make_chunk, read_chunks
from imgsvc_core.formats.png.metadata import XMP_KEYWORD, read_blocks
from imgsvc_core.formats.settings import MetadataPolicy

_KEPT = frozenset(
    {b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"iCCP", b"cICP", b"mDCV", b"cLLI", b"sBIT", b"bKGD", b"pHYs"}
    | {b"acTL", b"fcTL", b"fdAT"}
)


def rewrite(picture: Png | Apng, policy: MetadataPolicy) -> bytes:
    """Return the file without chunks that its pixels and colors do not need, and without what follows."""
    found = read_blocks(picture.header_reader) if policy == "copyright" else {}
    kept = beside_stored(Blocks(found.get(EXIF), found.get(XMP)), policy, picture.info.orientation)
    pieces = [SIGNATURE]
    for chunk in read_chunks(picture.header_reader):
        if chunk.kind[:1].isupper() or chunk.kind in _KEPT:
            pieces.append(picture.header_reader.read(chunk.start - 8, chunk.length + 12))
        if chunk.kind == b"IHDR":
            pieces += chunks_of(kept)
    return b"".join(pieces)


def chunks_of(blocks: Blocks) -> list[bytes]:
    """Return the chunks of a PNG that hold EXIF and XMP."""
    stored, packet, _ = blocks
    return [
        *([make_chunk(b"eXIf", stored)] if stored else ()),
        *([make_chunk(b"iTXt", XMP_KEYWORD, bytes(5), packet)] if packet else ()),
    ]
