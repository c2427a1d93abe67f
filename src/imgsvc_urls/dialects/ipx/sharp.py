"""Sizes and positions as sharp computes them, from the calls that ipx makes: pure functions on numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from imgsvc_core.plan import turns
from imgsvc_core.plan.geometry import Box, Size, rotated
from imgsvc_core.spec import Color
from imgsvc_urls.dialects.building import half_up
from imgsvc_urls.dialects.ipx.modifiers import ALIASES, Modifier
from imgsvc_urls.errors import DialectError

_JPEG_FACTORS = (8, 4, 2)


@attrs.define
class Calls:
    """What the calls of sharp have set, one after the other."""

    size: Size
    width: int | None = None
    height: int | None = None
    fit: str = "cover"
    position: str = "center"
    background: Color | None = None
    kernel: str | None = None
    without_enlargement: bool = False
    part: Box | None = None
    part_after: Box | None = None
    orientation: int = 1
    angle: float = 0.0
    turn: int = 0
    turns_first: bool = False
    trims: bool = False
    margins: tuple[int, int, int, int] = (0, 0, 0, 0)

    def resize(self, width: int | None, height: int | None, **options: object) -> None:
        """Replace the size; options that are not given stay."""
        self.width, self.height = width, height
        for name, value in options.items():
            if value is not None:
                setattr(self, name, value)
        if self._rotates and self._resizes:
            self.turns_first = True

    def extract(self, box: Box) -> None:
        """Cut out a part: before the resize, unless there is one already."""
        if self._resizes or self.part is not None:
            self.part_after = box
            return
        self.part = box
        self.turns_first = self.turns_first or self._rotates

    def rotate(self, angle: float | None) -> None:
        """Turn by quarters or freely."""
        if angle is None:
            return  # it turns the picture upright, before all else
        self.turn, self.angle = (int(angle) % 360, 0.0) if angle % 90 == 0 else (0, angle)

    def trim(self) -> None:
        """Remember that a border is cut away."""
        self.trims = True
        self.turns_first = self.turns_first or self._rotates

    @property
    def _resizes(self) -> bool:
        return self.width is not None or self.height is not None

    @property
    def _rotates(self) -> bool:
        return bool(self.turn or self.angle)


def called(modifiers: Iterable[Modifier], size: Size) -> Calls:
    """Return the calls for modifiers, which are in the order of ipx."""
    calls, given, enlarge = Calls(size), dict[str, Any](), False
    flips = {"flip": 4, "flop": 2}
    for name, arguments in modifiers:
        match ALIASES.get(name, name):
            case "fit" | "position" | "background" | "kernel" as option:
                given[option] = arguments[0]
            case "enlarge":
                enlarge = True
            case "width":
                calls.resize(arguments[0], None, without_enlargement=not enlarge)
            case "height":
                calls.resize(None, arguments[0], without_enlargement=not enlarge)
            case "resize" if arguments[0]:
                asked = Size(*arguments[0])
                calls.resize(*(asked if enlarge else _clamped(asked, size)), **given)
            case "extract":
                calls.extract(Box(*arguments))
            case "rotate":
                calls.rotate(arguments[0])
            case "trim":
                calls.trim()
            case "flip" | "flop" as flip:
                calls.orientation = turns.then(calls.orientation, flips[flip])
            case "extend":
                top, right, bottom, left = (side or 0 for side in arguments[:4])
                calls.margins = (top, right, bottom, left)
    return calls


def _clamped(asked: Size, size: Size) -> Size:
    """Return a size of the same aspect ratio that is not larger than the picture on any side."""
    ratio = asked.width / asked.height
    width, height = asked
    if width > size.width:
        width, height = size.width, half_up(size.width / ratio)
    if height > size.height:
        width, height = half_up(size.height * ratio), size.height
    if not width or not height:
        raise DialectError(
            f"Modifier 'resize' must leave a pixel on each side, got {asked.width}x{asked.height} for a "
            f"picture of {size.width}x{size.height}."
        )
    return Size(width, height)


@attrs.frozen
class Layout:
    """What becomes of a picture, in the frame of the turned one.

    ``part`` is cut out of the turned picture of ``whole`` size and scaled to ``scaled``, of which ``window``
    is kept, in a frame of size ``canvas`` from ``left`` and ``top`` on. ``margins`` are at the top, right,
    bottom and left of all that. ``exact`` is true if the decoder must not
    reduce the picture as far as it could.
    """

    orientation: int
    angle: float
    whole: Size
    part: Box
    scaled: Size
    window: Box
    canvas: Size
    left: int
    top: int
    margins: tuple[int, int, int, int]
    exact: bool


def layout(calls: Calls, *, jpeg: bool, gamma: bool) -> Layout:
    """Return the layout of a picture.

    Args:
        calls: the calls of sharp.
        jpeg: whether the source is a JPEG, whose decoder makes it smaller.
        gamma: whether gamma is changed, which needs the picture in its full size.

    Raises:
        DialectError: the calls cannot be done together.
    """
    orientation = turns.then(calls.orientation, turns.of_angle(calls.turn) or 1)
    first = calls.turns_first
    size = turns.turned(calls.size, orientation) if first else calls.size
    if first and calls.angle:
        size = rotated(size, calls.angle)
    part = calls.part or Box(0, 0, *size)
    if part.right > size.width or part.bottom > size.height:
        raise DialectError(f"Modifier 'extract' must lie inside the picture of {size.width}x{size.height}.")
    plain = calls.part is None and not calls.trims and not first and not gamma
    whole_shrink = int(min(_shrinks(calls, part.size)))
    exact = not plain or (jpeg and whole_shrink in _JPEG_FACTORS)
    scaled = _scaled(calls, part.size, _jpeg_factor(whole_shrink) if jpeg and plain else 1)
    whole = size
    if not first:
        part, whole = turns.turned_box(part, size, orientation), turns.turned(size, orientation)
        scaled = turns.turned(scaled, orientation)
    target = Size(calls.width or scaled.width, calls.height or scaled.height)
    if calls.fit == "contain":
        canvas = Size(max(scaled.width, target.width), max(scaled.height, target.height))
        left, top = placed(canvas, scaled, calls.position, up=0)
        window = Box(0, 0, *scaled)
    else:
        kept = Size(min(scaled.width, target.width), min(scaled.height, target.height))
        canvas, left, top = (kept if calls.fit == "cover" else scaled), 0, 0
        window = Box(*placed(scaled, canvas, calls.position, up=1), *canvas)
    if not first and calls.angle:
        whole, part, scaled, window, canvas = _turned_after(calls, whole, part, scaled, canvas)
    if calls.part_after is not None:
        window, canvas = _cut_after(calls.part_after, scaled, window, canvas)
    margins = calls.margins
    return Layout(orientation, calls.angle, whole, part, scaled, window, canvas, left, top, margins, exact)


def placed(outer: Size, inner: Size, position: str, *, up: int) -> tuple[int, int]:
    """Return left and top of a rectangle in a larger one; ``up`` is 1 if halves of pixels are rounded up."""
    across, down = outer.width - inner.width, outer.height - inner.height
    left = 0 if "left" in position else across if "right" in position else (across + up) // 2
    top = 0 if "top" in position else down if "bottom" in position else (down + up) // 2
    return left, top


def _turned_after(
    calls: Calls, whole: Size, part: Box, scaled: Size, canvas: Size
) -> tuple[Size, Box, Size, Box, Size]:
    """Return a layout that turns first and scales then, in place of scaling first and turning then."""
    if part.size != whole or canvas != scaled:
        message = "Modifier 'rotate' by such an angle cannot follow what cuts or extends the picture."
        raise DialectError(message)
    whole, scaled = rotated(whole, calls.angle), rotated(scaled, calls.angle)
    return whole, Box(0, 0, *whole), scaled, Box(0, 0, *scaled), scaled


def _cut_after(box: Box, scaled: Size, window: Box, canvas: Size) -> tuple[Box, Size]:
    """Return window and canvas after a part of the result was cut out."""
    if canvas != window.size or box.right > canvas.width or box.bottom > canvas.height:
        message = f"Modifier 'extract' must lie inside the picture of {canvas.width}x{canvas.height}."
        raise DialectError(message)
    return box._replace(left=window.left + box.left, top=window.top + box.top), box.size


def _jpeg_factor(shrink: int) -> int:
    """Return how many pixels of a JPEG sharp decodes as one, so that it always scales what is decoded."""
    factor = next((factor for factor in _JPEG_FACTORS if shrink >= factor), 1)
    return factor // 2 if shrink in _JPEG_FACTORS else factor


def _scaled(calls: Calls, size: Size, factor: int) -> Size:
    """Return the size that a part is scaled to, of which a decoder makes some pixels one."""
    size = Size(max(1, size.width // factor), max(1, size.height // factor))
    across, down = _shrinks(calls, size)
    return Size(max(1, half_up(size.width / across)), max(1, half_up(size.height / down)))


def _shrinks(calls: Calls, size: Size) -> tuple[float, float]:
    across = size.width / calls.width if calls.width else 0.0
    down = size.height / calls.height if calls.height else 0.0
    if across and down:
        if calls.fit in ("cover", "outside"):
            across = down = min(across, down)
        elif calls.fit in ("contain", "inside"):
            across = down = max(across, down)
    elif calls.fit == "fill":
        across, down = across or 1.0, down or 1.0
    else:
        across = down = across or down or 1.0
    if calls.without_enlargement:
        across, down = max(1.0, across), max(1.0, down)
    return min(across, size.width), min(down, size.height)
