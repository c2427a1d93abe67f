"""JPEG XL, by imagecodecs: pictures arrive as they are stored, and real numbers become 16 bits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyvips

from imgsvc_core._runtime.vipsimage import PROFILE
from imgsvc_core.errors import CorruptImage
from imgsvc_core.formats.boundary import decoder
from imgsvc_core.formats.jxl import Jxl
from imgsvc_core.formats.jxl.header import JxlHeader, in_srgb, profile_of
from imgsvc_core.formats.metadata import EXIF, XMP
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.formats.vips import attach, from_array, full_array, unpremultiplied, with_timing

_FIELDS = {b"Exif": EXIF, b"xml ": XMP}
_COMPRESSED = b"brob"
_MOST_METADATA = 1 << 24  # bytes of a compressed box


def read(picture: Jxl, settings: LoadSettings) -> pyvips.Image:
    """Return gray or RGB of 8 or 16 bits, with alpha if the file has it.

    Raises:
        MissingDependency: imagecodecs is not installed.
    """
    import imagecodecs
    import numpy as np

    info, header = picture.info, picture.header
    all_frames = settings.all_frames and info.animated
    # Without a color management of its own, libjxl decodes lossy pictures with a profile to linear light.
    lossy = header.picture.xyb and header.picture.colors.profile
    source = in_srgb(header) if lossy else picture.source.read()
    fields: dict[str, bytes | None] = {PROFILE: None if lossy else profile_of(header)}
    if settings.metadata:
        fields |= read_metadata(picture.header_reader, header)
    with decoder("jxl"):
        pixels = imagecodecs.jpegxl_decode(
            source, index=None if all_frames else 0, keeporientation=True, numthreads=1
        )
    frames = info.frames if all_frames else 1
    if not info.alpha and pixels.ndim > 2 and pixels.shape[-1] != 3:
        pixels = pixels.reshape(-1, *pixels.shape[-2:])[:: len(header.picture.extra) + 1]
    bands = (1 if info.colorspace == "gray" else 3) + info.alpha
    expected = frames * info.height, info.width, bands
    if pixels.size != expected[0] * expected[1] * expected[2]:
        raise CorruptImage(
            f"The JPEG XL image is damaged: its header states {frames} x {info.width} x {info.height} pixels "
            f"of {bands} channels, its data {' x '.join(map(str, pixels.shape))}."
        )
    image = from_array(_in_integers(np.ascontiguousarray(pixels).reshape(expected), info.depth))
    alpha = header.picture.alpha
    if alpha and alpha.premultiplied:
        image = unpremultiplied(image)
    image = attach(image, fields)
    return with_timing(image, info.height, info.delays, info.plays) if all_frames else image


def read_metadata(reader: HeaderReader, header: JxlHeader) -> Mapping[str, bytes]:
    """Return EXIF and XMP by libvips' names, also if they are compressed. Damaged ones are left out."""
    found: dict[str, bytes] = {}
    for box in header.boxes:
        kind, content = box.kind, b""
        if kind == _COMPRESSED and box.end - box.start >= 4:
            kind = reader.read(box.start, 4)
            if kind in _FIELDS:
                content = _decompressed(reader.read(box.start + 4, box.end - box.start - 4))
        elif kind in _FIELDS:
            content = reader.read(box.start, box.end - box.start)
        if kind == b"Exif" and content:
            content = content[4 + int.from_bytes(content[:4], "big") :]
        if content:
            found.setdefault(_FIELDS[kind], content)
    return found


def _decompressed(data: bytes) -> bytes:
    """Return what Brotli compressed, or nothing if it is damaged or too long."""
    import imagecodecs

    room = bytearray(_MOST_METADATA)
    try:
        return bytes(imagecodecs.brotli_decode(data, out=room))
    except Exception:
        return b""


def _in_integers(pixels: Any, depth: int) -> Any:
    """Return samples of 8 or 16 bits that use the whole range."""
    import numpy as np

    if pixels.dtype.kind == "f":
        return np.rint(np.nan_to_num(pixels, copy=False).clip(0, 1) * np.float32(65535)).astype(np.uint16)
    return full_array(pixels, depth)
