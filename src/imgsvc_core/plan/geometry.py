"""Sizes and positions: pure functions on whole numbers of pixels."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

from imgsvc_core.spec import Canvas, Resize, Scale, Trim

_MORE = 64  # pixels more for each wanted one: those at the ends move by 1/256 of a pixel at most
_MOST_SKIPPED = 15
_LEFT_OVER = 0.245  # of a pixel of the result, at each end


class Size(NamedTuple):
    """Width and height in pixels, at least 1 each."""

    width: int
    height: int


class Box(NamedTuple):
    """A rectangle in pixels, from the top left corner of a picture."""

    left: int
    top: int
    width: int
    height: int

    @property
    def size(self) -> Size:
        """Width and height."""
        return Size(self.width, self.height)

    @property
    def right(self) -> int:
        """Return the first column to the right of the rectangle."""
        return self.left + self.width

    @property
    def bottom(self) -> int:
        """Return the first row below the rectangle."""
        return self.top + self.height

    def shifted(self, across: int, down: int) -> Box:
        """Return the rectangle moved to the right and down."""
        return self._replace(left=self.left + across, top=self.top + down)

    def holds(self, other: Box) -> bool:
        """Return True if all of another rectangle lies in this one."""
        return (
            self.left <= other.left
            and self.top <= other.top
            and other.right <= self.right
            and other.bottom <= self.bottom
        )


class Area(NamedTuple):
    """Where a frame lies on pixels that a decoder has scaled down: a rectangle that may end within pixels."""

    left: float
    top: float
    width: float
    height: float


class Stretch(NamedTuple):
    """How a side of an area is resampled: the pixels taken, and the factor, above 1 if it becomes smaller.

    The first pixel may lie before the row, and the last beyond it. Of the ``made`` pixels, the wanted ones
    come after ``skipped`` ones; the others are never computed.
    """

    first: int
    taken: int
    factor: float
    made: int
    skipped: int = 0


class Placement(NamedTuple):
    """The sizes of a resize: scale to ``scaled``, then cut or pad to ``final``."""

    scaled: Size
    final: Size


def resized(size: Size, resize: Resize) -> Placement:
    """Return the sizes that a `Resize` leads to."""
    if resize.mode == "auto":
        scaled = _at_least(_inside(size, resize.width, resize.height, upscale=resize.upscale), size, resize)
        width, height = resize.width or scaled.width, resize.height or scaled.height
        return Placement(scaled, Size(min(scaled.width, width), min(scaled.height, height)))
    assert resize.width is not None
    assert resize.height is not None
    box = Size(resize.width, resize.height)
    if resize.mode == "fill":
        return Placement(_inside(size, *box, upscale=resize.upscale), box)
    if resize.mode == "fit":
        scaled = _at_least(_covering(size, box, upscale=resize.upscale), size, resize)
        return Placement(scaled, _smaller(scaled, box))
    stretched = box if resize.upscale else _smaller(size, box)
    return Placement(stretched, stretched)


def scaled(size: Size, scale: Scale) -> Size:
    """Return the size that a `Scale` leads to."""
    width = _pixels(size.width * scale.size)
    height = size.height * scale.size if scale.ratio is None else width * scale.ratio
    return Size(width, _pixels(height))


def rotated(size: Size, angle: float) -> Size:
    """Return the size of the upright frame around a picture turned by any angle in degrees."""
    cosine, sine = abs(math.cos(math.radians(angle))), abs(math.sin(math.radians(angle)))
    width = size.width * cosine + size.height * sine
    height = size.width * sine + size.height * cosine
    return Size(_pixels(width), _pixels(height))


def inscribed(size: Size, angle: float) -> Box:
    """Return the largest upright rectangle that a picture turned by any angle fills, in the frame around it.

    Pixels at its edges are left out, since the turn mixes them with what lies around the picture.
    """
    frame = rotated(size, angle)
    sine, cosine = abs(math.sin(math.radians(angle))), abs(math.cos(math.radians(angle)))
    longer, shorter = max(size), min(size)
    if shorter <= 2 * sine * cosine * longer:  # two corners lie on the long sides, at half of the short one
        across, down = shorter / 2 / sine, shorter / 2 / cosine
        if size.width < size.height:
            across, down = down, across
    else:
        double = cosine**2 - sine**2
        across = (size.width * cosine - size.height * sine) / double
        down = (size.height * cosine - size.width * sine) / double
    inner = Size(max(1, math.floor(across) - 2), max(1, math.floor(down) - 2))
    return Box((frame.width - inner.width) // 2, (frame.height - inner.height) // 2, *inner)


def covering(size: Size, frame: Size) -> Area:
    """Return the part of a picture, in its middle, that covers a frame when it is scaled."""
    scale = min(size.width / frame.width, size.height / frame.height)
    across, down = frame.width * scale, frame.height * scale
    return Area((size.width - across) / 2, (size.height - down) / 2, across, down)


def largest_of_ratio(size: Size, ratio: tuple[float, float]) -> Size:
    """Return the size of the largest part of a picture that has an aspect ratio, width to height."""
    across, down = ratio
    if size.width * down > size.height * across:
        return Size(min(size.width, _pixels(size.height * across / down)), size.height)
    return Size(size.width, min(size.height, _pixels(size.width * down / across)))


def extended(size: Size, canvas: Canvas) -> Size:
    """Return the size that a `Canvas` leads to."""
    width, height = max(size.width, canvas.width or 0), max(size.height, canvas.height or 0)
    across, down = canvas.ratio or (width, height)
    if width * down < height * across:
        return Size(_pixels(height * across / down), height)
    return Size(width, _pixels(width * down / across))


def symmetric(box: Box, size: Size, trim: Trim) -> Box:
    """Return the part of a picture that a `Trim` keeps if its borders enclose ``box``."""
    left, top, right, bottom = box.left, box.top, size.width - box.right, size.height - box.bottom
    if trim.symmetric in ("horizontal", "both"):
        left = right = min(left, right)
    if trim.symmetric in ("vertical", "both"):
        top = bottom = min(top, bottom)
    return Box(left, top, size.width - left - right, size.height - top - bottom)


def clipped(size: Size, left: int, top: int, width: int, height: int) -> Box | None:
    """Return the part of a rectangle that lies inside a picture, or None if it lies outside."""
    right, bottom = min(left + width, size.width), min(top + height, size.height)
    left, top = max(left, 0), max(top, 0)
    return Box(left, top, right - left, bottom - top) if right > left and bottom > top else None


@functools.lru_cache(maxsize=256)
def stretch(start: float, length: float, want: int) -> Stretch:
    """Return how a stretch of a row, which may start and end within pixels, becomes ``want`` pixels.

    A stretch whose length differs from the result by less than a pixel is not resampled, so it stays sharp.
    """
    if abs(length - want) < 1:
        return Stretch(round(start), want, 1.0, want)
    if length < want:
        first = round(start)
        count = max(1, round(start + length) - first)
        return Stretch(first, count, count / want, count)
    if start % 1 == length % 1 == 0:
        return Stretch(int(start), int(length), length / want, want)
    return _reduced(start, length / want, want)


def _reduced(start: float, factor: float, want: int) -> Stretch:
    """Return how a stretch that starts or ends within pixels is reduced.

    libvips keeps the middle of a row in the middle, so it must be that of whole pixels. Many more pixels
    beyond the end bring it there by a factor that is hardly another one. Some before the start let it begin
    near the edge of a pixel: where half a pixel of the result is left over, libvips makes one more.
    """
    starts = [start - count * factor for count in range(_MOST_SKIPPED + 1)]
    before = min(starts, key=lambda place: abs(place - round(place)))
    skipped, first = starts.index(before), round(before)
    left_over = min(max(before - first, -_LEFT_OVER * factor), _LEFT_OVER * factor)
    made = 2 * skipped + (_MORE + 1) * want
    taken = round(made * factor + 2 * left_over)
    middle = first + left_over + (skipped + want / 2) * factor
    return Stretch(first, taken, (first + taken / 2 - middle) / (_MORE * want / 2), made, skipped)


def around(center: tuple[float, float], inner: Size, outer: Size) -> tuple[int, int]:
    """Return left and top of a part that is centered on a point as far as it stays within the picture."""
    left, top = (
        min(max(round(middle - part / 2), 0), whole - part)
        for middle, part, whole in zip(center, inner, outer, strict=True)
    )
    return left, top


def _inside(size: Size, width: int | None, height: int | None, *, upscale: bool) -> Size:
    """Return the largest size of the same aspect ratio within the box. A side of None is not limited."""
    if width is None and height is None:
        return size
    across = math.inf if width is None else width / size.width
    down = math.inf if height is None else height / size.height
    if not upscale and min(across, down) >= 1:
        return size
    if across <= down:
        assert width is not None
        return Size(width, _pixels(size.height * width / size.width))
    assert height is not None
    return Size(_pixels(size.width * height / size.height), height)


def _at_least(scaled: Size, size: Size, resize: Resize) -> Size:
    """Return the size that a picture is scaled to, or a larger one with the smallest allowed sides."""
    least = resize.min_width or 0, resize.min_height or 0
    if scaled.width >= least[0] and scaled.height >= least[1]:
        return scaled
    return _covering(size, least, upscale=True)


def _covering(size: Size, box: tuple[int, int], *, upscale: bool) -> Size:
    """Return the smallest size of the same aspect that covers the box."""
    width, height = box
    across, down = width / size.width, height / size.height
    if not upscale and max(across, down) >= 1:
        return size
    if across >= down:
        return Size(width, max(height, _pixels(size.height * width / size.width)))
    return Size(max(width, _pixels(size.width * height / size.height)), height)


def _smaller(first: Size, second: Size) -> Size:
    return Size(min(first.width, second.width), min(first.height, second.height))


def _pixels(length: float) -> int:
    """Return the nearest whole number of pixels, halves rounded up, and at least one."""
    return max(1, math.floor(length + 0.5))


def scaled_box(box: Box, across: float, down: float) -> Box:
    """Return the place of a rectangle after its picture is resampled."""
    return Box(
        round(box.left * across),
        round(box.top * down),
        _pixels(box.width * across),
        _pixels(box.height * down),
    )


def rotated_box(box: Box, size: Size, frame: Size, angle: float) -> Box:
    """Return the place of a rectangle after its picture is rotated. Its center moves, and its size stays."""
    cosine, sine = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    across = box.left + box.width / 2 - size.width / 2
    down = box.top + box.height / 2 - size.height / 2
    center = (
        cosine * across - sine * down + frame.width / 2,
        sine * across + cosine * down + frame.height / 2,
    )
    return box._replace(left=round(center[0] - box.width / 2), top=round(center[1] - box.height / 2))
