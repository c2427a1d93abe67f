"""TIFF and BigTIFF: the first page, and the smaller copies that a pyramid holds (TIFF 6.0)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from imgsvc_core.codecs.headers.directory import (
    Directory,
    Layout,
    read_directory,
    read_layout,
    valid_orientation,
)
from imgsvc_core.codecs.headers.reader import HeaderReader
from imgsvc_core.errors import CorruptImage
from imgsvc_core.info import ImageInfo

_WIDTH, _HEIGHT, _BITS, _PHOTOMETRIC = 256, 257, 258, 262
_CHANNELS, _EXTRA_CHANNELS, _SUB_DIRECTORIES = 277, 338, 330
_CHROMA_STEPS, _PROFILE = 530, 34675
_YCBCR = 6
_COLOR_SPACES = {
    0: "gray", 1: "gray", 2: "srgb", 3: "palette", 5: "cmyk", _YCBCR: "srgb", 8: "lab", 9: "lab", 10: "lab",
    32844: "gray", 32845: "srgb",
}  # fmt: skip
_COLORS = {"gray": 1, "palette": 1, "srgb": 3, "cmyk": 4, "lab": 3}
_SUBSAMPLINGS = {(1, 1): "4:4:4", (2, 1): "4:2:2", (2, 2): "4:2:0", (1, 2): "4:4:0", (4, 1): "4:1:1"}
_PYRAMID_TOLERANCE = 5
_SMALLEST_LEVEL = 2
_MOST_LEVELS = 32


def read_info(reader: HeaderReader) -> ImageInfo:
    """Facts of the first page, in its stored size, before its orientation.

    A TIFF of many pages is a document and not an animation: ``frames`` is 1, and only the first page is read.
    """
    layout = read_layout(reader)
    page = read_directory(reader, layout, layout.first)
    width, height = page.first(_WIDTH, 0), page.first(_HEIGHT, 0)
    reader.check_size(width, height)
    photometric = page.first(_PHOTOMETRIC, 1)
    if photometric not in _COLOR_SPACES:
        raise reader.unsupported(
            f"its photometric interpretation {photometric} is not supported; save it as RGB"
        )
    colorspace = _COLOR_SPACES[photometric]
    depth = max(page.tags.get(_BITS) or (1,))
    channels = page.first(_CHANNELS, 1)
    if not 1 <= depth <= 64 or channels < 1:
        raise reader.corrupt(f"its {channels} channels of {depth} bits are impossible")
    return ImageInfo(
        format="tiff",
        width=width,
        height=height,
        colorspace=colorspace,
        subsample=_subsampling(page) if photometric == _YCBCR else None,
        depth=8 if colorspace == "palette" else depth,
        bytes=reader.size,
        alpha=_has_alpha(page, channels - _COLORS[colorspace]),
        orientation=valid_orientation(page),
        profile=_PROFILE in page.tags,
        levels=_levels(reader, layout, page, (width, height)),
    )


def _has_alpha(page: Directory, extra: int) -> bool:
    """Extra channels are transparency where they say so, and a single one that says nothing."""
    kinds = page.tags.get(_EXTRA_CHANNELS)
    return extra == 1 if kinds is None else 1 in kinds or 2 in kinds


def _subsampling(page: Directory) -> str | None:
    across, down = (*(page.tags.get(_CHROMA_STEPS) or ()), 2, 2)[:2]
    return _SUBSAMPLINGS.get((across, down))


def _levels(
    reader: HeaderReader, layout: Layout, page: Directory, full: tuple[int, int]
) -> tuple[tuple[int, int], ...]:
    """Sizes of a pyramid, kept as following pages or as sub-directories of the first; none where damaged."""
    try:
        return _pyramid(full, _following(reader, layout, page)) or _pyramid(
            full, (read_directory(reader, layout, offset) for offset in page.tags.get(_SUB_DIRECTORIES, ()))
        )
    except CorruptImage:
        return ()


def _following(reader: HeaderReader, layout: Layout, page: Directory) -> Iterator[Directory]:
    while page.next:
        page = read_directory(reader, layout, page.next)
        yield page


def _pyramid(full: tuple[int, int], pages: Iterable[Directory]) -> tuple[tuple[int, int], ...]:
    """The sizes of the pages, if each is half as large as the one before, give or take rounding."""
    sizes: list[tuple[int, int]] = []
    for index, page in enumerate(pages, start=1):
        size = page.first(_WIDTH, 0), page.first(_HEIGHT, 0)
        for side, full_side in zip(size, full, strict=True):
            if side < _SMALLEST_LEVEL or abs(side - (full_side >> index)) > _PYRAMID_TOLERANCE:
                return ()
        if index > _MOST_LEVELS:
            return ()
        sizes.append(size)
    return tuple(sizes)
