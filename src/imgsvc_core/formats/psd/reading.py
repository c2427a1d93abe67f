"""PSD and PSB: the composite picture that Photoshop stores beside the layers.

Layers cost no time and no memory, as they are skipped; psd-tools expands the compressed channels.
"""

from __future__ import annotations

import zlib
from typing import Any

import pyvips

from imgsvc_core._runtime.vipsimage import PROFILE
from imgsvc_core.formats.boundary import decoder
from imgsvc_core.formats.metadata import EXIF, IPTC, XMP
from imgsvc_core.formats.psd import Psd
from imgsvc_core.formats.psd import header as psd
from imgsvc_core.formats.psd.header import COLOR_CHANNELS, Document
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.formats.vips import attach, from_array, from_real_numbers, lab_from_bytes

_BLOBS = {PROFILE: psd.PROFILE, EXIF: 1058, XMP: 1060, IPTC: 1028}


def read(picture: Psd, settings: LoadSettings) -> pyvips.Image:
    """Return gray, RGB, CMYK or Lab, with alpha if the composite is transparent; 32 bits become 16."""
    info, document, reader = picture.info, picture.header, picture.header_reader
    colors = COLOR_CHANNELS[document.mode]
    used = colors + (info.alpha and document.channels > colors)
    blobs = {name: psd.read_resource(reader, document, number) for name, number in _BLOBS.items()}
    image = attach(_picture(_planes(reader, document, used), document, reader), blobs)
    return from_real_numbers(image) if document.depth == 32 else image


def _planes(reader: HeaderReader, document: Document, used: int) -> Any:
    """Return the first channels, which are color and alpha, as an array of (channels, height, width)."""
    import numpy as np
    from psd_tools.compression import decompress
    from psd_tools.constants import Compression

    (number,) = reader.unpack(">H", document.pixels_at)
    if number not in set(Compression):
        raise reader.corrupt(f"its compression {number} is unknown")
    rows = document.height * used
    compression, stored = _stored(reader, document, Compression(number), rows)
    version = 2 if document.big else 1
    with decoder("psd"):
        raw = decompress(stored, compression, document.width, rows, document.depth, version)
    if document.depth == 1:
        stride = _stride(document)
        bits = np.unpackbits(np.frombuffer(raw, np.uint8, rows * stride).reshape(rows, stride), axis=1)
        planes = (1 - bits[:, : document.width]) * np.uint8(255)
    else:
        kind_of_sample = np.dtype({8: "u1", 16: ">u2", 32: ">f4"}[document.depth])
        planes = np.frombuffer(raw, kind_of_sample, rows * document.width)
    return planes.reshape(used, document.height, document.width)


def _stored(reader: HeaderReader, document: Document, compression: Any, rows: int) -> tuple[Any, bytes]:
    """Read the first rows of all channels as they are compressed, and how.

    psd-tools fills in missing rows without an error, so truncation is found here.
    """
    from psd_tools.constants import Compression

    start = document.pixels_at + 2
    size = rows * _stride(document)
    if compression == Compression.RLE:
        return compression, _runs(reader, document, rows)
    if compression == Compression.RAW:
        return compression, reader.read(start, size)
    compressed = reader.read(start, reader.size - start)
    with decoder("psd"):
        stored = zlib.decompressobj().decompress(compressed, size)
    if len(stored) < size:
        raise reader.corrupt("part of its pixels is missing")
    if compression == Compression.ZIP_WITH_PREDICTION:
        return compression, zlib.compress(stored, 0)
    return Compression.RAW, stored


def _runs(reader: HeaderReader, document: Document, rows: int) -> bytes:
    """Read the lengths and the runs of the first rows. In the file, all lengths come before the runs."""
    import numpy as np

    kind = np.dtype(">u4" if document.big else ">u2")
    start = document.pixels_at + 2
    table = reader.read(start, document.height * document.channels * kind.itemsize)
    lengths = np.frombuffer(table, kind, document.height * document.channels)
    if start + len(table) + int(lengths.sum(dtype=np.int64)) > reader.size:
        raise reader.corrupt("part of its pixels is missing")
    runs = reader.read(start + len(table), int(lengths[:rows].sum(dtype=np.int64)))
    return table[: rows * kind.itemsize] + runs


def _stride(document: Document) -> int:
    """Return the number of bytes in a row of a channel."""
    return (document.width * document.depth + 7) // 8


def _picture(planes: Any, document: Document, reader: HeaderReader) -> pyvips.Image:
    import numpy as np

    bands = COLOR_CHANNELS[document.mode]
    alpha = planes[bands] if len(planes) > bands else None
    color = planes[:bands]
    color = color.astype(color.dtype.newbyteorder("="), copy=False)
    alpha = None if alpha is None else alpha.astype(color.dtype, copy=False)
    if document.mode == psd.INDEXED:
        palette = reader.read(document.palette[0], 768)
        color = np.frombuffer(palette, np.uint8).reshape(3, 256)[:, color[0]]
    elif document.mode == psd.CMYK:
        color = np.iinfo(color.dtype).max - color
    elif alpha is not None and document.mode in (psd.GRAYSCALE, psd.RGB, psd.DUOTONE):
        color = _without_white_matte(color, alpha)
    stacked = color if alpha is None else np.concatenate((color, alpha[None]))
    image = from_array(np.moveaxis(stacked, 0, -1))
    if document.mode == psd.CMYK:
        return image.copy(interpretation="cmyk")
    return _lab(image) if document.mode == psd.LAB else image


def _without_white_matte(color: Any, alpha: Any) -> Any:
    """Undo the blending onto white that the composite is stored with: the color is (c - (1 - a)) / a."""
    import numpy as np

    real = color.dtype.kind == "f"
    white = 1 if real else np.iinfo(color.dtype).max
    opacity = np.maximum(alpha, 1 / 65535 if real else 1).astype(np.float32)
    own = np.clip((color.astype(np.float32) - white + alpha) * (white / opacity), 0, white)
    return own if real else np.rint(own).astype(color.dtype)


def _lab(image: pyvips.Image) -> pyvips.Image:
    color, alpha = (image[:3], image[3]) if image.bands == 4 else (image, None)
    if image.format == "ushort":
        color = color * (255 / 65535)
        alpha = None if alpha is None else (alpha * (255 / 65535)).rint()  # libvips cuts fractions off
    lab = lab_from_bytes(color, signed=False)
    return lab if alpha is None else lab.bandjoin(alpha.cast("float")).copy(interpretation="lab")
