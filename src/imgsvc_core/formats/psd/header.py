"""PSD and PSB: the file header, the image resources and the start of the layers (Adobe's specification)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from imgsvc_core._runtime.records import frozen
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.reader import HeaderReader

BITMAP, GRAYSCALE, INDEXED, RGB, CMYK, MULTICHANNEL, DUOTONE, LAB = 0, 1, 2, 3, 4, 7, 8, 9
COLOR_CHANNELS = {BITMAP: 1, GRAYSCALE: 1, INDEXED: 1, RGB: 3, CMYK: 4, DUOTONE: 1, LAB: 3}
PROFILE = 1039
_DEPTHS = {
    BITMAP: (1, 8), GRAYSCALE: (8, 16, 32), INDEXED: (8,), RGB: (8, 16, 32), CMYK: (8, 16), DUOTONE: (8, 16),
    LAB: (8, 16),
}  # fmt: skip
_COLOR_SPACES = {
    BITMAP: "gray", GRAYSCALE: "gray", INDEXED: "palette", RGB: "srgb", CMYK: "cmyk", DUOTONE: "gray",
    LAB: "lab",
}  # fmt: skip
_RESOURCE_SIGNATURES = frozenset({b"8BIM", b"MeSa", b"AgHg", b"PHUT", b"DCSR"})
_MERGED_TRANSPARENCY = frozenset({b"Mtrn", b"Mt16", b"Mt32"})
_DEEP_LAYERS = frozenset({b"Lr16", b"Lr32"})
_LONG_IN_PSB = _MERGED_TRANSPARENCY | _DEEP_LAYERS | {
    b"LMsk", b"Layr", b"Alph", b"FMsk", b"lnk2", b"FEid", b"FXid", b"PxSD",
}  # fmt: skip

_VERSION_INFO = 1057

Extent = tuple[int, int]
"""Start and length of a piece of the file."""


@frozen(kw_only=True)
class Document:
    """The file header, and where the sections are. ``resources`` are the image resources by number."""

    big: bool
    channels: int
    width: int
    height: int
    depth: int
    mode: int
    palette: Extent
    resources: Mapping[int, Extent]
    layers: Extent
    pixels_at: int


def read_header(reader: HeaderReader) -> tuple[ImageInfo, Document]:
    """Read the facts of the picture of all layers together that a PSD keeps, and where it is."""
    document = read_document(reader)
    version = read_resource(reader, document, _VERSION_INFO)
    if len(version) >= 5 and not version[4]:
        raise reader.unsupported(
            "it holds no composite picture; save it with 'Maximize Compatibility' switched on"
        )
    extra = document.channels > COLOR_CHANNELS[document.mode]
    info = ImageInfo(
        format="psd",
        width=document.width,
        height=document.height,
        colorspace=_COLOR_SPACES[document.mode],
        depth=document.depth,
        bytes=reader.size,
        alpha=extra and _first_extra_is_alpha(reader, document),
        profile=document.resources.get(PROFILE, (0, 0))[1] > 0,
    )
    return info, document


def read_document(reader: HeaderReader) -> Document:
    """Read the file header and the lengths of the sections."""
    version, channels, height, width, depth, mode = reader.unpack(">H6xHIIHH", 4)
    big = version == 2
    reader.check_size(width, height)
    if mode == MULTICHANNEL:
        raise reader.unsupported("multichannel pictures have no color space; save it as RGB")
    if mode not in COLOR_CHANNELS:
        raise reader.corrupt(f"its color mode {mode} is unknown")
    if channels < COLOR_CHANNELS[mode]:
        raise reader.corrupt(f"it has {channels} channels, too few for its color mode")
    if depth not in _DEPTHS[mode]:
        raise reader.corrupt(f"{depth} bits per channel are impossible in its color mode")
    palette = 30, reader.unpack(">I", 26)[0]
    resources = sum(palette) + 4
    end = resources + reader.unpack(">I", resources - 4)[0]
    layers = _section(reader, end, big=big)
    return Document(
        big=big, channels=channels, width=width, height=height, depth=depth, mode=mode, palette=palette,
        resources=read_resources(reader, resources, end), layers=layers, pixels_at=sum(layers),
    )  # fmt: skip


def _section(reader: HeaderReader, offset: int, *, big: bool) -> Extent:
    """Return start and length of what begins with its length, a number of 4 bytes, or of 8 if ``big``."""
    code, size = (">Q", 8) if big else (">I", 4)
    return offset + size, reader.unpack(code, offset)[0]


def read_resource(reader: HeaderReader, document: Document, number: int) -> bytes:
    """Read the image resource of this number. Return no bytes if the file does not have it."""
    return reader.read(*document.resources[number]) if number in document.resources else b""


def read_resources(reader: HeaderReader, offset: int, end: int) -> Mapping[int, Extent]:
    """Find the image resources between two offsets, by number; of a repeated number the first counts.

    If a resource claims to be longer than all of them together, those after it are lost.
    """
    found: dict[int, Extent] = {}
    while offset + 12 <= end:
        signature, number, name_length = reader.unpack(">4sHB", offset)
        if signature not in _RESOURCE_SIGNATURES:
            break
        offset += 6 + name_length + 1 + (name_length + 1) % 2
        length = reader.unpack(">I", offset)[0] if offset + 4 <= end else end
        if offset + 4 + length > end:
            break
        found.setdefault(number, (offset + 4, length))
        offset += 4 + length + length % 2
    return found


def _first_extra_is_alpha(reader: HeaderReader, document: Document) -> bool:
    """Return True if the first channel after the colors is transparency, and not a saved selection.

    A negative number of layers says so, and in pictures of more than 8 bits a block of its own.
    """
    layers, (start, length) = 0, document.layers
    if length:
        info = _section(reader, start, big=document.big)
        if info[1]:
            (layers,) = reader.unpack(">h", info[0])
        for key, block in _tagged_blocks(reader, sum(info), start + length, big=document.big):
            if key in _MERGED_TRANSPARENCY:
                return True
            if key in _DEEP_LAYERS:
                (layers,) = reader.unpack(">h", block)
    return layers < 0


def _tagged_blocks(reader: HeaderReader, offset: int, end: int, *, big: bool) -> Iterator[tuple[bytes, int]]:
    """Yield key and start of the content of each block after the layers."""
    if offset + 4 > end:
        return
    offset += 4 + reader.unpack(">I", offset)[0]
    while offset + 12 <= end:
        signature, key = reader.unpack(">4s4s", offset)
        if signature not in (b"8BIM", b"8B64"):
            return
        start, length = _section(reader, offset + 8, big=big and key in _LONG_IN_PSB)
        yield key, start
        offset = start + length + -length % 4
