"""JPEG 2000: by libvips if it has the codec, else by imagecodecs (at full size) or Pillow."""

from __future__ import annotations

import io
from importlib.util import find_spec

import pyvips

from imgsvc_core._runtime.private_names import read_resolution
from imgsvc_core._runtime.vipsimage import PROFILE
from imgsvc_core.errors import CorruptImage
from imgsvc_core.formats import availability
from imgsvc_core.formats.boundary import decoder
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.jp2.header import Jp2Header, Palette, check_tiles, read_palette, read_profile
from imgsvc_core.formats.loading import check_stored
from imgsvc_core.formats.pillow import to_vips
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.formats.vips import attach, from_array, full_range, open_lazily, straight, to_array


def read(source: ByteSource, info: ImageInfo, header: Jp2Header, settings: LoadSettings) -> pyvips.Image:
    """Return gray, RGB or CMYK of 8 or 16 bits, at full size or at one of the resolutions of the codestream.

    Without imagecodecs, color pictures of more than 8 bits are read with 8.
    """
    reader = HeaderReader(source, "JPEG 2000")
    check_tiles(reader, header.codestream)
    palette = read_palette(reader, header)
    image = _read(source, info, header, palette, settings)
    image = attach(image, {PROFILE: read_profile(reader, header)})
    return straight(image) if image.hasalpha() and header.premultiplied else image


def _read(
    source: ByteSource, info: ImageInfo, header: Jp2Header, palette: Palette | None, settings: LoadSettings
) -> pyvips.Image:
    reduce = _reduction(info, settings.scale)
    if palette is None and availability.reader_backend("jp2") == "libvips":
        return open_lazily("jp2k", source, settings, page=reduce, fail_on="error")
    data = source.read()
    exact = info.depth > 8 or _is_plain(info)
    if palette is not None:
        return _look_up(_decode_by_pillow(data[header.codestream :], 0, info), palette, info)
    if exact and reduce == 0 and find_spec("imagecodecs") is not None:
        return _read_by_imagecodecs(data, info)
    return _read_by_pillow(data, reduce, info)


def _reduction(info: ImageInfo, scale: float) -> int:
    """Return how many times to halve for the width that is nearest to that of the scale."""
    widths = [info.width, *(width for width, _ in info.levels)]
    return min(range(len(widths)), key=lambda halvings: abs(widths[halvings] - info.width * scale))


def _read_by_pillow(data: bytes, reduce: int, info: ImageInfo) -> pyvips.Image:
    image = _decode_by_pillow(data, reduce, info)
    return full_range(image, info.depth) if info.depth < 8 else image


def _decode_by_pillow(data: bytes, reduce: int, info: ImageInfo) -> pyvips.Image:
    """Decode one resolution. Pillow's own ``reduce`` rounds sizes to nearest, the standard up: it fails."""
    from PIL.Jpeg2KImagePlugin import Jpeg2KImageFile

    with decoder("jp2"):
        picture = Jpeg2KImageFile(io.BytesIO(data))
    with picture:
        check_stored(*picture.size, info)
        if reduce:
            read_resolution(picture, info.levels[reduce - 1], reduce)
        with decoder("jp2"):
            picture.load()
        return to_vips(picture)


def _look_up(image: pyvips.Image, palette: Palette, info: ImageInfo) -> pyvips.Image:
    """Return the channels of decoded numbers of colors. Decoders know some palettes, and none with alpha."""
    import numpy as np

    sample = np.uint16 if info.depth > 8 else np.uint8
    white = np.iinfo(sample).max
    stored = to_array(image)
    numbers = stored >> (8 * stored.itemsize - palette.depth)  # which Pillow has shifted to the left
    channels = np.empty((image.height, image.width, len(palette.bands)), sample)
    for band, (component, column) in enumerate(palette.bands):
        if component >= image.bands:
            raise CorruptImage("The JPEG 2000 image is damaged: its palette is for a missing channel.")
        shares = np.arange(2**palette.depth) / (2**palette.depth - 1) if column is None else np.array(column)
        levels = np.rint(shares * white).astype(sample)
        channels[:, :, band] = np.take(levels, numbers[:, :, component], mode="clip")
    return from_array(channels)


def _is_plain(info: ImageInfo) -> bool:
    """Return True for samples that need no conversion, which only Pillow does for 8 bits."""
    full = info.subsample in (None, "4:4:4")
    plain = info.colorspace in ("gray", "srgb") and info.channels == info.colors + info.alpha
    return info.depth == 8 and full and plain


def _read_by_imagecodecs(data: bytes, info: ImageInfo) -> pyvips.Image:
    """Decode in full. Unlike Pillow it lets other threads run meanwhile, which may be waiting to stop it."""
    import imagecodecs
    import numpy as np

    with decoder("jp2"):
        pixels = imagecodecs.jpeg2k_decode(data)
    if pixels.dtype.kind == "i":
        unsigned = np.uint8 if info.depth <= 8 else np.uint16
        pixels = (pixels.astype(np.int32) + (1 << (info.depth - 1))).clip(0).astype(unsigned)
    if pixels.dtype == np.uint8:
        return from_array(pixels)
    if info.depth < 16:
        table = np.rint(np.arange(2**info.depth) * (65535 / (2**info.depth - 1))).astype(np.uint16)
        return from_array(np.take(table, pixels, mode="clip"))
    if pixels.dtype != np.uint16:
        raise CorruptImage(f"The JPEG 2000 image has {info.depth} bits per channel; at most 16 can be read.")
    return from_array(pixels)
