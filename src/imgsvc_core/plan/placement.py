"""Where one picture lies on another: pure functions on whole numbers of pixels."""

from __future__ import annotations

from imgsvc_core.plan.geometry import Size
from imgsvc_core.spec import Watermark

_TOP = frozenset({"top-left", "top", "top-right"})
_BOTTOM = frozenset({"bottom-left", "bottom", "bottom-right"})
_LEFT = frozenset({"top-left", "left", "bottom-left"})
_RIGHT = frozenset({"top-right", "right", "bottom-right"})


def gravity_offset(
    gravity: str, inner: tuple[int, int], outer: tuple[int, int], padding: int = 0
) -> tuple[int, int]:
    """Return left and top of a rectangle that gravity pulls to an edge, a corner or the center of another.

    ``padding`` is the distance from the edges that gravity names. A larger ``inner`` gets negative offsets.
    """
    across, down = outer[0] - inner[0], outer[1] - inner[1]
    left = padding if gravity in _LEFT else across - padding if gravity in _RIGHT else across // 2
    top = padding if gravity in _TOP else down - padding if gravity in _BOTTOM else down // 2
    return left, top


def watermark_size(mark: tuple[int, int], image: tuple[int, int], watermark: Watermark) -> Size:
    """Return the size of a watermark on a picture: ``scale``, then the bounds, then ``fit``.

    ``fit`` fits it into the picture without the padding at the edges that gravity names. The bounds and
    ``fit`` never enlarge the watermark.
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
    return gravity_offset(watermark.gravity, mark, image, watermark.padding or 0)


def _room(image: tuple[int, int], watermark: Watermark) -> Size:
    padding = watermark.padding or 0
    across = padding if watermark.gravity in _LEFT | _RIGHT else 0
    down = padding if watermark.gravity in _TOP | _BOTTOM else 0
    return Size(max(1, image[0] - across), max(1, image[1] - down))
