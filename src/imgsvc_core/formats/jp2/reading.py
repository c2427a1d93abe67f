"""JPEG 2000: by libvips if it has the codec, else by imagecodecs (at full size) or Pillow."""

from __future__ import annotations

import io
from importlib.util import find_spec

import pyvips

from imgsvc_core._runtime.private_names import read_resolution
from imgsvc_core._runtime.vipsimage import PROFILE
from imgsvc_core.errors import MissingDependency, UnsupportedFormat
from imgsvc_core.formats import availability
from imgsvc_core.formats.boundary import decoder
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.jp2 import Jp2
from imgsvc_core.formats.jp2.header import Jp2Header, check_tiles, read_profile
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.formats.vips import attach, from_array, full_array, full_range, open_lazily, unpremultiplied

_MOST_CHANNELS = 4  # of Pillow
_UNKNOWN_METHOD = b"\xff"
"""Decoders ignore a color specification of a method that JPEG 2000 does not know."""


def read(picture: Jp2, settings: LoadSettings) -> pyvips.Image:
    """Return gray, RGB or CMYK of 8 or 16 bits, at full size or at one of the resolutions of the codestream.

    Without imagecodecs, color pictures of more than 8 bits are read with 8.

    Raises:
        MissingDependency: it has a palette, and imagecodecs is not there.
    """
    header, reader = picture.header, picture.header_reader
    check_tiles(reader, header.codestream)
    image = attach(_read(picture, settings), {PROFILE: read_profile(reader, header)})
    return unpremultiplied(image) if image.hasalpha() and header.premultiplied else image


def _read(picture: Jp2, settings: LoadSettings) -> pyvips.Image:
    source, info = picture.source, picture.info
    sizes: list[tuple[float, float]] = [(info.width, info.height), *info.levels]
    reduce = sizes.index(picture.expected_size(settings))
    if info.colorspace != "palette" and availability.reader_backend("jp2") == "libvips":
        return open_lazily("jp2k", source, settings, page=reduce, fail_on="error")
    exact = info.depth > 8 or _is_plain(info)
    suits = info.colorspace == "palette" or (exact and picture.header.sampled)
    if suits and reduce == 0 and find_spec("imagecodecs") is not None:
        return _read_by_imagecodecs(_without_profile(source.read(), picture.header), info)
    if info.colorspace == "palette":
        raise MissingDependency(
            "The JPEG 2000 image cannot be read here, as it has a palette; install what reads it with: "
            "pip install 'imgsvc[jp2]'."
        )
    return _read_by_pillow(source.read(), reduce, info)


def _read_by_pillow(data: bytes, reduce: int, info: ImageInfo) -> pyvips.Image:
    """Decode one resolution. Pillow's own ``reduce`` rounds sizes to nearest, the standard up: it fails."""
    import numpy as np
    from PIL.Jpeg2KImagePlugin import Jpeg2KImageFile

    if (info.channels or 0) > _MOST_CHANNELS:
        raise UnsupportedFormat(
            f"The JPEG 2000 image cannot be read: it has {info.channels} channels; save it with at most "
            f"{_MOST_CHANNELS}."
        )
    with decoder("jp2"):
        picture = Jpeg2KImageFile(io.BytesIO(data))
    with picture:
        if reduce:
            read_resolution(picture, info.levels[reduce - 1], reduce)
        with decoder("jp2"):
            picture.load()
        image = from_array(np.asarray(picture), "cmyk" if picture.mode == "CMYK" else None)
    return full_range(image, info.depth) if info.depth < 8 else image


def _is_plain(info: ImageInfo) -> bool:
    """Return True for samples that need no conversion, which only Pillow does for up to 8 bits."""
    full = info.subsample in (None, "4:4:4")
    plain = info.colorspace in ("gray", "srgb") and info.channels == info.colors + info.alpha
    return full and plain


def _without_profile(data: bytes, header: Jp2Header) -> bytes:
    """Hide the profile from imagecodecs, which else converts colors by it, and gray to RGB."""
    if header.profile is None:
        return data
    method = header.profile.start
    return data[:method] + _UNKNOWN_METHOD + data[method + 1 :]


def _read_by_imagecodecs(data: bytes, info: ImageInfo) -> pyvips.Image:
    """Decode in full. Unlike Pillow it lets other threads run meanwhile, which may be waiting to stop it."""
    import imagecodecs
    import numpy as np

    with decoder("jp2"):
        pixels = imagecodecs.jpeg2k_decode(data)
    if pixels.dtype.kind == "i":
        unsigned = np.uint8 if info.depth <= 8 else np.uint16
        pixels = (pixels.astype(np.int32) + (1 << (info.depth - 1))).clip(0).astype(unsigned)
    if pixels.dtype not in (np.uint8, np.uint16):
        raise UnsupportedFormat(
            f"The JPEG 2000 image cannot be read: it has {info.depth} bits per channel; save it with 16."
        )
    return from_array(full_array(pixels, info.depth))
