"""Lay a layer over one frame."""

from __future__ import annotations

import pyvips

from imgsvc_core._runtime.vipsimage import size_of
from imgsvc_core.pixels import resampling
from imgsvc_core.pixels.layers.gradient import draw_gradient
from imgsvc_core.pixels.layers.shape import draw_shape
from imgsvc_core.pixels.overlay import mix_over
from imgsvc_core.plan.geometry import Area, Size, rotated
from imgsvc_core.plan.layers import Laid


def lay_layer(image: pyvips.Image, laid: Laid, picture: pyvips.Image | None) -> pyvips.Image:
    """Lay a layer over a frame. ``picture`` has the right size, if the layer is one."""
    layer = laid.layer
    top = _drawn(laid) if picture is None else picture
    if layer.rotation % 360:
        top = _turned(top, layer.rotation)
    left, upper = laid.place(Size(*size_of(top)))
    return mix_over(image, top, left, upper, layer.opacity, layer.blend)


def _drawn(laid: Laid) -> pyvips.Image:
    drawn = draw_shape(laid) if laid.layer.shape else draw_gradient(laid)
    if laid.layer.gray:
        drawn = drawn.extract_band(0).bandjoin(drawn.extract_band(3)).copy(interpretation="b-w")
    return drawn


def _turned(image: pyvips.Image, angle: float) -> pyvips.Image:
    """Turn clockwise, in the smallest frame that holds all of it."""
    quarters = {90.0: image.rot90, 180.0: image.rot180, 270.0: image.rot270}
    if turn := quarters.get(angle % 360):
        return turn()
    size = Size(*size_of(image))
    return resampling.rotate(image, angle, None, Area(0, 0, *size), *rotated(size, angle))
