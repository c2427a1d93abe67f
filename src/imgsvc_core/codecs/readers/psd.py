"""PSD and PSB: the composite picture that Photoshop stores beside the layers.

The sections are walked here, after Adobe's "Photoshop File Formats Specification", so that layers cost no
time and no memory; psd-tools expands the compressed channels.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import attrs
import pyvips

from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs.readers.pillow import lab_from_bytes
from imgsvc_core.codecs.readers.promised import check_stored
from imgsvc_core.codecs.readers.vips import attach, from_array
from imgsvc_core.codecs.settings import LoadSettings
from imgsvc_core.errors import CorruptImage, UnsupportedFormat
from imgsvc_core.info import ImageInfo

_BITMAP, _GRAYSCALE, _INDEXED, _RGB, _CMYK, _DUOTONE, _LAB = 0, 1, 2, 3, 4, 8, 9
_COLOR_CHANNELS = {_BITMAP: 1, _GRAYSCALE: 1, _INDEXED: 1, _RGB: 3, _CMYK: 4, _DUOTONE: 1, _LAB: 3}
_IPTC, _PROFILE, _VERSION_INFO, _EXIF, _XMP = 1028, 1039, 1057, 1058, 1060


@attrs.frozen(kw_only=True)
class _Document:
    version: int
    channels: int
    width: int
    height: int
    depth: int
    mode: int
    palette: bytes
    resources: dict[int, bytes]
    transparency: bool
    pixels_at: int

    @property
    def used(self) -> int:
        """How many channels are color or transparency; there may be 50 others."""
        colors = _COLOR_CHANNELS[self.mode]
        return colors + (self.transparency and self.channels > colors)

    @property
    def stride(self) -> int:
        """Bytes of a row of a channel."""
        return (self.width * self.depth + 7) // 8


def read(source: ByteSource, info: ImageInfo, settings: LoadSettings) -> pyvips.Image:
    """Grey, RGB, CMYK or Lab, with alpha where the composite is transparent; 32 bits become 16.

    `UnsupportedFormat` where the file was saved without a composite: the stored one is then empty.
    """
    document = _parse(source, transparency=info.alpha)
    check_stored(document.width, document.height, info)
    stored = document.resources.get(_VERSION_INFO)
    if stored is not None and len(stored) >= 5 and not stored[4]:
        raise UnsupportedFormat(
            "The PSD image holds no composite picture; save it with 'Maximize Compatibility' switched on."
        )
    resources = document.resources
    return attach(
        _picture(_planes(source, document), document),
        {
            "icc-profile-data": resources.get(_PROFILE),
            "exif-data": resources.get(_EXIF),
            "xmp-data": resources.get(_XMP),
            "iptc-data": resources.get(_IPTC),
        },
    )


def _parse(source: ByteSource, *, transparency: bool) -> _Document:
    version, channels, height, width, depth, mode = struct.unpack(">4xH6xHIIHH", source.read(0, 26))
    if mode not in _COLOR_CHANNELS or channels < _COLOR_CHANNELS[mode] or depth not in (1, 8, 16, 32):
        raise CorruptImage(
            f"The PSD image has mode {mode}, {channels} channels and {depth} bits: unreadable."
        )
    position = 26
    (length,) = struct.unpack(">I", source.read(position, 4))
    palette = source.read(position + 4, length)
    position += 4 + length
    (length,) = struct.unpack(">I", source.read(position, 4))
    resources = _resources(source.read(position + 4, length))
    position += 4 + length
    code, size = (">Q", 8) if version == 2 else (">I", 4)
    (length,) = struct.unpack(code, source.read(position, size))
    return _Document(
        version=version, channels=channels, width=width, height=height, depth=depth, mode=mode,
        palette=palette, resources=resources, pixels_at=position + size + length,
        transparency=transparency,
    )  # fmt: skip


def _resources(data: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    position = 0
    while position + 12 <= len(data):
        (kind,) = struct.unpack_from(">H", data, position + 4)
        name = data[position + 6] + 1
        start = position + 6 + name + name % 2
        if start + 4 > len(data):
            break
        (length,) = struct.unpack_from(">I", data, start)
        found.setdefault(kind, data[start + 4 : start + 4 + length])
        position = start + 4 + length + length % 2
    return found


def _planes(source: ByteSource, document: _Document) -> Any:
    """The channels that count, as an array of (channels, height, width); saved selections come after them."""
    import numpy as np
    from psd_tools.compression import decompress
    from psd_tools.constants import Compression

    (kind,) = struct.unpack(">H", source.read(document.pixels_at, 2))
    rows = document.height * document.used
    compression, stored = _stored(source, document, Compression(kind), rows)
    raw = decompress(stored, compression, document.width, rows, document.depth, document.version)
    if document.depth == 1:
        stride = document.stride
        bits = np.unpackbits(np.frombuffer(raw, np.uint8, rows * stride).reshape(rows, stride), axis=1)
        planes = (1 - bits[:, : document.width]) * np.uint8(255)
    else:
        kind_of_sample = np.dtype({8: "u1", 16: ">u2", 32: ">f4"}[document.depth])
        planes = np.frombuffer(raw, kind_of_sample, rows * document.width)
    return planes.reshape(document.used, document.height, document.width)


def _stored(source: ByteSource, document: _Document, compression: Any, rows: int) -> tuple[Any, bytes]:
    """What is stored of the first rows of all channels, and how.

    The library fills in what is missing without a word, so that truncation is found here.
    """
    from psd_tools.constants import Compression

    start = document.pixels_at + 2
    size = rows * document.stride
    if compression == Compression.RLE:
        return compression, _runs(source, document, rows)
    if compression == Compression.RAW:
        stored = source.read(start, size)
    else:
        stored = zlib.decompressobj().decompress(source.read(start), size)
    if len(stored) < size:
        raise _truncated()
    if compression == Compression.ZIP_WITH_PREDICTION:
        return compression, zlib.compress(stored, 0)
    return Compression.RAW, stored


def _runs(source: ByteSource, document: _Document, rows: int) -> bytes:
    """The lengths of the first rows and their runs; in the file, the lengths of all rows come first."""
    import numpy as np

    kind = np.dtype(">u4" if document.version == 2 else ">u2")
    start = document.pixels_at + 2
    table = source.read(start, document.height * document.channels * kind.itemsize)
    lengths = np.frombuffer(table, kind, document.height * document.channels)
    if start + len(table) + int(lengths.sum(dtype=np.int64)) > source.size:
        raise _truncated()
    runs = source.read(start + len(table), int(lengths[:rows].sum(dtype=np.int64)))
    return table[: rows * kind.itemsize] + runs


def _truncated() -> CorruptImage:
    return CorruptImage("The PSD image is truncated: part of its pixels is missing.")


def _picture(planes: Any, document: _Document) -> pyvips.Image:
    import numpy as np

    bands = _COLOR_CHANNELS[document.mode]
    alpha = planes[bands] if document.used > bands else None
    color = planes[:bands]
    if document.depth == 32:
        return _from_linear_light(color, alpha)
    color = color.astype(np.uint16 if document.depth == 16 else np.uint8, copy=False)
    alpha = None if alpha is None else alpha.astype(color.dtype, copy=False)
    if document.mode == _INDEXED:
        color = np.frombuffer(document.palette, np.uint8, 768).reshape(3, 256)[:, color[0]]
    elif document.mode == _CMYK:
        color = np.iinfo(color.dtype).max - color
    elif alpha is not None and document.mode in (_GRAYSCALE, _RGB, _DUOTONE):
        color = _without_white_matte(color, alpha)
    stacked = color if alpha is None else np.concatenate((color, alpha[None]))
    image = from_array(np.moveaxis(stacked, 0, -1))
    if document.mode == _CMYK:
        return image.copy(interpretation="cmyk")
    return _lab(image) if document.mode == _LAB else image


def _without_white_matte(color: Any, alpha: Any) -> Any:
    """The composite is stored blended onto white; the color of a pixel itself is (c - (1 - a)) / a."""
    import numpy as np

    white = np.iinfo(color.dtype).max
    opacity = np.maximum(alpha, 1).astype(np.float32)
    own = (color.astype(np.float32) - white + alpha) * (white / opacity)
    return np.rint(np.clip(own, 0, white)).astype(color.dtype)


def _from_linear_light(color: Any, alpha: Any) -> pyvips.Image:
    """Photoshop's 32-bit documents hold linear light, 0 to 1."""
    import numpy as np

    bands = len(color)
    image = from_array(
        np.moveaxis(np.broadcast_to(color, (3, *color.shape[1:])), 0, -1).astype(np.float32), "scrgb"
    )
    image = image.colourspace("rgb16")
    if bands == 1:
        image = image.extract_band(0).copy(interpretation="grey16")
    if alpha is None:
        return image
    opacity = from_array(np.rint(np.clip(alpha, 0, 1) * 65535).astype(np.uint16))
    return image.bandjoin(opacity)


def _lab(image: pyvips.Image) -> pyvips.Image:
    color, alpha = (image[:3], image[3]) if image.bands == 4 else (image, None)
    if image.format == "ushort":
        color, alpha = color * (255 / 65535), None if alpha is None else alpha * (255 / 65535)
    lab = lab_from_bytes(color, signed=False)
    return lab if alpha is None else lab.bandjoin(alpha.cast("float")).copy(interpretation="lab")
