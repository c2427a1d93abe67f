"""Sizes and positions as imagor and the thumbnails of libvips compute them: pure functions on numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs

from imgsvc_core.plan.geometry import Box, Size
from imgsvc_urls.dialects.building import half_up
from imgsvc_urls.dialects.imagor.path import Parts

LARGEST = 9999
"""The longest side of results."""

_JPEG_FACTORS = ((16, 8), (8, 4), (4, 2))
_LOW, _HIGH = ("left", "top"), ("right", "bottom")

Focal = tuple[float, float, float, float]
"""A rectangle that should stay visible: left, top, right and bottom."""


@attrs.frozen
class Layout:
    """Which part of the upright picture is scaled to which size, and what is kept of that.

    ``asked`` is the size that the filter ``fill`` goes by. If ``smart``, the window lies at the most
    interesting place. Both sides are multiplied by ``factor``, and rounded then. A JPEG is decoded at
    ``least_scale`` or larger.
    """

    part: Box
    scaled: Size
    window: Box
    asked: Size
    smart: bool = False
    factor: float | None = None
    least_scale: float = 1.0


@attrs.frozen(kw_only=True)
class How:
    """What filters and the source say about a layout."""

    stretch: bool
    upscale: bool
    in_full: bool  # nothing can be decoded at a smaller size
    focal: tuple[Focal, ...] = ()
    jpeg: bool = False


def layout(parts: Parts, size: Size, how: How) -> Layout:
    """Return the layout for a picture."""
    part = _cropped(parts, size)
    if (
        not how.in_full
        and parts.crop is None
        and parts.part is None
        and (found := _at_once(parts, size, how)) is not None
    ):
        scaled, factor, window = found
        asked = _asked(parts.width, parts.height, window.size, how)
        least = 1 / _jpeg_factor(min(size.width / scaled.width, size.height / scaled.height))
        return Layout(part, scaled, window, asked, parts.smart, factor, least)
    return _in_steps(parts, part, how)


def _cropped(parts: Parts, size: Size) -> Box:
    whole = Box(0, 0, *size)
    if parts.crop is None:
        return parts.part or whole
    left, top, right, bottom = parts.crop
    if left < 1 and top < 1 and right <= 1 and bottom <= 1:
        left, right = (half_up(share * size.width) for share in (left, right))
        top, bottom = (half_up(share * size.height) for share in (top, bottom))
    right = min(right or size.width - 1, size.width - 1)
    bottom = min(bottom or size.height - 1, size.height - 1)
    if right <= left or bottom <= top:
        return whole
    return Box(int(left), int(top), int(right - left), int(bottom - top))


def within(parts: Parts, trimmed: Box, size: Size) -> Parts:
    """Return the parts that ask for the same of what a trim has left of a picture of a size."""
    if parts.crop is None:
        return parts
    left, top = max(parts.crop[0], trimmed.left), max(parts.crop[1], trimmed.top)
    right = min(parts.crop[2] or trimmed.right, trimmed.right, size.width - 1)
    bottom = min(parts.crop[3] or trimmed.bottom, trimmed.bottom, size.height - 1)
    part = None
    if right > left and bottom > top:
        shifted = int(left - trimmed.left), int(top - trimmed.top)
        part = Box(*shifted, int(right - left), int(bottom - top))
    return attrs.evolve(parts, crop=None, part=part)


def _at_once(parts: Parts, size: Size, how: How) -> tuple[Size, float | None, Box] | None:
    """Return scaled size, factor and window if one thumbnail of libvips gives the result."""
    width, height, down = parts.width, parts.height, not how.upscale
    if not width and not height:
        return None
    if parts.fit_in or (not how.stretch and 0 in (width, height)):
        return _all(*_thumbnail(size, width or LARGEST, height or LARGEST, down=down, jpeg=how.jpeg))
    if how.stretch:
        return _all(Size(width, height)) if width and height else None
    aligned = [word for word in (parts.halign, parts.valign) if word not in ("", "center", "middle")]
    named = [word for word in (parts.halign, parts.valign) if word]
    if aligned and len(named) > 1 and not parts.smart:
        return None
    scaled, factor = _thumbnail(size, width, height, covers=True, down=down, jpeg=how.jpeg)
    kept = Size(min(width, scaled.width), min(height, scaled.height))
    return scaled, factor, _window(scaled, kept, aligned[0] if aligned else "center")


def _in_steps(parts: Parts, part: Box, how: How) -> Layout:
    """Return the layout of a picture that is decoded, cut and scaled, one after the other."""
    size, width, height = part.size, parts.width, parts.height
    ratio = size.width / size.height
    if parts.adaptive and width and height and (ratio > 1) != (width / height > 1):
        width, height = height, width
    asked = width, height = _asked(width, height, size, how)
    smaller = width < size.width or height < size.height
    scaled, factor, window = _all(size)
    if parts.fit_in:
        if parts.full:
            if ratio < width / height:
                height = math.ceil(width / ratio)
            else:
                width = math.ceil(height * ratio)
            asked = Size(width, height)
            smaller = width < size.width or height < size.height
        if how.upscale or smaller:
            scaled, factor, window = _all(*_thumbnail(size, width, height))
    elif how.stretch:
        if how.upscale or (width < size.width and height < size.height):
            scaled, factor, window = _all(Size(width, height))
    elif how.upscale or smaller:
        if how.focal:
            scaled, factor, window = _around(how.focal, part, Size(width, height))
            return Layout(part, scaled, window, Size(*asked), factor=factor)
        scaled, factor = _thumbnail(size, width, height, covers=True)
        word = parts.valign if width / height > ratio else parts.halign
        kept = Size(min(width, scaled.width), min(height, scaled.height))
        window = _window(scaled, kept, word)
        return Layout(part, scaled, window, Size(*asked), parts.smart, factor)
    return Layout(part, scaled, window, Size(*asked), factor=factor)


def _around(focal: Sequence[Focal], part: Box, size: Size) -> tuple[Size, float, Box]:
    """Return scaled size, factor and window around the weighted middle of rectangles."""
    weighted = [(area, (area[2] - area[0]) * (area[3] - area[1])) for area in focal]
    total = sum(weight for _, weight in weighted)
    x = sum((area[0] + area[2]) / 2 * weight for area, weight in weighted) / total
    y = sum((area[1] + area[3]) / 2 * weight for area, weight in weighted) / total
    wide = size.width / size.height > part.width / part.height
    bounds = (size.width, LARGEST) if wide else (LARGEST, size.height)
    scaled, factor = _thumbnail(part.size, *bounds)
    kept = Size(min(size.width, scaled.width), min(size.height, scaled.height))
    left = scaled.width * (x - part.left) / part.width - kept.width / 2
    top = scaled.height * (y - part.top) / part.height - kept.height / 2
    left = max(0, min(left, scaled.width - kept.width))
    top = max(0, min(top, scaled.height - kept.height))
    return scaled, factor, Box(int(left), int(top), *kept)


def _asked(width: int, height: int, size: Size, how: How) -> Size:
    """Return a requested size, with free sides by the aspect ratio of a picture."""
    if not width and not height:
        return size
    if not width:
        width = size.width * height // size.height
        width = width if how.upscale else min(width, size.width)
    elif not height:
        height = size.height * width // size.width
        height = height if how.upscale else min(height, size.height)
    return Size(max(1, width), max(1, height))


def _thumbnail(
    size: Size, width: int, height: int, *, covers: bool = False, down: bool = False, jpeg: bool = False
) -> tuple[Size, float]:
    """Return the size of a thumbnail of libvips before it is cropped, and the factor of its sides."""
    choose = min if covers else max
    factor = 1
    shrink = choose(size.width / width, size.height / height)
    if jpeg:
        factor = _jpeg_factor(shrink)
        size = Size(max(1, size.width // factor), max(1, size.height // factor))
        shrink = choose(size.width / width, size.height / height)
    if down:
        shrink = max(1.0, shrink)
    thumbnail = Size(*(max(1, half_up(side / min(shrink, side))) for side in size))
    return thumbnail, 1 / (factor * shrink)


def _jpeg_factor(shrink: float) -> int:
    """Return how many pixels of a JPEG libvips decodes as one."""
    return next((factor for least, factor in _JPEG_FACTORS if shrink >= least), 1)


def _window(scaled: Size, kept: Size, word: str) -> Box:
    across, down = scaled.width - kept.width, scaled.height - kept.height
    if word in _LOW:
        return Box(0, 0, *kept)
    if word in _HIGH:
        return Box(across, down, *kept)
    return Box(across // 2, down // 2, *kept)


def _all(size: Size, factor: float | None = None) -> tuple[Size, float | None, Box]:
    return size, factor, Box(0, 0, *size)
