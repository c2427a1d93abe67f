"""HEIC and AVIF: pictures arrive upright, and 10 or 12 bits become 16."""

from __future__ import annotations

import pyvips

from imgsvc_core._runtime.vipsimage import PROFILE, has
from imgsvc_core.errors import CorruptImage, UnsupportedFormat
from imgsvc_core.formats import availability
from imgsvc_core.formats.boundary import decoder
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.heif import Heif, avif_reading
from imgsvc_core.formats.heif.avif_reading import NO_TURN, TURNS
from imgsvc_core.formats.heif.header import HeifHeader
from imgsvc_core.formats.heif.items import NO_ITEMS
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.metadata import EXIF, XMP, blob
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.formats.vips import attach, from_array, full_range, open_lazily, still, unpremultiplied


def read(picture: Heif, settings: LoadSettings) -> pyvips.Image:
    """Return RGB or gray, with alpha if the file has it.

    Raises:
        MissingDependency: there is no decoder for HEVC.
    """
    if picture.info.animated or picture.header.items is NO_ITEMS:
        from imgsvc_core.formats.heif import animation

        return animation.read(picture, settings)
    by_libvips = availability.reader_backend(picture.name) == "libvips"
    return _read_by_libvips(picture, settings) if by_libvips else _read_by_pillow_heif(picture)


def _read_by_libvips(picture: Heif, settings: LoadSettings) -> pyvips.Image:
    source, turn = _without_turn(picture)
    image = still(open_lazily("heif", source, settings, fail_on="error"))
    pixels = avif_reading.decoded(picture) if avif_reading.suits(picture) else None
    if pixels is not None:
        image = attach(pixels, {name: blob(image, name) for name in (PROFILE, EXIF, XMP)})
    else:
        image = image.copy_memory().rot(turn) if turn != NO_TURN else image
        bits = image.get("bits-per-sample") if has(image, "bits-per-sample") else 8
        image = _as_described(image, bits, picture.info, picture.header)
    first = [block.content.read(0, block.content.size) for block in picture.exif_blocks[:1]]
    return attach(image, {EXIF: b"".join(first)})  # of several blocks, libvips takes the last


def _read_by_pillow_heif(picture: Heif) -> pyvips.Image:
    import numpy as np
    import pillow_heif

    source, turn = _without_turn(picture)
    with source.open() as file, decoder("heic"):
        heif = pillow_heif.open_heif(file, convert_hdr_to_8bit=False)
        if not len(heif):  # the decoder leaves out what it cannot make sense of
            raise CorruptImage("The HEIC image is damaged: its picture cannot be put together.")
        facts = heif.info
        if not facts.get("primary", True):
            raise UnsupportedFormat(
                "The HEIC image cannot be read: its decoder does not find the primary picture; save it anew."
            )
        pixels = np.asarray(heif)  # a view of the decoder's own memory; a copy if its rows are padded
    bits = int(facts.get("bit_depth", 8))
    image = _as_described(from_array(pixels).rot(turn), bits, picture.info, picture.header)
    blobs = {PROFILE: "icc_profile", EXIF: "exif", XMP: "xmp"}
    return attach(image, {name: facts.get(fact) for name, fact in blobs.items()})


def _without_turn(picture: Heif) -> tuple[ByteSource, str]:
    """Return the file as it is, or without its quarter turn, and how libvips is to turn what is decoded.

    libheif loses colors of 4:2:2 when it turns them, and takes a limited range for a full one.
    """
    items, reader = picture.header.items, picture.header_reader
    properties = items.properties[items.primary] if picture.info.subsample == "4:2:2" else ()
    mirrored = False
    for box in reversed(properties):
        if box.kind == b"imir":
            mirrored = not mirrored
        elif box.kind == b"irot":
            quarters = reader.byte(box.start) & 3
            data = picture.source.editable()
            data[box.start] = 0
            return ByteSource(data), TURNS[-quarters % 4 if mirrored else quarters]
    return picture.source, NO_TURN


def _as_described(image: pyvips.Image, bits: int, info: ImageInfo, header: HeifHeader) -> pyvips.Image:
    """Return decoded pixels as gray if the file is gray, in full range, and with straight alpha.

    libheif delivers gray in the range in which it is stored. Alpha is always in full range.
    """
    gray = info.colorspace == "gray"
    if gray and image.bands >= 3:
        luma = image[0].copy(interpretation="grey16" if image.format == "ushort" else "b-w")
        image = luma.bandjoin(image[3]) if image.bands == 4 else luma
    decoded = image
    if image.format == "ushort":
        image = full_range(image, bits)
    if header.limited_gray:
        luma = full_range(decoded[0], bits, limited=True)
        image = luma.bandjoin(image[1]) if image.hasalpha() else luma
    if image.hasalpha() and header.premultiplied:
        image = unpremultiplied(image)
    return image
