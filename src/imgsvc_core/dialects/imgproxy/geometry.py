"""Sizes and positions as imgproxy computes them: pure functions on numbers."""

from __future__ import annotations

import math

import attrs

from imgsvc_core.dialects.imgproxy.options import Extend, Gravity, Options
from imgsvc_core.plan.geometry import Box, Size


@attrs.frozen
class Layout:
    """Which part of the turned picture is kept, and to which size it is scaled.

    ``crop`` is cut out first, then scaled to ``scaled``, of which ``window`` is kept. ``margins`` are the
    extension of the canvas and the padding at the top, right, bottom and left. ``dpr`` is the pixel density
    that was reached.
    """

    crop: Box
    scaled: Size
    window: Box
    margins: tuple[int, int, int, int]
    dpr: float

    @property
    def canvas(self) -> Size:
        """The size of the result."""
        top, right, bottom, left = self.margins
        return Size(self.window.width + left + right, self.window.height + top + bottom)


def layout(options: Options, size: Size, *, vector: bool = False) -> Layout:
    """Return the layout for a picture.

    Args:
        options: the options of the URL.
        size: the size of the picture after its EXIF orientation and the rotation.
        vector: whether the picture is a drawing, which may always be enlarged.
    """
    cropped = _cropped(options, size)
    crop = placed(size, cropped, options.crop_gravity or options.gravity, 1.0)
    across, down, dpr = _scale(options, cropped, vector=vector)
    found = _laid_out(options, crop, across, down, dpr)
    excess = max(found.canvas) / (options.max_result_dimension or math.inf)
    if excess <= 1:
        return found
    across, down = max(across / excess, 1 / cropped.width), max(down / excess, 1 / cropped.height)
    return _laid_out(options, crop, across, down, dpr / excess)


def _laid_out(options: Options, crop: Box, across: float, down: float, dpr: float) -> Layout:
    """Return the layout for a part of a picture, the factors of its sides and a pixel density."""
    cropped = crop.size
    scaled = Size(_rounded(cropped.width * across), _rounded(cropped.height * down))
    target = _target(options, dpr)
    window = placed(scaled, _kept(options, scaled, target), options.gravity, dpr)
    margins = (0, 0, 0, 0)
    if options.extend.enabled:
        margins = _extended(margins, window.size, target, options.extend, dpr)
    if options.extend_aspect_ratio.enabled and 0 not in target:
        inner = _grown(window.size, margins)
        outer = _of_ratio(window.size, target)
        margins = _extended(margins, inner, outer, options.extend_aspect_ratio, dpr)
    top, right, bottom, left = (
        margin + round(side * dpr) for margin, side in zip(margins, options.padding, strict=True)
    )
    return Layout(crop, scaled, window, (top, right, bottom, left), dpr)


def placed(outer: Size, inner: Size, gravity: Gravity, dpr: float) -> Box:
    """Return where a smaller rectangle lies within a larger one."""
    left, top = position(outer, inner, gravity, dpr)
    return Box(
        max(0, min(left, outer.width - inner.width)),
        max(0, min(top, outer.height - inner.height)),
        *inner,
    )


def position(outer: Size, inner: Size, gravity: Gravity, dpr: float) -> tuple[int, int]:
    """Return left and top of a rectangle on another, which it may leave."""
    if gravity.type == "fp":
        return (
            round(outer.width * gravity.x) - inner.width // 2,
            round(outer.height * gravity.y) - inner.height // 2,
        )
    across, down = outer.width - inner.width, outer.height - inner.height
    x, y = offset(gravity.x, outer.width, dpr), offset(gravity.y, outer.height, dpr)
    left = x if "we" in gravity.type else across - x if "ea" in gravity.type else round((across + 1) / 2) + x
    top = y if "no" in gravity.type else down - y if "so" in gravity.type else round((down + 1) / 2) + y
    return left, top


def offset(value: float, side: int, dpr: float) -> int:
    """Return an offset of gravity in pixels; values below 1 are shares of the side."""
    return round(value * dpr) if abs(value) >= 1 else round(side * value)


def _cropped(options: Options, size: Size) -> Size:
    width, height = (
        side if not asked else min(side, int(asked) if asked >= 1 else max(1, _half_up(side * asked)))
        for asked, side in zip(options.crop, size, strict=True)
    )
    pro = options.pro
    return _of_crop_ratio(Size(width, height), size, pro.crop_ratio, enlarges=pro.crop_enlarges)


def _of_crop_ratio(area: Size, size: Size, ratio: float, *, enlarges: bool) -> Size:
    """Return the size of a part of a picture with its aspect ratio corrected, if there is one to match."""
    if not ratio:
        return area
    width, height = map(float, area)
    if (width > height * ratio) is enlarges:
        height = width / ratio
    else:
        width = height * ratio
    excess = max(1.0, width / size.width, height / size.height)
    return Size(_rounded(width / excess), _rounded(height / excess))


def _scale(options: Options, size: Size, *, vector: bool) -> tuple[float, float, float]:
    """Return the factors of width and height, and the pixel density that is reached."""
    across = size.width / (options.width or size.width)
    down = size.height / (options.height or size.height)
    if (across, down) != (1, 1):
        kind = _resizing_type(options, size)
        if options.width == 0 and kind != "force":
            across = down
        elif options.height == 0 and kind != "force":
            down = across
        elif kind == "fit":
            across = down = max(across, down)
        elif kind in ("fill", "fill-down"):
            across = down = min(across, down)
    across, down = across / options.zoom[0], down / options.zoom[1]
    dpr = options.dpr
    if not options.enlarge and not vector:
        least = min(across, down)
        if least < 1:
            across, down = across / least, down / least
            dpr = dpr if options.extend.enabled else dpr / least
        dpr = min(dpr, across, down)
    if options.min_width and (least := size.width / options.min_width) < across:
        across, down = least, down * least / across
    if options.min_height and (least := size.height / options.min_height) < down:
        across, down = across * least / down, least
    across, down = min(across / dpr, size.width), min(down / dpr, size.height)
    return 1 / across, 1 / down, dpr


def _resizing_type(options: Options, size: Size) -> str:
    if options.resizing_type != "auto":
        return options.resizing_type
    target = Size(options.width or size.width, options.height or size.height)
    same = (size.width >= size.height) == (target.width >= target.height)
    return "fill" if same else "fit"


def _target(options: Options, dpr: float) -> Size:
    """Return the requested size; 0 stands for a free side."""
    return Size(
        _half_up(options.width * dpr * options.zoom[0]), _half_up(options.height * dpr * options.zoom[1])
    )


def _kept(options: Options, scaled: Size, target: Size) -> Size:
    """Return the size of the part of the scaled picture that is kept."""
    width, height = target
    if options.resizing_type == "fill-down" and not options.enlarge and 0 not in target:
        across, down = width / scaled.width, height / scaled.height
        if across > down and across > 1:
            width, height = scaled.width, _rounded(scaled.width * height / width)
        elif down > across and down > 1:
            width, height = _rounded(scaled.height * width / height), scaled.height
    return Size(min(width or scaled.width, scaled.width), min(height or scaled.height, scaled.height))


def _of_ratio(size: Size, ratio: Size) -> Size:
    """Return the smallest size of an aspect ratio that holds a size."""
    across, down = ratio.width / size.width, ratio.height / size.height
    if across > down:
        return Size(_rounded(size.height * ratio.width / ratio.height), size.height)
    return Size(size.width, _rounded(size.width * ratio.height / ratio.width))


def _extended(
    margins: tuple[int, int, int, int], inner: Size, outer: Size, extend: Extend, dpr: float
) -> tuple[int, int, int, int]:
    """Return margins that grow a picture to a size at least."""
    outer = Size(max(outer.width, inner.width), max(outer.height, inner.height))
    box = placed(outer, inner, extend.gravity, dpr)
    top, right, bottom, left = margins
    return (
        top + box.top,
        right + outer.width - box.left - inner.width,
        bottom + outer.height - box.top - inner.height,
        left + box.left,
    )


def _grown(size: Size, margins: tuple[int, int, int, int]) -> Size:
    top, right, bottom, left = margins
    return Size(size.width + left + right, size.height + top + bottom)


def _rounded(length: float) -> int:
    return max(1, _half_up(length))


def _half_up(length: float) -> int:
    return math.floor(length + 0.5)
