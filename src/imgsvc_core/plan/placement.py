"""Where one picture lies on another: pure functions on whole numbers of pixels."""

from __future__ import annotations

from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.spec import Watermark

_TOP = frozenset({"top-left", "top", "top-right"})
_BOTTOM = frozenset({"bottom-left", "bottom", "bottom-right"})
_LEFT = frozenset({"top-left", "left", "bottom-left"})
_RIGHT = frozenset({"top-right", "right", "bottom-right"})


def gravity_offset(
    gravity: str, inner: tuple[int, int], outer: tuple[int, int], across: int = 0, down: int = 0
) -> tuple[int, int]:
    """Return left and top of a rectangle that gravity pulls to an edge, a corner or the center of another.

    ``across`` and ``down`` are distances from the edges that gravity names, or from the center to the right
    and down. A larger ``inner`` gets negative offsets.
    """
    width, height = outer[0] - inner[0], outer[1] - inner[1]
    left = across if gravity in _LEFT else width - across if gravity in _RIGHT else width // 2 + across
    top = down if gravity in _TOP else height - down if gravity in _BOTTOM else height // 2 + down
    return left, top


def placed(inner: Size, outer: Size, gravity: str, offset_x: int | None, offset_y: int | None) -> Box:
    """Return where gravity and offsets put a rectangle within another."""
    left, top = gravity_offset(gravity, inner, outer, offset_x or 0, offset_y or 0)
    room = outer.width - inner.width, outer.height - inner.height
    return Box(min(max(left, 0), room[0]), min(max(top, 0), room[1]), *inner)


def watermark_size(mark: tuple[int, int], image: tuple[int, int], watermark: Watermark) -> Size:
    """Return the size of a watermark on a picture: ``scale``, then the bounds, then ``fit``.

    ``fit`` fits it into the picture without the padding at the edges that gravity names, or into the part
    of the picture to the right of and below its position. The bounds and ``fit`` never enlarge the watermark.
    """
    factor = watermark.scale
    width, height = mark[0] * factor, mark[1] * factor
    bounds = [(width, watermark.width), (height, watermark.height)]
    if watermark.fit:
        room = _room(image, watermark)
        bounds += [(width, room.width), (height, room.height)]
    factor *= min([1.0, *(bound / side for side, bound in bounds if bound is not None)])
    return Size(max(1, round(mark[0] * factor)), max(1, round(mark[1] * factor)))


def watermark_position(
    mark: tuple[int, int], image: tuple[int, int], watermark: Watermark
) -> tuple[int, int]:
    """Return left and top of a watermark on a picture. The parts outside of the picture are to be clipped."""
    if watermark.x is not None or watermark.y is not None:
        return watermark.x or 0, watermark.y or 0
    if watermark.gravity is None:
        return gravity_offset("center", mark, image)
    return gravity_offset(watermark.gravity, mark, image, *_margins(watermark))


def _room(image: tuple[int, int], watermark: Watermark) -> Size:
    across, down = _margins(watermark)
    across, down = max(across, watermark.x or 0), max(down, watermark.y or 0)
    return Size(max(1, image[0] - across), max(1, image[1] - down))


def _margins(watermark: Watermark) -> tuple[int, int]:
    """Return the padding from a side edge, and from the top or bottom, if gravity names one."""
    padding = watermark.padding or 0
    return (
        padding if watermark.gravity in _LEFT | _RIGHT else 0,
        padding if watermark.gravity in _TOP | _BOTTOM else 0,
    )
