"""The place of one picture on another: pure functions on whole numbers of pixels."""

from __future__ import annotations

import math
from typing import NamedTuple

from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.spec import Watermark
from imgsvc_core.spec.watermark import Tiling

_MOST_SPREAD = 100
_FEW_SPREAD = 6
_LEAST_REST = 10


def gravity_offset(
    gravity: str,
    inner: tuple[int, int],
    outer: tuple[int, int],
    across: int = 0,
    down: int = 0,
    *,
    past_center: bool = False,
) -> tuple[int, int]:
    """Return left and top of a rectangle that gravity pulls to an edge, a corner or the center of another.

    ``across`` and ``down`` are distances from the edges that gravity names, or from the center to the right
    and down. A larger ``inner`` gets negative offsets. For ``past_center`` see `Watermark`.
    """
    width, height = outer[0] - inner[0], outer[1] - inner[1]
    center, middle = (round((room + 1) / 2) if past_center else room // 2 for room in (width, height))
    left = across if "left" in gravity else width - across if "right" in gravity else center + across
    top = down if "top" in gravity else height - down if "bottom" in gravity else middle + down
    return left, top


def placed(inner: Size, outer: Size, gravity: str, offset_x: int | None, offset_y: int | None) -> Box:
    """Return where gravity and offsets put a rectangle within another."""
    left, top = gravity_offset(gravity, inner, outer, offset_x or 0, offset_y or 0)
    room = outer.width - inner.width, outer.height - inner.height
    return Box(min(max(left, 0), room[0]), min(max(top, 0), room[1]), *inner)


def watermark_size(mark: tuple[int, int], image: tuple[int, int], watermark: Watermark) -> Size:
    """Return the size of a watermark on a picture: ``scale``, then the bounds, then ``fit``.

    ``fit`` fits it into the picture without the padding at the edges that gravity names, or into the part
    of the picture to the right of and below its position. The bounds and ``fit`` enlarge the watermark only
    with ``enlarge``.
    """
    factor = watermark.scale
    width, height = mark[0] * factor, mark[1] * factor
    bounds = [(width, watermark.width), (height, watermark.height)]
    if watermark.fit:
        room = _room(image, watermark)
        bounds += [(width, room.width), (height, room.height)]
    factors = [bound / side for side, bound in bounds if bound is not None]
    factor *= min(factors, default=1.0) if watermark.enlarge else min([1.0, *factors])
    return Size(max(1, round(mark[0] * factor)), max(1, round(mark[1] * factor)))


class Tiles(NamedTuple):
    """The places of a picture repeated along one axis, from ``start`` on, each with room before it."""

    start: int
    step: int
    number: int = 1
    room: int = 0


def watermark_tiles(
    mark: tuple[int, int], image: tuple[int, int], watermark: Watermark
) -> tuple[Tiles, Tiles]:
    """Return the places of a watermark across and down a picture, which clips what lies outside."""
    left, top = watermark_position(mark, image, watermark)
    kinds = watermark.tiles_x, watermark.tiles_y
    across = _tiles(kinds[0], mark[0], image[0], start=left, gap=watermark.offset_x)
    down = _tiles(kinds[1], mark[1], image[1], start=top, gap=watermark.offset_y)
    if kinds == ("spread", "spread") and across.number * down.number > _MOST_SPREAD:
        return _spread(mark[0], image[0], _FEW_SPREAD), _spread(mark[1], image[1], _FEW_SPREAD)
    return across, down


def _tiles(kind: Tiling | None, side: int, room: int, *, start: int, gap: int) -> Tiles:
    match kind:
        case "start":
            return Tiles(0, side, room // side + 1)
        case "centered":
            return _centered(side, room, gap)
        case "spread":
            return _spread(side, room)
    return Tiles(start, side)


def _centered(side: int, room: int, gap: int) -> Tiles:
    """Return an odd number of tiles that covers a side, with the one in the middle in its center."""
    step = max(1, side + gap)
    number = math.ceil(room / step) // 2 * 2 + 1
    return Tiles(-((number * step - room) // 2), step, number, int(gap / 2))


def _spread(side: int, room: int, most: int | None = None) -> Tiles:
    """Return the tiles that fit into a side, with equal distances; if less than two do, one more."""
    number, rest = divmod(room, side)
    if room < 2 * side:
        number, rest = math.ceil(room / side), _LEAST_REST
    if most is not None:
        number = min(most, number)
        rest = room - number * side
    return Tiles(0, side + rest // (max(number, 2) - 1), number)


def watermark_position(
    mark: tuple[int, int], image: tuple[int, int], watermark: Watermark
) -> tuple[int, int]:
    """Return left and top of a watermark that is not repeated."""
    if watermark.x is not None or watermark.y is not None:
        return watermark.x or 0, watermark.y or 0
    across, down = margins(watermark.gravity, watermark.padding or 0)
    offsets = across + watermark.offset_x, down + watermark.offset_y
    gravity = watermark.gravity or "center"
    return gravity_offset(gravity, mark, image, *offsets, past_center=watermark.past_center)


def _room(image: tuple[int, int], watermark: Watermark) -> Size:
    across, down = margins(watermark.gravity, watermark.padding or 0)
    across, down = max(across, watermark.x or 0), max(down, watermark.y or 0)
    return Size(max(1, image[0] - across), max(1, image[1] - down))


def margins(gravity: str | None, padding: int) -> tuple[int, int]:
    """Return the padding from a side edge, and from the top or bottom, if gravity names one."""
    named = gravity or ""
    across, down = "left" in named or "right" in named, "top" in named or "bottom" in named
    return padding * across, padding * down
