"""HEIC and AVIF: pictures arrive upright, and 10 or 12 bits become 16."""

from __future__ import annotations

import pyvips

from imgsvc_core._runtime.vipsimage import PROFILE, has
from imgsvc_core.errors import CorruptImage
from imgsvc_core.formats import availability
from imgsvc_core.formats.boundary import decoder
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.heif.header import HeifHeader
from imgsvc_core.formats.heif.items import read_exif
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.loading import check_stored
from imgsvc_core.formats.metadata import EXIF, XMP
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.formats.vips import attach, from_array, full_range, open_lazily, still, unpremultiplied


def read_avif(
    source: ByteSource, info: ImageInfo, header: HeifHeader, settings: LoadSettings
) -> pyvips.Image:
    """Return RGB or gray, with alpha if the file has it."""
    return _read_by_libvips(source, info, header, settings)


def read_heic(
    source: ByteSource, info: ImageInfo, header: HeifHeader, settings: LoadSettings
) -> pyvips.Image:
    """Return RGB or gray, with alpha if the file has it.

    Raises:
        MissingDependency: there is no decoder for HEVC.
    """
    if availability.reader_backend("heic") == "libvips":
        return _read_by_libvips(source, info, header, settings)
    return _read_by_pillow_heif(source, info, header)


def _read_by_libvips(
    source: ByteSource, info: ImageInfo, header: HeifHeader, settings: LoadSettings
) -> pyvips.Image:
    image = still(open_lazily("heif", source, settings, fail_on="error"))
    bits = image.get("bits-per-sample") if has(image, "bits-per-sample") else 8
    block = read_exif(HeaderReader(source, "HEIF"), header.items)  # of several, libvips takes the last
    return attach(_as_described(image, bits, info, header), {EXIF: block})


def _read_by_pillow_heif(source: ByteSource, info: ImageInfo, header: HeifHeader) -> pyvips.Image:
    import numpy as np
    import pillow_heif

    with source.open() as file, decoder("heic"):
        heif = pillow_heif.open_heif(file, convert_hdr_to_8bit=False)
        if not len(heif):  # the decoder leaves out what it cannot make sense of
            raise CorruptImage("The HEIC image is damaged: its picture cannot be put together.")
        width, height = heif.size
        facts = heif.info
    check_stored(width, height, info)
    with decoder("heic"):
        pixels = np.asarray(heif)  # a view of the decoder's own memory; a copy if its rows are padded
    image = _as_described(from_array(pixels), int(facts.get("bit_depth", 8)), info, header)
    return attach(
        image,
        {
            PROFILE: facts.get("icc_profile"),
            EXIF: facts.get("exif"),
            XMP: facts.get("xmp"),
        },
    )


def _as_described(image: pyvips.Image, bits: int, info: ImageInfo, header: HeifHeader) -> pyvips.Image:
    """Return decoded pixels as gray if the file is gray, in full range, and with straight alpha.

    libheif delivers gray in the range in which it is stored. Alpha is always in full range.
    """
    gray = info.colorspace == "gray"
    if gray and image.bands >= 3:
        luma = image[0].copy(interpretation="grey16" if image.format == "ushort" else "b-w")
        image = luma.bandjoin(image[3]) if image.bands == 4 else luma
    decoded = image
    if image.format == "ushort" and bits < 16:
        image = full_range(image, bits)
    if header.limited_gray:
        luma = full_range(decoded[0], bits, limited=True)
        image = luma.bandjoin(image[1]) if image.hasalpha() else luma
    if image.hasalpha() and header.premultiplied:
        image = unpremultiplied(image)
    return image
