"""Parts of requests that dialects have in common."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from imgsvc_core.errors import DialectError, SpecError
from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.spec import Spec
from imgsvc_core.spec.geometry import Gravity
from imgsvc_core.spec.internal import GaussianBlur

Side = Literal["near", "far", "center"]

_LONGEST_MASK = 4999  # pixels from its center, as libvips has it

_CORNERS: dict[tuple[Side, Side], Gravity] = {
    ("near", "near"): "top-left", ("center", "near"): "top", ("far", "near"): "top-right",
    ("near", "center"): "left", ("center", "center"): "center", ("far", "center"): "right",
    ("near", "far"): "bottom-left", ("center", "far"): "bottom", ("far", "far"): "bottom-right",
}  # fmt: skip


def built(**parts: Any) -> Spec:
    """Return the spec of some operations; those that are `None` are left out."""
    return Spec(**{name: part for name, part in parts.items() if part is not None}).simplified()


@contextmanager
def refusing(status: int) -> Iterator[None]:
    """Raise a `DialectError` with a status in place of a `SpecError`."""
    try:
        yield
    except SpecError as error:
        raise DialectError(f"{error.message}.", status=status) from error


def cut(box: Box, size: Size) -> dict[str, Any] | None:
    """Return the crop that leaves a rectangle of a picture, or `None` if that is all of it."""
    if box.size == size:
        return None
    return {"x": box.left, "y": box.top, "width": box.width, "height": box.height}


def stretched(size: Size, target: Size) -> dict[str, Any] | None:
    """Return the resize from one size to another, or `None` if they are equal."""
    if size == target:
        return None
    return {"mode": "stretch", "width": target.width, "height": target.height}


def truncated_blur(sigma: float, radius: int) -> GaussianBlur:
    """Return the blur by a Gaussian that is cut off at some pixels from its center, which makes it weaker."""
    squares = [place * place for place in range(1, radius + 1)]
    weights = [math.exp(-square / (2 * sigma * sigma)) for square in squares]
    variance = 2 * sum(map(operator.mul, squares, weights)) / (1 + 2 * sum(weights))
    return GaussianBlur(sigma=math.sqrt(variance))


def libvips_blur(sigma: float) -> GaussianBlur:
    """Return the blur of libvips, whose mask ends where it has less than a fifth of its peak."""
    reach = math.ceil(sigma * math.sqrt(2 * math.log(5))) - 1
    return truncated_blur(sigma, min(reach, _LONGEST_MASK))


def gravity_of(horizontal: Side, vertical: Side) -> Gravity:
    """Return the word for an edge, a corner or the center."""
    return _CORNERS[horizontal, vertical]


def watermark_at(horizontal: tuple[Side, int], vertical: tuple[Side, int]) -> dict[str, Any] | None:
    """Return the place of a watermark at distances from edges or the center, or `None` if no request has it.

    The size of the watermark is not known, so a distance from the right or the bottom edge cannot become an
    exact position.
    """
    (across, x), (down, y) = horizontal, vertical
    if across == down == "near":
        return {"x": x, "y": y}
    if across == down == "center":
        return {} if x == y == 0 else None
    distances = {distance for side, distance in (horizontal, vertical) if side != "center"}
    moved = any(distance for side, distance in (horizontal, vertical) if side == "center")
    if moved or len(distances) > 1 or min(distances) < 0:
        return None
    return {"gravity": gravity_of(across, down), "padding": distances.pop() or None}
