"""Making small files and comparing the facts of their headers with what is expected."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyvips
from PIL import Image, ImageCms

from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.probe import probe
from tests.support import photos

PHOTO = Image.fromarray(photos.astronaut()).resize((96, 64))
SRGB_PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def facts(data: bytes) -> ImageInfo:
    return probe(ByteSource(data)).info


def pillow(image: Image.Image, format_: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, format_, **options)
    return file.getvalue()


def vips(image: Image.Image | np.ndarray[Any, Any], suffix: str, **options: Any) -> bytes:
    pixels = np.asarray(image)
    picture = pyvips.Image.new_from_array(pixels)
    if pixels.dtype == np.uint16:
        picture = picture.copy(interpretation="rgb16")
    return bytes(picture.write_to_buffer(suffix, **options))


def with_orientation(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[274] = orientation
    return exif


def check(data: bytes, **expected: Any) -> ImageInfo:
    """The facts equal the expected ones, and those that are not named have their defaults."""
    info = facts(data)
    defaults: dict[str, Any] = {
        "width": 96, "height": 64, "colorspace": "srgb", "interlaced": False, "subsample": None, "depth": 8,
        "quality": None, "bytes": len(data), "frames": 1, "alpha": False, "orientation": 1, "delays": (),
        "plays": None, "profile": False, "levels": (),
    }  # fmt: skip
    assert {name: getattr(info, name) for name in defaults} == defaults | expected
    return info
