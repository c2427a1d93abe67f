"""Encoding: what holds for the files of all formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import BinaryIO

import attrs
import pyvips

from imgsvc_core._runtime.deadline import check_time
from imgsvc_core._runtime.records import frozen
from imgsvc_core._runtime.vipsimage import PROFILE, bands_of, has, samples_of, size_of, space_of
from imgsvc_core.errors import BudgetUnreachable, OutputTooLarge, UnsupportedFormat, UnsupportedOperation
from imgsvc_core.formats import availability
from imgsvc_core.formats.boundary import encoding
from imgsvc_core.formats.format import Format, SavedFacts
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.metadata import apply_policy
from imgsvc_core.formats.raster import Raster
from imgsvc_core.formats.settings import SaveSettings
from imgsvc_core.formats.sink import Sink
from imgsvc_core.formats.table import by_name
from imgsvc_core.formats.vips import to_depth

_MOST_TRIES = 8
# Sizes fall by at most that much where the quality rises, but for files of some hundred bytes.
_LARGEST_DIP = 1.03
_GRAY_OR_RGB = ("b-w", "grey16", "srgb", "rgb", "rgb16")


@frozen
class Encoded:
    """A file that `save` made: its facts, and its bytes unless they went to a target.

    ``notes`` are sentences about what the format could not keep.
    """

    info: ImageInfo
    data: bytes | None
    notes: tuple[str, ...] = ()


def save(
    image: pyvips.Image | Raster,
    settings: SaveSettings,
    target: BinaryIO | None = None,
    *,
    digest: bool = False,
) -> Encoded:
    """Encode a gray or sRGB picture, upright, with straight alpha, into a binary file or into memory.

    Samples are rounded to the depth that the format keeps. Metadata follows ``settings.metadata``; a color
    profile always stays. With ``max_bytes`` the quality is lowered until the result fits. With ``digest`` the
    facts of a file that goes to a target have ``sha256``.

    Raises `UnsupportedOperation` for alpha, frames, color spaces or ``lossless`` in formats without them,
    `OutputTooLarge` beyond the longest side of the format, `BudgetUnreachable`, `MissingDependency`,
    `EncodingFailed`, `TargetError`; `CorruptImage` if damage is met while the picture is decoded.
    """
    row = by_name(settings.format)
    if row is None or row.writer is None:
        raise UnsupportedFormat(f"Images of the format '{settings.format}' cannot be written.")
    availability.writer_backend(row.name)
    quality = settings.quality
    if (
        quality is None or row.quality is None or settings.lossless
    ):  # lossless WebP would take quality for effort
        quality = row.quality
    if (settings.format, settings.quality) != (row.name, quality):
        settings = attrs.evolve(settings, format=row.name, quality=quality)
    sink = Sink(target, digest=digest and target is not None)
    if isinstance(image, Raster):
        if row.encodes_arrays and settings.max_bytes is None:
            height, width, bands = image.pixels.shape
            _check_sides(width, height, row)
            space = "gray" if bands < 3 else "srgb"
            known: SavedFacts = {"width": width, "height": height, "colorspace": space, "alpha": image.alpha}
            with encoding(row.name):
                facts = row.save(image, settings, sink)
            return _encoded(row, settings, known | facts, sink)
        image = image.to_vips()
    _check(image, row, settings)
    prepared = to_depth(
        apply_policy(image, settings.metadata, redacted=settings.redacted),
        min(row.depth, settings.depth or row.depth),
    )
    with encoding(row.name, image):
        if settings.max_bytes is None:
            facts = row.save(prepared, settings, sink)
        else:
            held = prepared.copy_memory()
            facts, quality = _write_within(settings.max_bytes, held, row, settings, sink)
            settings = attrs.evolve(settings, quality=quality)
    width, height = size_of(prepared)
    page = prepared.get_page_height()
    usual: SavedFacts = {
        "width": width, "height": page, "colorspace": "gray" if bands_of(prepared) < 3 else "srgb",
        "depth": 16 if samples_of(prepared) == "ushort" else 8, "alpha": bool(prepared.hasalpha()),
        "frames": height // page, "profile": "profile" in row.metadata and has(prepared, PROFILE),
    }  # fmt: skip
    return _encoded(row, settings, usual | facts, sink)


def _encoded(row: type[Format], settings: SaveSettings, facts: SavedFacts, sink: Sink) -> Encoded:
    quality = None if settings.lossless else settings.quality
    info = ImageInfo(format=row.name, bytes=sink.size, sha256=sink.sha256, quality=quality, **facts)
    return Encoded(info, sink.data if sink.in_memory else None, tuple(sink.notes))


def _write_within(
    max_bytes: int, image: pyvips.Image, row: type[Format], settings: SaveSettings, sink: Sink
) -> tuple[SavedFacts, int | None]:
    """Write the picture in the highest quality that fits into ``max_bytes``, and return that quality.

    A ladder of qualities ends with one that is taken in any case.
    """
    facts: dict[int | None, SavedFacts] = {}

    def encode(quality: int | None) -> bytes:
        check_time()
        memory = Sink()
        facts[quality] = row.save(image, attrs.evolve(settings, quality=quality), memory)
        sink.notes = memory.notes
        return memory.data

    quality = settings.quality
    if settings.ladder and not settings.lossless:
        for quality in settings.ladder:
            data = encode(quality)
            if len(data) <= max_bytes:
                break
    elif quality is None or settings.lossless:
        data = encode(quality)
        if len(data) > max_bytes:
            raise unreachable(len(data), max_bytes)
    else:
        data, quality = best_fitting(encode, quality, max_bytes)
    sink.write(data)
    return facts[quality], quality


def _check(image: pyvips.Image, row: type[Format], settings: SaveSettings) -> None:
    """Raise an error if the format cannot hold the picture or do what is asked."""
    if settings.lossless and not row.lossless:
        raise UnsupportedOperation(f"{row.title} cannot be lossless; use png, webp, avif, jxl or jp2.")
    space = space_of(image)
    if space not in _GRAY_OR_RGB:
        raise UnsupportedOperation(
            f"{row.title} takes gray or sRGB pictures; got '{space}': convert it first."
        )
    if image.hasalpha() and not row.alpha:
        raise UnsupportedOperation(
            f"{row.title} has no transparency; flatten the picture on a background first."
        )
    (width, total), height = size_of(image), image.get_page_height()
    if total > height and not row.animation:
        raise UnsupportedOperation(f"{row.title} holds one frame; got {total // height}: choose one of them.")
    _check_sides(width, height, row)


def _check_sides(width: int, height: int, row: type[Format]) -> None:
    if max(width, height) > row.max_side:
        raise OutputTooLarge(
            f"{row.title} holds at most {row.max_side:,} pixels on a side; got {width:,} x {height:,}."
        )


def best_fitting(encode: Callable[[int], bytes], highest: int, max_bytes: int) -> tuple[bytes, int]:
    """Return the encoding of at most ``max_bytes`` bytes with the highest quality, and that quality.

    A binary search of at most eight encodings finds it if sizes grow with the quality. Tries that are left go
    to higher qualities, where small and flat pictures may be smaller again.

    Raises:
        BudgetUnreachable: nothing that was tried fits.
    """
    sizes: dict[int, int] = {}
    best, found = b"", 0
    while len(sizes) < _MOST_TRIES and (quality := _next_quality(sizes, highest, max_bytes)) is not None:
        encoded = encode(quality)
        sizes[quality] = len(encoded)
        if len(encoded) <= max_bytes and quality > found:
            best, found = encoded, quality
    if not found:
        raise unreachable(min(sizes.values()), max_bytes)
    return best, found


def _next_quality(sizes: Mapping[int, int], highest: int, max_bytes: int) -> int | None:
    """Return the quality to try next, by the sizes of those that were tried, or None if none is left."""
    if not sizes:
        return highest
    fitting = max((quality for quality, size in sizes.items() if size <= max_bytes), default=0)
    too_large = min((quality for quality in sizes if quality > fitting), default=None)
    if too_large is None:
        return None
    if too_large - fitting > 1:
        return (fitting + too_large) // 2
    expected = {
        quality: _expected_size(sizes, quality)
        for quality in range(highest - 1, too_large, -1)
        if quality not in sizes
    }
    quality = min(expected, key=expected.__getitem__, default=None)
    return quality if quality is not None and expected[quality] <= _LARGEST_DIP * max_bytes else None


def _expected_size(sizes: Mapping[int, int], quality: int) -> float:
    """Return the size on the line between the nearest qualities that were tried."""
    low = max(tried for tried in sizes if tried < quality)
    high = min(tried for tried in sizes if tried > quality)
    return sizes[low] + (sizes[high] - sizes[low]) * (quality - low) / (high - low)


def unreachable(smallest: int, max_bytes: int) -> BudgetUnreachable:
    """Return the error that says how small the picture gets."""
    return BudgetUnreachable(
        f"The picture does not fit into {max_bytes} bytes: the smallest it gets is {smallest} bytes.",
        smallest=smallest,
    )
