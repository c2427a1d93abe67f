"""PSD and PSB: the file header, the image resources and the start of the layers (Adobe's specification)."""

from __future__ import annotations

from collections.abc import Iterator

from imgsvc_core.codecs.headers.reader import HeaderReader
from imgsvc_core.info import ImageInfo

_COLOR_SPACES = {0: "gray", 1: "gray", 2: "palette", 3: "srgb", 4: "cmyk", 8: "gray", 9: "lab"}
_CHANNELS = {"gray": 1, "palette": 1, "srgb": 3, "cmyk": 4, "lab": 3}
_MULTICHANNEL = 7
_PROFILE = 1039
_MERGED_TRANSPARENCY = frozenset({b"Mtrn", b"Mt16", b"Mt32"})
_DEEP_LAYERS = frozenset({b"Lr16", b"Lr32"})
_LONG_IN_PSB = _MERGED_TRANSPARENCY | _DEEP_LAYERS | {
    b"LMsk", b"Layr", b"Alph", b"FMsk", b"lnk2", b"FEid", b"FXid", b"PxSD",
}  # fmt: skip


def read_info(reader: HeaderReader) -> ImageInfo:
    """Facts of the picture of all layers together that a PSD keeps."""
    version, channels, height, width, depth, mode = reader.unpack(">H6xHIIHH", 4)
    largest = 300_000 if version == 2 else 30_000
    reader.check_size(width, height)
    if max(width, height) > largest or not 1 <= channels <= 56 or depth not in (1, 8, 16, 32):
        raise reader.corrupt(
            f"{width} x {height} pixels of {channels} channels with {depth} bits are impossible"
        )
    if mode == _MULTICHANNEL:
        raise reader.unsupported("multichannel pictures have no color space; save it as RGB")
    if mode not in _COLOR_SPACES:
        raise reader.corrupt(f"its color mode {mode} is unknown")
    colorspace = _COLOR_SPACES[mode]
    if channels < _CHANNELS[colorspace]:
        raise reader.corrupt(f"it has {channels} channels, too few for its color mode")

    resources = 30 + reader.unpack(">I", 26)[0]
    layers = resources + 4 + reader.unpack(">I", resources)[0]
    extra = channels > _CHANNELS[colorspace]
    return ImageInfo(
        format="psd",
        width=width,
        height=height,
        colorspace=colorspace,
        depth=depth,
        bytes=reader.size,
        alpha=extra and _first_extra_is_alpha(reader, layers, big=version == 2),
        profile=_has_profile(reader, resources + 4, layers),
    )


def _has_profile(reader: HeaderReader, offset: int, end: int) -> bool:
    while offset + 12 <= end:
        signature, number, name_length = reader.unpack(">4sHB", offset)
        if signature != b"8BIM":
            return False
        offset += 6 + name_length + 1 + (name_length + 1) % 2
        (length,) = reader.unpack(">I", offset)
        if number == _PROFILE:
            return bool(length)
        offset += 4 + length + length % 2
    return False


def _first_extra_is_alpha(reader: HeaderReader, start: int, *, big: bool) -> bool:
    """Whether the first channel after the colors is the transparency of the picture, not a saved selection.

    A negative number of layers says so, and in pictures of more than 8 bits a block of its own.
    """
    layers = 0
    length_code, length_size = (">Q", 8) if big else (">I", 4)
    (length,) = reader.unpack(length_code, start)
    end = start + length_size + length
    if length > length_size:
        (info_length,) = reader.unpack(length_code, start + length_size)
        info = start + 2 * length_size
        if info_length:
            (layers,) = reader.unpack(">h", info)
        for key, block in _tagged_blocks(reader, info + info_length, end, big=big):
            if key in _MERGED_TRANSPARENCY:
                return True
            if key in _DEEP_LAYERS:
                (layers,) = reader.unpack(">h", block)
    return layers < 0


def _tagged_blocks(reader: HeaderReader, offset: int, end: int, *, big: bool) -> Iterator[tuple[bytes, int]]:
    """Key and start of the content of each block after the layers."""
    if offset + 4 > end:
        return
    offset += 4 + reader.unpack(">I", offset)[0]
    while offset + 12 <= end:
        signature, key = reader.unpack(">4s4s", offset)
        if signature not in (b"8BIM", b"8B64"):
            return
        length_code, length_size = (">Q", 8) if big and key in _LONG_IN_PSB else (">I", 4)
        (length,) = reader.unpack(length_code, offset + 8)
        yield key, offset + 8 + length_size
        offset += 8 + length_size + length + -length % 4
