"""Sizes and positions as imgproxy computes them: pure functions on numbers.

Products and quotients are taken in its order, since halves of pixels are rounded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import attrs

from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.plan import turns
from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.spec import Flip
from imgsvc_urls.dialects.building import Side, half_up
from imgsvc_urls.dialects.imgproxy.options import Extend, Gravity, Options

_EXIF: Mapping[int, tuple[int, bool]] = {
    1: (0, False), 2: (0, True), 3: (180, False), 4: (180, True), 5: (90, True), 6: (90, False),
    7: (270, True), 8: (270, False),
}  # fmt: skip
"""Each EXIF orientation as a clockwise angle, and a mirroring from left to right after it."""

_OPPOSITE: Mapping[Side, Side] = {"near": "far", "far": "near", "center": "center"}
_TYPES: Mapping[tuple[Side, Side], str] = {
    ("near", "near"): "nowe", ("center", "near"): "no", ("far", "near"): "noea",
    ("near", "center"): "we", ("center", "center"): "ce", ("far", "center"): "ea",
    ("near", "far"): "sowe", ("center", "far"): "so", ("far", "far"): "soea",
}  # fmt: skip


@attrs.frozen
class Layout:
    """Which part of the turned and mirrored picture of a ``size`` is kept, and to which size it is scaled.

    ``crop`` is cut out first, then scaled by ``factors`` to ``scaled``, of which ``window`` is kept.
    ``margins`` are the extension of the canvas and the padding at the top, right, bottom and left. ``dpr`` is
    the pixel density that was reached.
    """

    size: Size
    crop: Box
    factors: tuple[float, float]
    scaled: Size
    window: Box
    margins: tuple[int, int, int, int]
    dpr: float

    @property
    def canvas(self) -> Size:
        """The size of the result."""
        return _grown(self.window.size, self.margins)


def fitted(size: Size, longest: int) -> Size:
    """Return a size with its aspect ratio, made smaller if a side is too long."""
    excess = max(1.0, max(size) / longest)
    return Size(_rounded(size.width / excess), _rounded(size.height / excess))


def layout(options: Options, info: ImageInfo) -> Layout:
    """Return the layout for a picture, which has been trimmed if the options say so."""
    stored = Size(info.width, info.height)
    turn = turns.then(info.orientation, _turn(options.rotate, options.flip))
    size = turns.turned(stored, turn)
    cropped = _cropped(options, size)
    crop = _crop(options, stored, info.orientation, turns.turned(cropped, turn))
    crop = turns.turned_box(crop, stored, turn)
    vector = info.vector and options.trim.threshold is None  # what is trimmed has been drawn
    across, down, dpr = _scale(options, cropped, vector=vector)
    found = _laid_out(options, info, size, crop, Factors(across, down, dpr))
    excess = max(found.canvas) / (options.max_result_dimension or math.inf)
    if excess <= 1:
        return found
    across, down = across / excess, down / excess
    return _laid_out(options, info, size, crop, Factors(across, down, dpr / excess))


class Factors(NamedTuple):
    """By what width and height are multiplied, and the pixel density that is reached."""

    across: float
    down: float
    dpr: float


def _laid_out(options: Options, info: ImageInfo, size: Size, crop: Box, factors: Factors) -> Layout:
    """Return the layout for a part of a picture of a size, and the factors of its sides."""
    across, down, dpr = factors
    wanted = Size(_rounded(crop.width * across), _rounded(crop.height * down))
    scaled = _made(size, _decoded(options, info, size, factors), crop.size, factors)
    target = _target(options, dpr)
    window = placed(scaled, _kept(options, wanted, scaled, target), options.gravity, dpr)
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
    return Layout(size, crop, (across, down), scaled, window, (top, right, bottom, left), dpr)


def _decoded(options: Options, info: ImageInfo, size: Size, factors: Factors) -> Size:
    """Return the size that imgproxy decodes a picture to, whose result may be a pixel larger or smaller."""
    sides = zip(size, factors, strict=False)
    shrink = min(side / _rounded(side * factor) for side, factor in sides)
    if shrink <= 1 or options.trim.threshold is not None or info.animated:
        return size
    if info.format == "jpg":
        whole = min(8, 2 ** int(math.log2(shrink)))
        return Size(max(1, size.width // whole), max(1, size.height // whole))
    if info.format == "webp":
        return Size(_rounded(size.width / shrink), _rounded(size.height / shrink))
    return size


def _made(size: Size, decoded: Size, cropped: Size, factors: Factors) -> Size:
    """Return the size that libvips scales a part to. It divides by factors that are rounded themselves."""
    made = []
    for side, have, part, factor in zip(size, decoded, cropped, factors, strict=False):
        if have != side:
            factor *= side / have
            part = have if part == side else max(1, half_up(part * have / side))
            factor = 1.0 if half_up(have * factor) == have else factor
        made.append(_rounded(part / (1 / factor) if factor < 1 else part * factor))
    return Size(*made)


def _turn(angle: int, flip: tuple[bool, bool]) -> int:
    """Return a clockwise rotation and a mirroring after it as an EXIF orientation."""
    mirrored = turns.of_flip(Flip(horizontal=flip[0], vertical=flip[1]))
    return turns.then(turns.of_angle(angle) or 1, mirrored)


def _crop(options: Options, stored: Size, orientation: int, size: Size) -> Box:
    """Return where the crop lies in the stored picture, in which odd pixels fall as in imgproxy."""
    gravity = _before(options.crop_gravity or options.gravity, options.rotate, options.flip)
    angle, mirrored = _EXIF[orientation]
    return placed(stored, size, _before(gravity, angle, (mirrored, False)), 1.0)


def _before(gravity: Gravity, angle: int, flip: tuple[bool, bool]) -> Gravity:
    """Return the gravity that keeps the same part before the picture is turned clockwise, then mirrored."""
    across, down = sides(gravity)
    x, y = gravity.x, gravity.y
    point = gravity.type == "fp"
    if flip[0]:
        across, x = _OPPOSITE[across], 1 - x if point else -x if across == "center" else x
    if flip[1]:
        down, y = _OPPOSITE[down], 1 - y if point else -y if down == "center" else y
    for _ in range(angle // 90):
        across, down = down, _OPPOSITE[across]
        x, y = y, 1 - x if point else -x if down == "center" else x
    return Gravity(gravity.type if point else _TYPES[across, down], x, y)


def sides(gravity: Gravity) -> tuple[Side, Side]:
    """Return the sides from which offsets are measured, across and down."""
    across: Side = "near" if "we" in gravity.type else "far" if "ea" in gravity.type else "center"
    down: Side = "near" if "no" in gravity.type else "far" if "so" in gravity.type else "center"
    return across, down


def placed(outer: Size, inner: Size, gravity: Gravity, dpr: float) -> Box:
    """Return where a smaller rectangle lies within a larger one."""
    left, top = position(outer, inner, gravity, dpr)
    return Box(
        max(0, min(left, outer.width - inner.width)), max(0, min(top, outer.height - inner.height)), *inner
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
        side if not asked else min(side, int(asked) if asked >= 1 else max(1, half_up(side * asked)))
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
        across, down = least, down / (across / least)
    if options.min_height and (least := size.height / options.min_height) < down:
        across, down = across / (down / least), least
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
        half_up(options.width * (dpr * options.zoom[0])), half_up(options.height * (dpr * options.zoom[1]))
    )


def _kept(options: Options, wanted: Size, scaled: Size, target: Size) -> Size:
    """Return the size of the part that is kept of a scaled picture that should have the wanted size."""
    width, height = target
    if options.resizing_type == "fill-down" and not options.enlarge and 0 not in target:
        across, down = width / wanted.width, height / wanted.height
        if across > down and across > 1:
            width, height = wanted.width, _rounded(wanted.width * (height / width))
        elif down > across and down > 1:
            width, height = _rounded(wanted.height * (width / height)), wanted.height
    return Size(min(width or scaled.width, scaled.width), min(height or scaled.height, scaled.height))


def _of_ratio(size: Size, ratio: Size) -> Size:
    """Return the smallest size of an aspect ratio that holds a size."""
    across, down = ratio.width / size.width, ratio.height / size.height
    if across > down:
        return Size(_rounded(size.height * (ratio.width / ratio.height)), size.height)
    return Size(size.width, _rounded(size.width * (ratio.height / ratio.width)))


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
    return max(1, half_up(length))
