"""JPEG 2000: by libvips where it has the codec, else by imagecodecs (deep pictures) or Pillow."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from importlib.util import find_spec

import pyvips

from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs import availability
from imgsvc_core.codecs.readers.pillow import to_vips
from imgsvc_core.codecs.readers.promised import check_stored
from imgsvc_core.codecs.readers.vips import attach, from_array, open_lazily
from imgsvc_core.codecs.settings import LoadSettings
from imgsvc_core.errors import CorruptImage
from imgsvc_core.info import ImageInfo

_SUPERBOXES = (b"jp2h",)


def read(source: ByteSource, info: ImageInfo, settings: LoadSettings) -> pyvips.Image:
    """Grey, RGB or CMYK of 8 or 16 bits, at full size or at one of the resolutions of the code stream.

    Without imagecodecs, color pictures of more than 8 bits are read with 8.
    """
    reduce = _reduction(info, settings.scale)
    if availability.reader_backend("jp2") == "libvips":
        return open_lazily("jp2k", source, settings, page=reduce, fail_on="error")
    data = source.read()
    if info.depth > 8 and reduce == 0 and find_spec("imagecodecs") is not None:
        image = _read_deep(data, info)
    else:
        image = _read_by_pillow(data, reduce, info)
    return attach(image, {"icc-profile-data": _profile(data)})


def _reduction(info: ImageInfo, scale: float) -> int:
    """How many times to halve: the resolution whose width is nearest to that of the asked scale."""
    widths = [info.width, *(width for width, _ in info.levels)]
    return min(range(len(widths)), key=lambda halvings: abs(widths[halvings] - info.width * scale))


def _read_by_pillow(data: bytes, reduce: int, info: ImageInfo) -> pyvips.Image:
    """Pillow's own ``reduce`` rounds sizes to nearest where the standard rounds up, and then fails."""
    from PIL.ImageFile import _Tile
    from PIL.Jpeg2KImagePlugin import Jpeg2KImageFile

    with Jpeg2KImageFile(io.BytesIO(data)) as picture:
        check_stored(*picture.size, info)
        if reduce:
            size = info.levels[reduce - 1]
            codec, _, offset, arguments = picture.tile[0]
            assert isinstance(arguments, tuple)
            picture._size = size
            picture.tile = [_Tile(codec, (0, 0, *size), offset, (arguments[0], reduce, *arguments[2:]))]
        picture.load()
        return to_vips(picture)


def _read_deep(data: bytes, info: ImageInfo) -> pyvips.Image:
    import imagecodecs
    import numpy as np

    pixels = imagecodecs.jpeg2k_decode(data)
    if pixels.dtype.kind == "i":
        pixels = (pixels.astype(np.int32) + (1 << (info.depth - 1))).clip(0).astype(np.uint16)
    if pixels.dtype == np.uint8:
        return from_array(pixels)
    if info.depth < 16:
        pixels = np.rint(pixels * (65535 / (2**info.depth - 1))).astype(np.uint16)
    elif pixels.dtype != np.uint16:
        raise CorruptImage(f"The JPEG 2000 image has {info.depth} bits per channel; at most 16 can be read.")
    return from_array(pixels)


def _profile(data: bytes) -> bytes | None:
    """The ICC profile of the color specification box, which both libraries leave out."""
    for kind, body in boxes(data):
        if kind == b"colr" and body[:1] in (b"\x02", b"\x03"):
            return body[3:]
    return None


def boxes(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Type and content of each box of the header, including those inside the JP2 header box."""
    position = 0
    while position + 8 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, position)
        start = position + 8
        if length == 1 and start + 8 <= len(data):
            (length,) = struct.unpack_from(">Q", data, start)
            start += 8
        end = len(data) if length == 0 else position + length
        if kind == b"jp2c" or end < start:
            return
        if kind in _SUPERBOXES:
            yield from boxes(data[start:end])
        else:
            yield kind, data[start:end]
        position = end
