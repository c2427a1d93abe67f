"""Parts of requests that dialects have in common."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

from imgsvc_core.errors import SpecError
from imgsvc_core.formats.table import FORMATS
from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.spec import Spec, Watermark
from imgsvc_core.spec.geometry import Edge, Gravity
from imgsvc_core.spec.internal import GaussianBlur
from imgsvc_core.spec.request import ALL_OPERATIONS
from imgsvc_core.spec.watermark import Tiling
from imgsvc_urls.errors import DialectError

Side = Literal["near", "far", "center"]

Smart = Literal["none", "face", "faces", "smart"]
"""What the part ``smart`` of a URL of thumbor or imagor stands for."""

LARGEST_SIGMA = 1000
"""The limit of libvips: larger blurs fail."""

_FARTHEST = 65_535  # pixels, which is outside of any picture

_LEAST_OPACITY = 0.01

_LEAST_QUALITY = 10

_EDGES: dict[tuple[Side, Side], Edge] = {
    ("near", "near"): "top-left", ("center", "near"): "top", ("far", "near"): "top-right",
    ("near", "center"): "left", ("far", "center"): "right",
    ("near", "far"): "bottom-left", ("center", "far"): "bottom", ("far", "far"): "bottom-right",
}  # fmt: skip


def built(**parts: Any) -> Spec:
    """Return the spec of some operations, internal parameters included; `None` stands for none."""
    made: dict[str, Any] = {
        name: ALL_OPERATIONS[name](**part) if isinstance(part, Mapping) else part
        for name, part in parts.items()
        if part is not None
    }
    return Spec(**made).simplified()


@contextmanager
def refusing(status: int = 400) -> Iterator[None]:
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


def resized_to(
    size: Size,
    scaled: Size,
    *,
    kept: Size,
    at: tuple[int, int] | None,
    factors: tuple[float, float] | None = None,
) -> dict[str, Any] | None:
    """Return the resize by libvips that scales to a size and keeps a part, or `None` if nothing changes.

    Args:
        size: the size of the picture.
        scaled: the size that it is scaled to.
        kept: the size of the part.
        at: left and top of the part; without them it is the most interesting one.
        factors: the factors of libvips for width and height; by default the quotients of the two sizes.
    """
    if size == scaled == kept:
        return None
    factors = factors or (scaled.width / size.width, scaled.height / size.height)
    resize = {"mode": "stretch", "width": scaled.width, "height": scaled.height, "libvips": factors}
    return resize if kept == scaled else {**resize, "kept_size": kept, "kept_at": at}


def window_of(
    whole: Size,
    part: Box,
    scaled: Size,
    window: Box,
    gravity: Gravity | None = None,
    *,
    factors: tuple[float, float] | None = None,
) -> dict[str, dict[str, Any] | None]:
    """Return the crop and the resize that scale a part of a picture and keep a window of that.

    Args:
        whole: the size of the picture.
        part: what is scaled.
        scaled: the size that it is scaled to.
        window: what is kept then.
        gravity: where the window lies instead, if that depends on the pixels.
        factors: the factors of libvips for width and height; by default the quotients of the two sizes.
    """
    at = None if gravity == "smart" else (window.left, window.top)
    resize = resized_to(part.size, scaled, kept=window.size, at=at, factors=factors)
    if gravity in ("face", "faces") and window.size != scaled:
        resize = {"mode": "fit", "gravity": gravity, "width": window.width, "height": window.height}
    return {"crop": cut(part, whole), "resize": resize}


def truncated_blur(sigma: float, radius: int) -> GaussianBlur:
    """Return the blur by a Gaussian that is cut off at some pixels from its center, which makes it weaker."""
    squares = [place * place for place in range(1, radius + 1)]
    weights = [math.exp(-square / (2 * sigma * sigma)) for square in squares]
    variance = 2 * sum(map(operator.mul, squares, weights)) / (1 + 2 * sum(weights))
    return GaussianBlur(sigma=math.sqrt(variance))


def libvips_blur(sigma: float) -> GaussianBlur:
    """Return the blur of libvips, whose mask ends where it has less than a fifth of its peak.

    A sigma beyond the largest one counts as that.
    """
    sigma = min(sigma, LARGEST_SIGMA)
    return truncated_blur(sigma, math.ceil(sigma * math.sqrt(2 * math.log(5))) - 1)


def placed_watermark(
    id: str,
    opacity: float,
    horizontal: tuple[Side | Tiling, int],
    vertical: tuple[Side | Tiling, int],
    *,
    width: int | None = None,
    height: int | None = None,
    fade: int = 0,
    past_center: bool = False,
    chessboard: bool = False,
    rotation: float = 0.0,
) -> Watermark | None:
    """Return the watermark that lies at a place, or `None` if it cannot be seen.

    Args:
        id: its id.
        opacity: the factor of its opacity.
        horizontal: the edge or the center from which it lies at a distance, or how it is repeated.
        vertical: the same for the other axis.
        width: the width that it fills, also enlarged.
        height: the height that it fills.
        fade: levels taken off its alpha.
        past_center: see `Watermark`.
        chessboard: whether every other tile is left out.
        rotation: the angle by which it is turned clockwise.
    """
    if opacity < _LEAST_OPACITY / 2:
        return None
    (across, x), (down, y) = horizontal, vertical
    tiles_x, side_x = _told_apart(across)
    tiles_y, side_y = _told_apart(down)
    x, y = (max(-_FARTHEST, min(distance, _FARTHEST)) for distance in (x, y))
    return Watermark(
        id=id,
        opacity=max(_LEAST_OPACITY, opacity),
        gravity=_EDGES.get((side_x, side_y)),
        width=width,
        height=height,
        fade=fade,
        enlarge=width is not None or height is not None,
        offset_x=x,
        offset_y=y,
        past_center=past_center,
        chessboard=chessboard,
        rotation=rotation,
        tiles_x=tiles_x,
        tiles_y=tiles_y,
    )


def _told_apart(kind: Side | Tiling) -> tuple[Tiling | None, Side]:
    match kind:
        case "start" | "centered" | "spread":
            return kind, "near"
    return None, kind


def animates(format: str) -> bool:
    """Return True if other services write animations of a format. AVIF and JPEG XL get the first frame."""
    return FORMATS[format].animation and format not in ("avif", "jxl")


def half_up(value: float) -> int:
    """Round halves up, as JavaScript, libvips and Go do it."""
    return math.floor(value + 0.5)


def lower_qualities(quality: int) -> tuple[int, ...]:
    """Return the qualities after one that is too large: three quarters each, down to the first below 11.

    >>> lower_qualities(40)
    (30, 22, 16, 12, 9)
    """
    tried = [quality]
    while tried[-1] > _LEAST_QUALITY:
        tried.append(tried[-1] * 3 // 4)
    return tuple(tried[1:])
