"""Mirrorings and quarter turns as EXIF orientations, and crops before them that equal crops after."""

from __future__ import annotations

from imgsvc_core.plan.geometry import Area, Box, Size
from imgsvc_core.spec import Flip

_Matrix = tuple[int, int, int, int]

# Matrices from stored vectors (right, down) to the upright picture, row by row, for each EXIF orientation.
_MATRICES: dict[int, _Matrix] = {
    1: (1, 0, 0, 1),
    2: (-1, 0, 0, 1),
    3: (-1, 0, 0, -1),
    4: (1, 0, 0, -1),
    5: (0, 1, 1, 0),
    6: (0, -1, 1, 0),
    7: (0, -1, -1, 0),
    8: (0, 1, -1, 0),
}
_ORIENTATIONS = {matrix: orientation for orientation, matrix in _MATRICES.items()}
_QUARTERS: dict[float, int] = {0: 1, 90: 6, 180: 3, 270: 8}


def then(first: int, second: int) -> int:
    """Return the orientation that combines ``first`` and then ``second``."""
    a, b, c, d = _MATRICES[second]
    e, f, g, h = _MATRICES[first]
    return _ORIENTATIONS[(a * e + b * g, a * f + b * h, c * e + d * g, c * f + d * h)]


def of_flip(flip: Flip) -> int:
    """Return the orientation equal to a flip."""
    return {(False, False): 1, (True, False): 2, (True, True): 3, (False, True): 4}[
        (flip.horizontal, flip.vertical)
    ]


def of_angle(angle: float) -> int | None:
    """Return the orientation equal to a clockwise rotation, or None unless it is a multiple of 90 degrees."""
    return _QUARTERS.get(angle % 360)


def inverse(orientation: int) -> int:
    """Return the orientation that undoes another one."""
    return {6: 8, 8: 6}.get(orientation, orientation)


def turned(size: Size, orientation: int) -> Size:
    """Return the size after the turn."""
    return Size(size.height, size.width) if orientation >= 5 else size


def turned_box(box: Box, size: Size, orientation: int) -> Box:
    """Return the place of a rectangle of a picture after the turn."""
    left, top, width, height = turned_area(Area(*box), size, orientation)
    return Box(int(left), int(top), int(width), int(height))


def turned_area(area: Area, size: Size, orientation: int) -> Area:
    """Return the place of a rectangle after the turn. Its edges may fall inside pixels."""
    a, b, c, d = _MATRICES[orientation]
    across = 2 * area.left + area.width - size.width
    down = 2 * area.top + area.height - size.height
    frame = turned(size, orientation)
    width, height = (area.height, area.width) if orientation >= 5 else (area.width, area.height)
    return Area(
        (a * across + b * down + frame.width - width) / 2,
        (c * across + d * down + frame.height - height) / 2,
        width,
        height,
    )
