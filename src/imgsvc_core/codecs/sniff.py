"""Telling the format of a file by its content, never by its name."""

from __future__ import annotations

from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs.headers import bmp, jp2, png, svg
from imgsvc_core.codecs.headers.ico import PNG_SIGNATURE
from imgsvc_core.codecs.headers.reader import HeaderReader
from imgsvc_core.codecs.table import FORMATS, Format

_HEAD = 1 << 14
_SIGNATURES = (
    (b"\xff\xd8\xff", "jpg"),
    (b"GIF87a", "gif"),
    (b"GIF89a", "gif"),
    (b"II*\0", "tiff"),
    (b"MM\0*", "tiff"),
    (b"II+\0", "tiff"),
    (b"MM\0+", "tiff"),
    (b"8BPS\0\x01", "psd"),
    (b"8BPS\0\x02", "psd"),
    (b"\0\0\0\x0cjP  \r\n\x87\n", "jp2"),
    (jp2.CODESTREAM_START, "jp2"),
)
_HEIC_BRANDS = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs"})
_AVIF_BRANDS = frozenset({b"avif", b"avis"})
_GENERAL_BRANDS = frozenset({b"mif1", b"mif2", b"msf1", b"miaf"})
_ICON_KINDS = (b"\0\0\x01\0", b"\0\0\x02\0")


def sniff(source: ByteSource) -> Format | None:
    """The row of the format that the bytes are of; ``None`` for anything that the table does not have.

    A PNG counts as animated where it announces its frames before its data.
    """
    name = _name(source, source.read(0, _HEAD))
    return FORMATS[name] if name else None


def _name(source: ByteSource, head: bytes) -> str | None:
    for signature, name in _SIGNATURES:
        if head.startswith(signature):
            return name
    if head.startswith(PNG_SIGNATURE):
        return "apng" if png.is_animated(HeaderReader(source, "PNG")) else "png"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "webp"
    if head[4:8] == b"ftyp":
        return _heif_name(head)
    if head.startswith(b"BM") and bmp.has_known_header_size(int.from_bytes(head[14:18], "little")):
        return "bmp"
    if head.startswith(_ICON_KINDS) and head[4:6] != b"\0\0":
        return "ico"
    if svg.starts_svg(svg.unfold(head, _HEAD) if head.startswith(svg.GZIP_SIGNATURE) else head):
        return "svg"
    return None


def _heif_name(head: bytes) -> str | None:
    """The major brand decides; where it is a general one, the compatible brands do."""
    length = int.from_bytes(head[:4], "big")
    major = head[8:12]
    brands = {head[start : start + 4] for start in range(16, min(length, len(head)), 4)}
    if major in _HEIC_BRANDS:
        return "heic"
    if major in _AVIF_BRANDS:
        return "avif"
    if major in _GENERAL_BRANDS:
        return "avif" if brands & _AVIF_BRANDS and not brands & _HEIC_BRANDS else "heic"
    return None
