"""Reading results back with decoders that are not the ones under test."""

from __future__ import annotations

import io

import numpy as np
import pyvips
from PIL import Image

from tests.support import libavif, libjxl
from tests.support.photos import Pixels


def decode(format: str, data: bytes) -> tuple[Pixels, tuple[int, ...], int | None]:
    """Pixels, delays and plays of a file by a decoder that is not the one under test where there is another.

    Animations are (frames, height, width, bands).
    """
    if format == "heic":
        import pillow_heif

        return np.asarray(pillow_heif.open_heif(io.BytesIO(data), convert_hdr_to_8bit=False)), (), None
    if format == "jp2":
        import imagecodecs

        return imagecodecs.jpeg2k_decode(data), (), None
    if format == "jxl":
        import imagecodecs

        return imagecodecs.jpegxl_decode(data), *libjxl.times(data)
    if format == "tiff":
        import tifffile

        return tifffile.imread(io.BytesIO(data)), (), None
    with Image.open(io.BytesIO(data)) as picture:
        if getattr(picture, "n_frames", 1) > 1:
            shown, delays, plays = _decode_frames(picture)
            if format == "avif":
                delays, plays, _ = libavif.times(data)
            return (_deep_frames(data) if data[24] == 16 and format == "apng" else shown), delays, plays
        if format == "avif" or (format in ("png", "apng") and data[24] == 16):
            return _decode_by_vips(format, data), (), None
        if picture.mode == "P":
            return np.asarray(picture.convert("RGBA" if "transparency" in picture.info else "RGB")), (), None
        return np.asarray(picture.convert("L") if picture.mode == "1" else picture), (), None


def _decode_frames(picture: Image.Image) -> tuple[Pixels, tuple[int, ...], int | None]:
    shown, delays = [], []
    for index in range(getattr(picture, "n_frames", 1)):
        picture.seek(index)
        shown.append(np.asarray(picture.convert("RGBA")))
        delays.append(round(picture.info.get("duration", 0)))
    loop = picture.info.get("loop")
    if picture.format == "GIF":
        loop = 1 if loop is None else loop + 1 if loop else 0
    return np.stack(shown), tuple(delays), loop


def _deep_frames(data: bytes) -> Pixels:
    import imagecodecs

    return np.asarray(imagecodecs.apng_decode(data))


def _decode_by_vips(format: str, data: bytes) -> Pixels:
    loader = "heif" if format == "avif" else "png"
    image = getattr(pyvips.Image, f"{loader}load_buffer")(data)
    return np.asarray(image.numpy())
