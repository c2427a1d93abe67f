"""TIFF: by libvips, and by Pillow the kinds that libvips cannot decode."""

from __future__ import annotations

import functools
import io
import math
import operator
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import attrs
import pyvips

from imgsvc_core.errors import CorruptImage, UnsupportedFormat
from imgsvc_core.formats import exif
from imgsvc_core.formats.boundary import decoder
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.directory import Directory, read_first_directory, swapped
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.loading import check_stored, expected_size
from imgsvc_core.formats.metadata import EXIF, IPTC, IPTC_START
from imgsvc_core.formats.pillow import SIXTEEN_BITS, lab_from_bytes, to_vips
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.formats.tiff import without_tags as tiff_tags
from imgsvc_core.formats.tiff.header import (
    HORIZONTAL,
    PREMULTIPLIED,
    RARE_COMPRESSIONS,
    REAL,
    SIGNED,
    STRAIGHT,
    TRANSPARENT,
    UNSIGNED,
    Tag,
    has_halves,
    has_planes,
    has_tiles_beyond_libvips,
    is_beyond_libvips,
    is_icc_lab,
    is_read_as_gray,
    is_read_by_channels,
    needs_following_pages,
    white_is_lowest,
)
from imgsvc_core.formats.tiff.planes import as_bare_channels, as_gray_neighbors, planes_as_pages
from imgsvc_core.formats.tiff.unsound_tags import unsound_tags
from imgsvc_core.formats.vips import (
    attach,
    from_array,
    from_real_numbers,
    full_range,
    open_lazily,
    set_int,
    still,
    usual_interpretation,
)

if TYPE_CHECKING:
    from PIL import Image

_COLORS = {"gray": 1, "cmyk": 4}
_SIDEWAYS = (5, 6, 7, 8)
_UNKNOWN_SAMPLES = (
    "The TIFF image cannot be read: its samples are not supported in its compression or layout; "
    "save it with deflate, in strips."
)
_MOST_BYTES_OF_A_STRIP = 50 * 2**20  # that libvips reads unless told otherwise
_PILLOW_NAMES = {34925: "lzma", 50000: "zstd"}


def read(source: ByteSource, info: ImageInfo, settings: LoadSettings) -> pyvips.Image:
    """Return the first page, or one of its smaller copies: gray, RGB, CMYK or Lab, not oriented."""
    page = read_first_directory(HeaderReader(source, "TIFF"))
    compression = page.first(Tag.COMPRESSION, 1)
    _check_complete(source, page)
    unsound, alone = unsound_tags(page), not needs_following_pages(page, info.levels)
    if unsound or (alone and page.next):
        source = tiff_tags.without(source, page, unsound, last=alone)
    try:
        return _read(source, page, info, settings)
    except CorruptImage as error:
        known = compression not in RARE_COMPRESSIONS or _pillow_has_codec(compression)
        if known or not isinstance(error.__cause__, OSError):
            raise
        name = RARE_COMPRESSIONS[compression]
        raise UnsupportedFormat(
            f"The TIFF image with {name} compression cannot be read here: {error.__cause__}; "
            "save it with deflate."
        ) from error


def _read(source: ByteSource, page: Directory, info: ImageInfo, settings: LoadSettings) -> pyvips.Image:
    if is_read_by_channels(page):
        image = _read_channels(source, page, info, settings)
    elif is_beyond_libvips(page):
        image = _eight_or_sixteen_bits(_decode_by_pillow(source, page, info), page)
        if settings.scale < 1:
            image = _reduced(image, *expected_size(info, settings))
    else:
        image = _colors_and_alpha(still(_open_level(source, info, settings)), page, info)
        image = _lab(image, page) if is_icc_lab(page) else image
        image = _eight_or_sixteen_bits(image, page)
    described = exif.of_tiff(page)
    return attach(image, {EXIF: exif.serialize(described) if described else None, IPTC: _iptc(page)})


def _iptc(page: Directory) -> bytes:
    """Return the IPTC records. Those that are stored as numbers of four bytes may have been swapped."""
    try:
        records = page.content(exif.IPTC) if exif.IPTC in page.entries else b""
    except CorruptImage:
        return b""
    return records if records.startswith(IPTC_START) else swapped(records, 4)


@functools.cache
def _pillow_has_codec(compression: int) -> bool:
    """Return True if Pillow can write with a compression, which shows that its libtiff has the codec.

    Reading cannot tell: Pillow raises the same error for a missing codec and for damage. Old-style JPEG
    cannot be written, so it counts as missing.
    """
    from PIL import Image

    if compression not in _PILLOW_NAMES:
        return False
    try:
        Image.new("L", (1, 1)).save(io.BytesIO(), "TIFF", compression=_PILLOW_NAMES[compression])
    except OSError:
        return False
    return True


def _check_complete(source: ByteSource, page: Directory) -> None:
    """Refuse files whose pixels lie beyond their end. libvips would show arbitrary memory there."""
    for offsets, counts in ((Tag.STRIP_OFFSETS, Tag.STRIP_LENGTHS), (Tag.TILE_OFFSETS, Tag.TILE_LENGTHS)):
        ends = map(operator.add, page.numbers(offsets), page.numbers(counts))
        if max(ends, default=0) > source.size:
            raise CorruptImage("The TIFF image is truncated: part of its pixels is missing.")


def _open(source: ByteSource, settings: LoadSettings, **place: int) -> pyvips.Image:
    """Open a page. libvips takes a strip of more than 50 MB for damage unless it is told to take any."""
    unlimited = {"unlimited": True} if source.size > _MOST_BYTES_OF_A_STRIP else {}
    return open_lazily("tiff", source, settings, fail_on="error", **place, **unlimited)


def _open_level(source: ByteSource, info: ImageInfo, settings: LoadSettings) -> pyvips.Image:
    """Open the image, or the page or sub-image that is its smaller copy, which is made if it is not found."""
    image = _open(source, settings)
    wanted = info.width * settings.scale
    if settings.scale >= 1 or abs(image.width - wanted) <= 1:
        return image
    pages = image.get("n-pages") if image.get_typeof("n-pages") else 1
    subifds = image.get("n-subifds") if image.get_typeof("n-subifds") else 0
    copies = [{"subifd": index} for index in range(subifds)] or [{"page": page} for page in range(1, pages)]
    for place in copies[: len(info.levels) or len(copies)]:
        level = _open(source, settings, **place)
        if abs(level.width - wanted) <= 1:
            return level
    return _reduced(image, *expected_size(info, settings))


def _read_channels(
    source: ByteSource, page: Directory, info: ImageInfo, settings: LoadSettings
) -> pyvips.Image:
    """Read channel by channel: planes, or samples that libvips does not know or divides wrongly."""
    alpha = _alpha_channel(page, info)
    channels = [*range(_COLORS.get(info.colorspace, 3)), *([] if alpha is None else [alpha])]
    if has_planes(page):
        joined = _planes(source, page, info, settings, channels)
    elif is_read_as_gray(page):
        joined = _bands(_read_as_gray(source, page, info), channels)
    else:
        samples = still(_open(as_bare_channels(source, page), settings))
        samples = _samples_of_halves(samples, page) if has_halves(page) else samples
        joined = _bands(samples, channels)
    if info.colorspace == "lab":
        return _lab(joined, page)
    bare = has_halves(page) or not has_planes(page)
    if bare and white_is_lowest(page) and joined.format in ("uchar", "ushort", "uint"):
        joined = _inverted(joined)  # as libvips does for samples that it knows
    usual = usual_interpretation(joined.bands, joined.format)
    joined = joined.copy(interpretation="cmyk" if info.colorspace == "cmyk" else usual)
    if alpha is None or _extra_kinds(page, info).get(alpha) != PREMULTIPLIED:
        return _eight_or_sixteen_bits(joined, page)
    if joined.format == "float":
        return _eight_or_sixteen_bits(joined.unpremultiply(max_alpha=1), page)
    image = _eight_or_sixteen_bits(joined, page)
    straight = image.unpremultiply(max_alpha=255 if image.format == "uchar" else 65535)
    return straight.rint().cast(image.format).copy(interpretation=image.interpretation)


def _planes(
    source: ByteSource, page: Directory, info: ImageInfo, settings: LoadSettings, channels: Sequence[int]
) -> pyvips.Image:
    """Join the channels of a page that stores each for itself."""
    pages = planes_as_pages(source, page, channels)
    if page.first(Tag.COMPRESSION, 1) in RARE_COMPRESSIONS or has_tiles_beyond_libvips(page):
        planes = [_decode_by_pillow(pages, page, info, number) for number in range(len(channels))]
    else:
        planes = [still(_open(pages, settings, page=number)) for number in range(len(channels))]
        if has_halves(page):
            planes = [_samples_of_halves(plane, page) for plane in planes]
    return planes[0].bandjoin(planes[1:])


def _read_as_gray(source: ByteSource, page: Directory, info: ImageInfo) -> pyvips.Image:
    """Decode the samples of all channels as those of one gray picture."""
    copy = as_gray_neighbors(source, page)
    wide = attrs.evolve(info, width=info.width * page.first(Tag.CHANNELS, 1))
    gray = read_first_directory(HeaderReader(copy, "TIFF"))
    return _decode_by_pillow(copy, gray, wide, convert=partial(_neighbors, page=page))


def _neighbors(picture: Image.Image, page: Directory) -> pyvips.Image:
    """Return the pixels whose samples of 12 or 16 bits are neighbors in a gray picture."""
    import numpy as np

    channels, kind = page.first(Tag.CHANNELS, 1), page.first(Tag.SAMPLE_FORMAT, UNSIGNED)
    predicted = page.first(Tag.PREDICTOR, 1) == HORIZONTAL
    samples = np.asarray(picture).astype(np.uint16, copy=predicted)
    samples = samples.reshape(picture.height, -1, channels)
    if page.first(Tag.BITS, 1) == 12:
        return full_range(from_array(samples << 4), 12)
    if predicted:
        step = page.first(Tag.TILE_WIDTH, 0) or samples.shape[1]
        for left in range(0, samples.shape[1], step):
            part = samples[:, left : left + step]
            np.cumsum(part, axis=1, dtype=np.uint16, out=part)
    if kind == REAL:
        return from_array(samples.view(np.float16).astype(np.float32))
    return from_array(samples.view(np.int16) if kind == SIGNED else samples)


def _bands(image: pyvips.Image, chosen: Iterable[int]) -> pyvips.Image:
    first, *rest = (image[band] for band in chosen)
    return first.bandjoin(rest) if rest else first


def _samples_of_halves(image: pyvips.Image, page: Directory) -> pyvips.Image:
    """Return floats, or the upper halves of whole numbers, from channels that are halves of 64 bits.

    libvips has given the halves the byte order of this machine, but left them in the order of the file.
    """
    upper = 0 if page.layout.order == ">" else 1
    kind = page.first(Tag.SAMPLE_FORMAT, UNSIGNED)
    if kind == REAL:
        order = list(range(image.bands))
        if page.layout.order != ("<" if sys.byteorder == "little" else ">"):
            order = [channel ^ 1 for channel in order]
        return _bands(image, order).copy(format="double", bands=image.bands // 2).cast("float")
    words = _bands(image, range(upper, image.bands, 2))
    return words.copy(format="int") if kind == SIGNED else words


def _lab(image: pyvips.Image, page: Directory) -> pyvips.Image:
    """Convert CIELAB of 8 or 16 bits to real numbers."""
    if image.bands != 3 or image.format not in ("uchar", "ushort"):
        raise UnsupportedFormat(
            "The TIFF image cannot be read: its Lab colors have transparency or samples of another type than "
            "8 or 16 bits; save it as RGB."
        )
    if image.format == "uchar":
        return lab_from_bytes(image, signed=not is_icc_lab(page))
    if is_icc_lab(page):  # 65280 is what 255 is in 8 bits
        return lab_from_bytes(image / 256, signed=False)
    chroma = image[1:3].copy(format="short") / 256
    return (image[0] * (100 / 65535)).bandjoin(chroma).copy(interpretation="lab")


def _colors_and_alpha(image: pyvips.Image, page: Directory, info: ImageInfo) -> pyvips.Image:
    """Drop the extra channels that are no transparency."""
    colors = _COLORS.get(info.colorspace, 3)
    if image.bands <= colors:
        return image
    alpha = _alpha_channel(page, info)
    chosen = image.extract_band(0, n=colors)
    return chosen if alpha is None else chosen.bandjoin(image.extract_band(alpha))


def _alpha_channel(page: Directory, info: ImageInfo) -> int | None:
    """Return the number of the first channel that is transparency."""
    if not info.alpha:
        return None
    return next((channel for channel, kind in _extra_kinds(page, info).items() if kind in TRANSPARENT), None)


def _extra_kinds(page: Directory, info: ImageInfo) -> dict[int, int]:
    """Return the extra channels and their kinds. A single one of no stated kind is transparency."""
    kinds = page.numbers(Tag.EXTRA_CHANNELS) or (STRAIGHT,)
    return dict(enumerate(kinds, start=_COLORS.get(info.colorspace, 3)))


def _eight_or_sixteen_bits(image: pyvips.Image, page: Directory) -> pyvips.Image:
    """Map samples of all types to unsigned ones of 8 or 16 bits.

    Whole numbers are black at the lowest and white at the highest value of their type, as the TIFF
    specification has it. Real numbers go from 0 to 1, or from 1 to 0 if white is the lowest value. Those
    that are not finite count as 1, as libvips reads NaN of 16 bits as infinite.
    """
    if image.interpretation in ("lab", "labs", "labq", "xyz"):
        return image
    if image.format in ("float", "double"):
        image = (image.abs() < math.inf).ifthenelse(image, 1)
    if white_is_lowest(page) and image.format not in ("uchar", "ushort", "uint"):
        image = _inverted(image)  # libvips does so for unsigned samples alone
    match image.format:
        case "uchar" | "ushort":
            return image
        case "uint":
            mapped = (image >> 16).cast("ushort")
        case "char":
            mapped = (image + 128).cast("uchar")
        case "short":
            mapped = (image + 32768).cast("ushort")
        case "int":
            mapped = ((image >> 16) + 32768).cast("ushort")
        case _:
            return from_real_numbers(image)
    usual = usual_interpretation(mapped.bands, mapped.format)
    return mapped.copy(interpretation="cmyk" if image.interpretation == "cmyk" else usual)


def _inverted(image: pyvips.Image) -> pyvips.Image:
    gray = 1 - image[0] if image.format == "float" else image[0] ^ -1
    return gray if image.bands == 1 else gray.bandjoin(image[1])


def _decode_by_pillow(
    source: ByteSource,
    page: Directory,
    info: ImageInfo,
    number: int = 0,
    convert: Callable[[Image.Image], pyvips.Image] | None = None,
) -> pyvips.Image:
    """Decode a page with Pillow, which reaches only some copies of a pyramid."""
    from PIL import Image
    from PIL.TiffImagePlugin import TiffImageFile

    undo = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    orientation = info.orientation
    with source.open() as file:
        with decoder("tiff"):
            try:
                picture = TiffImageFile(file)
                picture.seek(number)
            except SyntaxError as error:  # Pillow knows no such samples
                raise UnsupportedFormat(_UNKNOWN_SAMPLES) from error
        if _pillow_misreads(picture.mode, page):
            raise UnsupportedFormat(_UNKNOWN_SAMPLES)
        # Pillow turns TIFF upright by itself; callers expect every image as it is stored.
        check_stored(*(picture.size[::-1] if orientation in _SIDEWAYS else picture.size), info)
        with decoder("tiff"):
            picture.load()
        upright: Image.Image = picture
        stored = upright.transpose(undo[orientation]) if orientation in undo else upright
        profile, xmp = picture.info.get("icc_profile"), picture.info.get("xmp")
        native = _native(stored, page) if convert is None else convert(stored)
        image = attach(native, {"icc-profile-data": profile, "xmp-data": xmp})
    if orientation != 1:
        set_int(image, "orientation", orientation)
    return image


def _pillow_misreads(mode: str, page: Directory) -> bool:
    """Return True for samples whose bytes Pillow swaps twice, or whose white it takes for black."""
    swapped = mode in ("I", "F") and page.layout.order == ">"
    return swapped or (mode in SIXTEEN_BITS and white_is_lowest(page))


def _native(picture: Image.Image, page: Directory) -> pyvips.Image:
    """Return the pixels with samples of the type that the file states.

    Pillow takes signed bytes for unsigned ones, has all other whole numbers as signed ones of 32 bits, and
    does not stretch 12 bits to 16.
    """
    import numpy as np

    kind, bits = page.first(Tag.SAMPLE_FORMAT, UNSIGNED), page.first(Tag.BITS, 1)
    if bits == 12:
        return full_range(from_array(np.asarray(picture).astype(np.uint16) << 4), 12)
    if picture.mode == "I":
        sample = {(SIGNED, 16): np.int16, (SIGNED, 32): np.int32}.get((kind, bits), np.uint32)
        return from_array(np.asarray(picture).astype(sample))
    if picture.mode == "F":
        return from_array(np.asarray(picture))
    image = to_vips(picture)
    return image.copy(format="char") if (kind, bits) == (SIGNED, 8) and picture.mode == "L" else image


def _reduced(image: pyvips.Image, width: float, height: float) -> pyvips.Image:
    across, down = width / image.width, height / image.height
    if not image.hasalpha():
        return image.resize(across, vscale=down)
    reduced = image.premultiply().resize(across, vscale=down).unpremultiply()
    return reduced.rint().cast(image.format).copy(interpretation=image.interpretation)
