"""TIFF: by libvips, and by tifffile the kinds that libvips cannot decode, or decodes to wrong pixels."""

from __future__ import annotations

import itertools
import math
import operator
import struct
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import pyvips

from imgsvc_core._runtime.vipsimage import PROFILE
from imgsvc_core.errors import CorruptImage, MissingDependency
from imgsvc_core.formats import exif
from imgsvc_core.formats.boundary import decoder
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.directory import Directory, swapped
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.metadata import EXIF, IPTC, IPTC_START, XMP
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.formats.tiff import Tiff, tiles
from imgsvc_core.formats.tiff.header import (
    JPEG,
    PREMULTIPLIED,
    STRAIGHT,
    TRANSPARENT,
    YCBCR,
    Tag,
    is_icc_lab,
    level,
    needs_following_pages,
    needs_tifffile,
    plain_lengths,
    white_is_lowest,
)
from imgsvc_core.formats.tiff.unsound_tags import unsound_tags, without_tags
from imgsvc_core.formats.vips import (
    attach,
    from_array,
    from_real_numbers,
    full_array,
    lab_from_bytes,
    open_lazily,
    set_int,
    still,
    unpremultiplied,
    usual_interpretation,
)

Size = tuple[float, float]

_MOST_BYTES_OF_A_STRIP = 50 * 2**20
_WITHOUT_IMAGECODECS = (1, 8, 32773, 32946, 34925)  # compressions that tifffile itself decodes
_BLOBS = {PROFILE: Tag.PROFILE, XMP: Tag.XMP}
# What makes samples of other types unsigned: bits to shift to the right, a number to add, and the format.
_UNSIGNED = {
    "uint": (16, 0, "ushort"), "char": (0, 128, "uchar"), "short": (0, 32768, "ushort"),
    "int": (16, 32768, "ushort"),
}  # fmt: skip
# Of JFIF, as TIFF 6.0 has it unless a file states others.
_YCBCR_TO_RGB = [[1, 0, 1.402], [1, -0.344136, -0.714136], [1, 1.772, 0]]


def read(picture: Tiff, settings: LoadSettings) -> pyvips.Image:
    """Return the first page, or one of its smaller copies: gray, RGB, CMYK or Lab, not oriented."""
    info, page = picture.info, picture.header
    source = _complete(_starting_with(picture.source, page), page)
    unsound, alone = unsound_tags(page), not needs_following_pages(page, info.levels)
    if unsound or (alone and page.next):
        source = without_tags(source, page, unsound, last=alone)
    if needs_tifffile(page):
        image = _read_by_tifffile(source, page, info)
    else:
        wanted = picture.expected_size(settings)
        place = _place(page, info.levels, wanted)
        tiles.check(source, level(page, info.levels.index(wanted)) if place else page)
        # libvips takes a strip of more than 50 MB for damage unless it is told to take any.
        unlimited = {"unlimited": True} if source.size > _MOST_BYTES_OF_A_STRIP else {}
        image = open_lazily("tiff", source, settings, fail_on="error", **place, **unlimited)
        image = _colors_and_alpha(still(image), page, info)
        image = _lab(image, page) if is_icc_lab(page) else image
        image = _eight_or_sixteen_bits(image, page)
    described = exif.of_tiff(page)
    return attach(image, {EXIF: exif.serialize(described) if described else None, IPTC: _iptc(page)})


def _starting_with(source: ByteSource, page: Directory) -> ByteSource:
    """Return the file, or a copy whose first page is another one: decoders find it there."""
    place, start = page.layout.word_size, struct.pack(page.layout.word, page.start)
    if source.read(place, len(start)) == start:
        return source
    data = source.editable()
    data[place : place + len(start)] = start
    return ByteSource(data, name=source.name)


def _iptc(page: Directory) -> bytes:
    """Return the IPTC records, or Photoshop's resources, which may hold them.

    Records that are stored as numbers of four bytes may have been swapped.
    """
    tag = exif.IPTC if exif.IPTC in page.entries else exif.PHOTOSHOP
    try:
        records = page.content(tag) if tag in page.entries else b""
    except CorruptImage:
        return b""
    return swapped(records, 4) if tag == exif.IPTC and not records.startswith(IPTC_START) else records


def _complete(source: ByteSource, page: Directory) -> ByteSource:
    """Return the file, or a copy in which parts that are not compressed are as long as their pixels.

    Writers state too much for the last strip, or anything: libtiff would refuse the file, or show a hole.

    Raises:
        CorruptImage: pixels lie beyond the end, where libvips would show arbitrary memory.
    """
    alike = len(set(page.numbers(Tag.BITS))) <= 1 and page.first(Tag.PHOTOMETRIC, 1) != YCBCR
    plain = page.first(Tag.COMPRESSION, 1) == 1 and alike
    for offsets, lengths in ((Tag.STRIP_OFFSETS, Tag.STRIP_LENGTHS), (Tag.TILE_OFFSETS, Tag.TILE_LENGTHS)):
        starts, stated = page.numbers(offsets), page.numbers(lengths)
        needed = stated
        if plain and all(starts):
            needed = tuple(itertools.islice(plain_lengths(page), len(stated))) or stated
        if max(map(operator.add, starts, needed), default=0) > source.size:
            raise CorruptImage("The TIFF image is truncated: part of its pixels is missing.")
        if needed != stated:
            data = source.editable()
            page.write(data, lengths, needed)
            source = ByteSource(data, name=source.name)
    return source


def _place(page: Directory, levels: Sequence[Size], wanted: Size) -> Mapping[str, int]:
    """Return where libvips finds the image, or its smaller copy of a size."""
    if wanted not in levels:
        return {}
    number = levels.index(wanted)
    return {"subifd": number} if Tag.SUB_DIRECTORIES in page.entries else {"page": number + 1}


def _read_by_tifffile(source: ByteSource, page: Directory, info: ImageInfo) -> pyvips.Image:
    """Decode a whole page, whatever its layout and samples are."""
    alpha = _alpha_channel(page, info)
    colors = 1 if info.colorspace == "palette" else info.colors
    image = from_array(_samples(source, page, [*range(colors), *([] if alpha is None else [alpha])]))
    fields = {
        name: page.content(tag)
        for name, tag in _BLOBS.items()
        if tag in page.entries and page.is_readable(tag)
    }
    image = _with_colors(attach(image, fields), page, info, alpha)
    if info.orientation != 1:
        set_int(image, "orientation", info.orientation)
    return image


def _samples(source: ByteSource, page: Directory, channels: list[int]) -> Any:
    """Return an array of (height, width, channels), with samples of a type that libvips knows."""
    import numpy as np
    import tifffile

    compression, bits = page.first(Tag.COMPRESSION, 1), page.first(Tag.BITS, 1)
    if compression not in _WITHOUT_IMAGECODECS and find_spec("imagecodecs") is None:
        raise MissingDependency(
            "The TIFF image cannot be read here, as its compression or layout is a rare one; install what "
            "reads it with: pip install 'imgsvc[tiff]'."
        )
    with source.open() as file, decoder("tiff"):
        stored = tifffile.TiffFile(file).pages.first
        parts = math.prod(stored.chunked)
        lengths = stored.databytecounts[:parts]
        if len(lengths) < parts or not all(lengths) or not all(stored.dataoffsets[:parts]):
            raise CorruptImage("The TIFF image is damaged: a part of its pixels is missing.")
        planes = stored.asarray(squeeze=False, maxworkers=1)[:, 0]
        palette = stored.colormap
    if palette is not None:
        return (palette >> 8).astype(np.uint8).T[planes[0, :, :, 0]]
    axis = 0 if len(planes) > 1 else 3
    if planes.shape[axis] > len(channels):
        planes = planes.take(channels, axis)
    samples = np.moveaxis(planes[..., 0], 0, 2) if axis == 0 else planes[0]
    kind, size = samples.dtype.kind, samples.dtype.itemsize
    if bits < 8:
        return samples.astype(np.uint8) * np.uint8(255 // (2**bits - 1))
    if bits == 12:
        samples = full_array(samples, bits)
    elif size == 8 and kind != "f":
        samples = samples >> 32
    return samples.astype(np.float32 if kind == "f" else f"{kind}{min(size, 4)}", order="C", copy=False)


def _with_colors(image: pyvips.Image, page: Directory, info: ImageInfo, alpha: int | None) -> pyvips.Image:
    """Return the picture that the samples of channels stand for."""
    if info.colorspace == "lab":
        return _lab(image, page)
    if page.first(Tag.PHOTOMETRIC, 1) == YCBCR and page.first(Tag.COMPRESSION, 1) != JPEG:
        return (image - [0, 128, 128]).recomb(_YCBCR_TO_RGB).rint().cast("uchar").copy(interpretation="srgb")
    if white_is_lowest(page) and image.format in ("uchar", "ushort", "uint"):
        image = _inverted(image)  # as libvips does for samples that it knows
    usual = usual_interpretation(image.bands, image.format)
    image = image.copy(interpretation="cmyk" if info.colorspace == "cmyk" else usual)
    if alpha is None or _extra_kinds(page, info).get(alpha) != PREMULTIPLIED:
        return _eight_or_sixteen_bits(image, page)
    if image.format == "float":
        return _eight_or_sixteen_bits(image.unpremultiply(max_alpha=1), page)
    return unpremultiplied(_eight_or_sixteen_bits(image, page))


def _lab(image: pyvips.Image, page: Directory) -> pyvips.Image:
    """Convert CIELAB of 8 or 16 bits to real numbers."""
    if image.format == "uchar":
        return lab_from_bytes(image, signed=not is_icc_lab(page))
    if is_icc_lab(page):  # 65280 is what 255 is in 8 bits
        return lab_from_bytes(image / 256, signed=False)
    chroma = image[1:3].copy(format="short") / 256
    return (image[0] * (100 / 65535)).bandjoin(chroma).copy(interpretation="lab")


def _colors_and_alpha(image: pyvips.Image, page: Directory, info: ImageInfo) -> pyvips.Image:
    """Drop the extra channels that are no transparency."""
    if image.bands <= info.colors:
        return image
    alpha = _alpha_channel(page, info)
    chosen = image.extract_band(0, n=info.colors)
    if alpha is None:
        return chosen
    transparency = image.extract_band(alpha)
    if image.interpretation != "labs":
        return chosen.bandjoin(transparency)
    transparency = transparency.copy(format="ushort") / 257  # libvips takes its 16 bits for signed
    return chosen.LabS2Lab().bandjoin(transparency).copy(interpretation="lab")


def _alpha_channel(page: Directory, info: ImageInfo) -> int | None:
    """Return the number of the first channel that is transparency."""
    if not info.alpha:
        return None
    return next((channel for channel, kind in _extra_kinds(page, info).items() if kind in TRANSPARENT), None)


def _extra_kinds(page: Directory, info: ImageInfo) -> dict[int, int]:
    """Return the extra channels and their kinds. A single one of no stated kind is transparency."""
    kinds = page.numbers(Tag.EXTRA_CHANNELS) or (STRAIGHT,)
    return dict(enumerate(kinds, start=info.colors))


def _eight_or_sixteen_bits(image: pyvips.Image, page: Directory) -> pyvips.Image:
    """Map samples of all types to unsigned ones of 8 or 16 bits.

    Whole numbers are black at the lowest and white at the highest value of their type, as the TIFF
    specification has it. Real numbers go from 0 to 1, or from 1 to 0 if white is the lowest value. Infinity
    and NaN count as 1, because libvips reads a NaN of 16 bits as infinite.
    """
    if image.interpretation in ("lab", "labs", "labq", "xyz"):
        return image
    if image.format in ("float", "double"):
        image = (image.abs() < math.inf).ifthenelse(image, 1)
    if white_is_lowest(page) and image.format not in ("uchar", "ushort", "uint"):
        image = _inverted(image)  # libvips does so for unsigned samples alone
    if image.format in ("uchar", "ushort"):
        return image
    if image.format in ("float", "double"):
        return from_real_numbers(image)
    shift, offset, format = _UNSIGNED[image.format]
    mapped = ((image >> shift) + offset).cast(format)
    usual = usual_interpretation(mapped.bands, mapped.format)
    return mapped.copy(interpretation="cmyk" if image.interpretation == "cmyk" else usual)


def _inverted(image: pyvips.Image) -> pyvips.Image:
    gray = 1 - image[0] if image.format == "float" else image[0] ^ -1
    return gray if image.bands == 1 else gray.bandjoin(image[1])
