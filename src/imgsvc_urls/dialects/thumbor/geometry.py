"""Sizes and positions as thumbor computes them: pure functions on numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import attrs

from imgsvc_core.plan.geometry import Box, Size
from imgsvc_urls.dialects.thumbor.path import Parts

_ALIGNMENTS = {"left": 0.0, "top": 0.0, "center": 0.5, "middle": 0.5, "right": 1.0, "bottom": 1.0}


@attrs.frozen
class Layout:
    """Which part of the upright picture is kept, to which size it is scaled, and the size that was asked for.

    ``cropped`` is the part that the URL cuts out by its coordinates. Free sides of ``asked`` are 0.
    """

    cropped: Box
    part: Box
    size: Size
    asked: Size


@attrs.frozen
class FocalArea:
    """A rectangle of the upright picture that should stay visible."""

    left: int
    top: int
    right: int
    bottom: int
    origin: str = "Explicit"

    @property
    def width(self) -> int:
        """Its width."""
        return self.right - self.left

    @property
    def height(self) -> int:
        """Its height."""
        return self.bottom - self.top

    @property
    def center(self) -> tuple[int, int]:
        """Its middle, in whole pixels."""
        return (self.left + (self.right - self.left) // 2, self.top + (self.bottom - self.top) // 2)


@attrs.frozen
class FocalPoint:
    """A point of the cropped picture that should stay visible, and the area around it."""

    x: int
    y: int
    width: int = 1
    height: int = 1
    origin: str = "alignment"

    @property
    def weight(self) -> int:
        """How much it counts: the pixels of its area."""
        return self.width * self.height

    def moved(self, across: int, down: int) -> FocalPoint:
        """Return the point as seen from another corner."""
        return attrs.evolve(self, x=self.x + across, y=self.y + down)


def layout(
    parts: Parts, size: Size, *, stretch: bool, largest: Size | None, focal: Sequence[FocalArea]
) -> Layout:
    """Return the layout for a picture.

    Args:
        parts: the parts of the URL.
        size: the upright size of the picture.
        stretch: whether the aspect ratio may change.
        largest: the largest size, if there is one.
        focal: what should stay visible.
    """
    cropped = _cropped(parts, size)
    width, height = (
        side if asked is None else min(asked, most) if most else asked
        for asked, side, most in zip(
            (parts.width, parts.height), cropped.size, largest or (None, None), strict=True
        )
    )
    target = _target(width, height, cropped.size)
    if parts.fit_in:
        if parts.adaptive and _other_orientation(cropped.size, target):
            target = Size(target.height, target.width)
            width, height = (  # what is as large as the picture stays so when sides are swapped
                cropped.width if parts.height is None else height,
                cropped.height if parts.width is None else width,
            )
        inside = _inside(cropped.size, target, full=parts.full)
        if inside != cropped.size or parts.full:
            width, height = max(width, inside.width), max(height, inside.height)
        return Layout(cropped, cropped, inside, Size(width, height))
    part = cropped if stretch else _covering(parts, cropped, target, focal)
    return Layout(cropped, part, target, Size(width, height))


def mirrored(box: Box, size: Size, flip: tuple[bool, bool]) -> Box:
    """Return where a part lies after mirroring the picture."""
    horizontal, vertical = flip
    return box._replace(
        left=size.width - box.left - box.width if horizontal else box.left,
        top=size.height - box.top - box.height if vertical else box.top,
    )


def upscaled(size: Size, asked: Size) -> Size:
    """Return the size that the filter ``upscale`` leads to."""
    if size.width >= asked.width or size.height >= asked.height:
        return size
    if size.width / asked.width >= size.height / asked.height:
        return Size(asked.width, max(1, size.height * asked.width // size.width))
    return Size(max(1, size.width * asked.height // size.height), asked.height)


def proportional(size: Size, factor: float) -> Size:
    """Return the size that the filter ``proportion`` leads to."""
    if not 0 < factor <= 1 or min(size) * factor < 1:
        return size
    return Size(int(size.width * factor), int(size.height * factor))


def is_cut(parts: Parts, cropped: Box) -> bool:
    """Return True if coordinates name a part of the picture, which may be all of it. Empty ones do not."""
    if parts.crop is None:
        return False
    left, top, right, bottom = parts.crop
    return max(0, left) < min(right, cropped.right) and max(0, top) < min(bottom, cropped.bottom)


def _cropped(parts: Parts, size: Size) -> Box:
    whole = Box(0, 0, *size)
    if parts.crop is None:
        return whole
    left, top, right, bottom = (
        max(0, min(value, side)) for value, side in zip(parts.crop, (*size, *size), strict=True)
    )
    return Box(left, top, right - left, bottom - top) if left < right and top < bottom else whole


def _target(width: int, height: int, size: Size) -> Size:
    if not width and not height:
        return size
    return Size(
        max(1, width or round(height * size.width / size.height)),
        max(1, height or round(width * size.height / size.width)),
    )


def _other_orientation(size: Size, target: Size) -> bool:
    return (size.width < size.height and target.width > target.height) or (
        size.width > size.height and target.width < target.height
    )


def _inside(size: Size, target: Size, *, full: bool) -> Size:
    """Return the size that fits into the target, or with ``full`` covers it."""
    if not full and target.width >= size.width and target.height >= size.height:
        return size
    if (size.width * target.height >= size.height * target.width) is not full:
        return Size(target.width, max(1, round(size.height * target.width / size.width + 1e-5)))
    return Size(max(1, round(size.width * target.height / size.height + 1e-5)), target.height)


def _covering(parts: Parts, cropped: Box, target: Size, focal: Sequence[FocalArea]) -> Box:
    """Return the largest part with the aspect ratio of the target, around the focal point."""
    size = cropped.size
    if round(size.width / size.height, 2) == round(target.width / target.height, 2):
        return cropped
    if target.width / size.width > target.height / size.height:
        part = Size(size.width, max(1, round(size.width * target.height / target.width)))
    else:
        part = Size(max(1, math.ceil(target.width * size.height / target.height)), size.height)
    part = Size(min(part.width, size.width), min(part.height, size.height))
    x, y = _focal_point(parts, cropped, focal)
    left = round(min(max(x - part.width / 2, 0.0), size.width - part.width))
    top = round(min(max(y - part.height / 2, 0.0), size.height - part.height))
    return Box(cropped.left + left, cropped.top + top, *part)


def _focal_point(parts: Parts, cropped: Box, focal: Sequence[FocalArea]) -> tuple[int, int]:
    """Return the weighted middle of the focal points."""
    points = focal_points(parts, cropped, focal)
    weight = sum(point.weight for point in points)
    return (
        sum(point.x * point.weight for point in points) // weight,
        sum(point.y * point.weight for point in points) // weight,
    )


def focal_points(parts: Parts, cropped: Box, focal: Iterable[FocalArea]) -> list[FocalPoint]:
    """Return the middles of the focal areas in the cropped part, or the point that the alignment names."""
    points = [FocalPoint(*area.center, area.width, area.height, area.origin) for area in focal]
    if is_cut(parts, cropped):
        moved = (point.moved(-cropped.left, -cropped.top) for point in points)
        points = [
            point for point in moved if 0 <= point.x <= cropped.width and 0 <= point.y <= cropped.height
        ]
    x, y = int(cropped.width * _ALIGNMENTS[parts.halign]), int(cropped.height * _ALIGNMENTS[parts.valign])
    return points or [FocalPoint(x, y)]
