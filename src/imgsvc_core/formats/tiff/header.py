"""TIFF and BigTIFF: the first page, and the smaller copies that a pyramid holds (TIFF 6.0)."""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Iterable, Iterator

from imgsvc_core.errors import CorruptImage
from imgsvc_core.formats.directory import Directory, read_first_directory, valid_orientation
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.tiff.unsound_tags import unsound_tags


class Tag(enum.IntEnum):
    """The tags that say how the pixels of a page are stored."""

    KIND = 254
    WIDTH = 256
    HEIGHT = 257
    BITS = 258
    COMPRESSION = 259
    PHOTOMETRIC = 262
    STRIP_OFFSETS = 273
    ORIENTATION = 274
    CHANNELS = 277
    ROWS_OF_STRIP = 278
    STRIP_LENGTHS = 279
    PLANES = 284
    TILE_WIDTH = 322
    TILE_HEIGHT = 323
    TILE_OFFSETS = 324
    TILE_LENGTHS = 325
    SUB_DIRECTORIES = 330
    INKS = 332
    EXTRA_CHANNELS = 338
    SAMPLE_FORMAT = 339
    CHROMA_STEPS = 530
    XMP = 700
    PROFILE = 34675


# Every libtiff has these: no compression, fax, LZW, JPEG, deflate and PackBits.
COMMON_COMPRESSIONS = (1, 2, 3, 4, 5, 7, 8, 32773, 32946)
JPEG = 7
_WEBP = 50001
RARE_COMPRESSIONS = {34925: "LZMA", 50000: "Zstandard", _WEBP: "WebP"}
"""Not every libtiff has these, and libvips does not report clearly that one is missing."""
_NEVER_READ = {6: "old-style JPEG"}
PREMULTIPLIED, STRAIGHT = TRANSPARENT = (1, 2)  # kinds of extra channels that hold transparency
UNSIGNED, SIGNED, REAL, UNDEFINED = 1, 2, 3, 4
WHITE_IS_LOWEST, BLACK_IS_LOWEST = 0, 1  # photometric interpretations of gray
_BITS = {UNSIGNED: (8, 16, 32, 64), SIGNED: (8, 16, 32, 64), REAL: (16, 32, 64), UNDEFINED: (8, 16, 32)}
_BITS_OF_ONE_CHANNEL = (1, 2, 4, 12)  # unsigned
_CIELAB, _ICCLAB = 8, 9
_SEPARATE_PLANES = 2
_RGB, _CMYK = 2, 5
_CMYK_INKS = 1
_PLAIN_PHOTOMETRICS = (WHITE_IS_LOWEST, BLACK_IS_LOWEST, _RGB, _CMYK)
_ALIKE = (Tag.BITS, Tag.PHOTOMETRIC, Tag.CHANNELS, Tag.SAMPLE_FORMAT, Tag.EXTRA_CHANNELS)
YCBCR = 6
_COLOR_SPACES = {
    0: "gray", 1: "gray", 2: "srgb", 3: "palette", 5: "cmyk", YCBCR: "srgb", _CIELAB: "lab", _ICCLAB: "lab",
    32844: "gray", 32845: "srgb",
}  # fmt: skip
_RAW = (32803, 34892)  # as the sensor has it
_COLORS = {"gray": 1, "palette": 1, "srgb": 3, "cmyk": 4, "lab": 3}
_SUBSAMPLINGS = {(1, 1): "4:4:4", (2, 1): "4:2:2", (2, 2): "4:2:0", (1, 2): "4:4:0", (4, 1): "4:1:1"}
_PYRAMID_TOLERANCE = 5
_SMALLEST_LEVEL = 2
_MOST_LEVELS = 32
_MOST_COPIES, _COPY, _COPY_OR_MASK = 8, 0b001, 0b101
_MOST_CHANNELS = 65_535
_MOST_TILE_SIDE, _STEP_OF_TILES, _MOST_TILE_BYTES = 8192, 256, 100_000_000  # of libvips


def read_header(reader: HeaderReader) -> tuple[ImageInfo, Directory]:
    """Read the facts of the first page, in its stored size, before its orientation, and its tags.

    If that is a smaller copy, as scanners and cameras put it first, the picture itself is meant.
    A TIFF of many pages is a document and not an animation: ``frames`` is 1, and only the first page is read.
    """
    page = _whole_picture(read_first_directory(reader))
    if page.repeats:  # libtiff reads values of all tags, also of unknown ones
        raise reader.corrupt("its tags share their values, which together have more bytes than the file")
    width, height = page.first(Tag.WIDTH, 0), page.first(Tag.HEIGHT, 0)
    reader.check_size(width, height)
    photometric = page.first(Tag.PHOTOMETRIC, 1)
    if photometric in _RAW:
        raise reader.unsupported("it is camera RAW, which is not developed; save it as JPEG or RGB TIFF")
    if photometric not in _COLOR_SPACES:
        raise reader.unsupported(
            f"its photometric interpretation {photometric} is not supported; save it as RGB"
        )
    compression = page.first(Tag.COMPRESSION, 1)
    if compression not in (*COMMON_COMPRESSIONS, *RARE_COMPRESSIONS):
        name = _NEVER_READ.get(compression, compression)
        raise reader.unsupported(f"its compression {name} is not supported; save it with deflate")
    colorspace = _COLOR_SPACES[photometric]
    depth = max(page.numbers(Tag.BITS, _MOST_CHANNELS) or (1,))
    channels = page.first(Tag.CHANNELS, 1)
    if channels < _COLORS[colorspace]:
        raise reader.corrupt(f"its {channels} channels are too few for its colors")
    if photometric == _CMYK and page.first(Tag.INKS, _CMYK_INKS) != _CMYK_INKS:
        raise reader.unsupported("its inks are others than those of CMYK; save it as RGB")
    _check_samples(reader, page, depth, channels)
    tile = math.prod(_tile(page))
    levels = _levels(page, (width, height))
    info = ImageInfo(
        format="tiff",
        width=width,
        height=height,
        colorspace=colorspace,
        subsample=_subsampling(page) if photometric == YCBCR else None,
        depth=8 if colorspace == "palette" else depth,
        bytes=reader.size,
        alpha=_has_alpha(page, channels - _COLORS[colorspace]),
        orientation=valid_orientation(page),
        profile=Tag.PROFILE in page.entries,
        levels=levels,
        more_pages=not needs_following_pages(page, levels) and _has_more_pages(page),
        channels=channels,
        lossless=compression not in (JPEG, _WEBP),
        decoded_pixels=tile if tile > width * height else None,
    )
    return info, page


def _whole_picture(first: Directory) -> Directory:
    """Return the picture of which the first page is a smaller copy, if there is one, else the first page."""
    if not first.first(Tag.KIND, 0) & _COPY:
        return first
    inner = (first.at(offset) for offset in first.numbers(Tag.SUB_DIRECTORIES, _MOST_COPIES))
    others = itertools.chain(inner, itertools.islice(_following(first), _MOST_COPIES))
    try:
        return next((page for page in others if not page.first(Tag.KIND, 0) & _COPY_OR_MASK), first)
    except CorruptImage:
        return first


def needs_following_pages(page: Directory, levels: tuple[tuple[int, int], ...]) -> bool:
    """Return True if the pages after the first one are its smaller copies."""
    return bool(levels) and Tag.SUB_DIRECTORIES not in page.entries


def needs_tifffile(page: Directory) -> bool:
    """Return True if libvips cannot decode the page, or decodes it to wrong pixels."""
    bits, compression = page.first(Tag.BITS, 1), page.first(Tag.COMPRESSION, 1)
    photometric = page.first(Tag.PHOTOMETRIC, BLACK_IS_LOWEST)
    eight_bit_lab = photometric == _CIELAB and bits == 8
    full_ycbcr = photometric == YCBCR and compression != JPEG and _subsampling(page) == "4:4:4"
    rare = bits in (12, 64) or compression in RARE_COMPRESSIONS or (compression == JPEG and bits != 8)
    beyond = _has_alpha_beyond_libvips(page) or _has_tiles_beyond_libvips(page)
    return has_planes(page) or eight_bit_lab or full_ycbcr or rare or beyond


def has_planes(page: Directory) -> bool:
    """Return True if the page stores its channels one after the other, and not interleaved."""
    return page.first(Tag.PLANES, 1) == _SEPARATE_PLANES and page.first(Tag.CHANNELS, 1) > 1


def is_icc_lab(page: Directory) -> bool:
    """Return True if Lab colors are encoded as in ICC profiles, with gray in the middle of the numbers."""
    return page.first(Tag.PHOTOMETRIC, BLACK_IS_LOWEST) == _ICCLAB


def white_is_lowest(page: Directory) -> bool:
    """Return True if the page is gray and stores white as its lowest value."""
    return page.first(Tag.PHOTOMETRIC, BLACK_IS_LOWEST) == WHITE_IS_LOWEST


def _has_alpha_beyond_libvips(page: Directory) -> bool:
    """Return True if libvips divides premultiplied colors wrongly, as if all samples ended at 255."""
    if PREMULTIPLIED not in page.numbers(Tag.EXTRA_CHANNELS, _MOST_CHANNELS):
        return False
    bits, kind = page.first(Tag.BITS, 1), page.first(Tag.SAMPLE_FORMAT, UNSIGNED)
    photometric = page.first(Tag.PHOTOMETRIC, BLACK_IS_LOWEST)
    if kind == REAL:
        return photometric != _RGB
    return kind == SIGNED or bits >= 32 or (photometric == _CMYK and bits == 16)


def _has_tiles_beyond_libvips(page: Directory) -> bool:
    """Return True if libvips would refuse the tiles as damaged, because of their bytes or their sides."""
    sides = _tile(page)
    size = math.prod(sides) * page.first(Tag.CHANNELS, 1) * page.first(Tag.BITS, 1) / 8
    beside = 2 * max(page.first(Tag.WIDTH, 0), page.first(Tag.HEIGHT, 0))
    most = min(_MOST_TILE_SIDE, math.ceil(beside / _STEP_OF_TILES) * _STEP_OF_TILES)
    return max(sides) > most or size > _MOST_TILE_BYTES


def _tile(page: Directory) -> tuple[int, int]:
    return page.first(Tag.TILE_WIDTH, 0), page.first(Tag.TILE_HEIGHT, 0)


def plain_lengths(page: Directory) -> Iterator[int]:
    """Yield the bytes of pixels in each strip or tile, neither compressed nor with halved colors.

    There are none if the height of strips is impossible.
    """
    channels = 1 if has_planes(page) else page.first(Tag.CHANNELS, 1)
    bits = channels * page.first(Tag.BITS, 1)
    across, down = _tile(page)
    if across and down:
        yield from itertools.repeat(math.ceil(across * bits / 8) * down)
    width, height = page.first(Tag.WIDTH, 0), page.first(Tag.HEIGHT, 0)
    down = page.first(Tag.ROWS_OF_STRIP, height)
    plane = (min(down, height - top) for top in range(0, height if down > 0 else 0, max(1, down)))
    yield from itertools.cycle(math.ceil(width * bits / 8) * rows for rows in plane)


def _check_samples(reader: HeaderReader, page: Directory, depth: int, channels: int) -> None:
    kind = page.first(Tag.SAMPLE_FORMAT, UNSIGNED)
    photometric = page.first(Tag.PHOTOMETRIC, 1)
    if has_planes(page) and photometric not in (*_PLAIN_PHOTOMETRICS, _CIELAB):
        raise reader.unsupported(
            "its colors are stored in separate planes; save it with interleaved channels"
        )
    premultiplied = PREMULTIPLIED in page.numbers(Tag.EXTRA_CHANNELS, _MOST_CHANNELS)
    by_hand = photometric == _CIELAB and (premultiplied or needs_tifffile(page))
    if (photometric == _ICCLAB or by_hand) and (channels != 3 or depth not in (8, 16) or kind != UNSIGNED):
        raise reader.unsupported(
            "its Lab colors have transparency or samples of another type than 8 or 16 bits; save it as RGB"
        )
    if len(set(page.numbers(Tag.BITS, _MOST_CHANNELS))) > 1:
        raise reader.unsupported("its channels have different numbers of bits; save it with 8 or 16 bits")
    narrow = channels == 1 and kind in (UNSIGNED, UNDEFINED) and depth in _BITS_OF_ONE_CHANNEL
    if not narrow and depth not in _BITS.get(kind, ()):
        name = {UNSIGNED: "unsigned", SIGNED: "signed", REAL: "floating-point"}.get(
            kind, "complex or unknown"
        )
        raise reader.unsupported(
            f"its {name} samples of {depth} bits are not supported; "
            "save it with unsigned samples of 8 or 16 bits"
        )


def _has_alpha(page: Directory, extra: int) -> bool:
    """Return True if an extra channel says that it is transparency, or if the only one says nothing."""
    if Tag.EXTRA_CHANNELS not in page.entries:
        return extra == 1
    kinds = page.numbers(Tag.EXTRA_CHANNELS, _MOST_CHANNELS)
    return any(kind in TRANSPARENT for kind in kinds)


def _subsampling(page: Directory) -> str | None:
    across, down = (*page.numbers(Tag.CHROMA_STEPS, 2), 2, 2)[:2]
    return _SUBSAMPLINGS.get((across, down))


def level(page: Directory, number: int) -> Directory:
    """Return the page of a smaller copy of a picture."""
    if Tag.SUB_DIRECTORIES in page.entries:
        return page.at(page.numbers(Tag.SUB_DIRECTORIES)[number])
    return next(itertools.islice(_following(page), number, None))


def _levels(page: Directory, full: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    """Return the sizes of a pyramid in later pages or in sub-directories. Return none if it is damaged."""
    try:
        inner = (page.at(offset) for offset in page.numbers(Tag.SUB_DIRECTORIES, _MOST_LEVELS))
        copies = inner if Tag.SUB_DIRECTORIES in page.entries else _following(page)
        return _pyramid(page, full, copies)
    except CorruptImage:
        return ()


def _has_more_pages(page: Directory) -> bool:
    """Return True if one of the next directories is a page, and no smaller copy or mask of one."""
    try:
        following = itertools.islice(_following(page), _MOST_COPIES)
        return any(not directory.first(Tag.KIND, 0) & _COPY_OR_MASK for directory in following)
    except CorruptImage:
        return False


def _following(page: Directory) -> Iterator[Directory]:
    while page.next:
        page = page.at(page.next)
        yield page


def _pyramid(
    page: Directory, full: tuple[int, int], copies: Iterable[Directory]
) -> tuple[tuple[int, int], ...]:
    """Return the sizes of the copies. Return none unless each is half the size of the previous one, rounded.

    Copies must be stored like the page, because the decoder of the page has to read them.
    """
    sizes: list[tuple[int, int]] = []
    for index, copy in enumerate(copies, start=1):
        size = copy.first(Tag.WIDTH, 0), copy.first(Tag.HEIGHT, 0)
        if copy.repeats or not _is_stored_alike(copy, page):
            return ()
        for side, full_side in zip(size, full, strict=True):
            if side < _SMALLEST_LEVEL or abs(side - (full_side >> index)) > _PYRAMID_TOLERANCE:
                return ()
        if index > _MOST_LEVELS:
            return ()
        sizes.append(size)
    return tuple(sizes)


def _is_stored_alike(copy: Directory, page: Directory) -> bool:
    """Return True if the decoder of the page can decode the copy, and gives samples of the same kind."""
    if needs_tifffile(copy) or needs_tifffile(page) or unsound_tags(copy):
        return False
    same_samples = all(
        copy.numbers(tag, _MOST_CHANNELS) == page.numbers(tag, _MOST_CHANNELS) for tag in _ALIKE
    )
    return copy.first(Tag.COMPRESSION, 1) in COMMON_COMPRESSIONS and same_samples
