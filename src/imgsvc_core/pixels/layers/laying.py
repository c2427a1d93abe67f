"""Lay a layer over one frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import pyvips

from imgsvc_core._runtime.vipsimage import limit_threads, size_of
from imgsvc_core.formats.vips import from_array, to_array
from imgsvc_core.pixels.channels import colors_of
from imgsvc_core.pixels.layers.drawn import Drawn
from imgsvc_core.pixels.layers.effects import shadow_of
from imgsvc_core.pixels.layers.gradient import draw_gradient
from imgsvc_core.pixels.layers.shape import draw_shape
from imgsvc_core.pixels.layers.text import draw_text
from imgsvc_core.pixels.overlay import color_over, mix_over, replicated, turned
from imgsvc_core.pixels.shapes import apply_mask
from imgsvc_core.plan.geometry import Box, Size, clipped, rotated
from imgsvc_core.plan.layers import Laid
from imgsvc_core.spec import Color

_MIXED_AT_ONCE = 1 << 16  # pixels that stay near the processor


def draw_layer(laid: Laid, picture: pyvips.Image | None) -> Drawn:
    """Return what a layer lays over each frame. ``picture`` has the right size, if the layer is one."""
    layer = laid.layer
    drawn = _written(laid) if layer.text else Drawn(_plain(laid) if picture is None else picture)
    if layer.opacity != 1 or layer.blend != "normal" or layer.rotation % 360 or layer.repeat:
        drawn = drawn.filled
    if layer.radius is not None and (radius := layer.radius.pixels(min(drawn.box))):
        drawn = Drawn(apply_mask(drawn.filled.image, "rounded", radius, None))
    if layer.shadow is not None:
        drawn = _on_shadow(drawn.filled, laid)
    if layer.gray and drawn.color is None:
        gray = drawn.image.extract_band(0).bandjoin(drawn.image.extract_band(3))
        drawn = Drawn(gray.copy(interpretation="b-w"), drawn.margin)
    return drawn


def lay_layer(image: pyvips.Image, laid: Laid, drawn: Drawn) -> pyvips.Image:
    """Lay what a layer draws over a frame."""
    return _laid(image, laid, drawn.color, *_placed(laid, drawn))


def lay_in_array(pixels: Any, laid: Laid, drawn: Drawn, threads: int | None) -> Any:
    """Lay what a layer draws over bytes of (height, width, 1 or 3), in their place if the bands suffice."""
    top, left, upper = _placed(laid, drawn)
    if pixels.shape[2] == 1 and not (drawn.color.gray if drawn.color else colors_of(top) == 1):
        pixels = pixels.repeat(3, axis=2)
    part = clipped(laid.frame, left, upper, *size_of(top))
    if part is None:
        return pixels
    below = pixels[part.top : part.top + part.height, part.left : part.left + part.width]
    left, upper = part.left - left, part.top - upper
    if drawn.color is not None:
        alpha = to_array(top)[..., 0] if drawn.array is None else drawn.array
        alpha = alpha[upper : upper + part.height, left : left + part.width]
        _mix(below, drawn.color.rgb[: below.shape[2]], alpha)
    elif _is_mixed_simply(top, laid):
        bands = to_array(top.crop(left, upper, *part.size) if part.size != size_of(top) else top)
        colors = [bands[..., min(band, bands.shape[2] - 2)] for band in range(below.shape[2])]
        _mix(below, colors, bands[..., -1])
    else:
        ground = from_array(below)
        limit_threads(ground, threads)
        below[...] = to_array(_laid(ground, laid, None, top, -left, -upper))
    return pixels


def _is_mixed_simply(top: pyvips.Image, laid: Laid) -> bool:
    usual = laid.layer.opacity == 1 and laid.layer.blend == "normal"
    return usual and top.format == "uchar" and top.hasalpha() and top.interpretation in ("srgb", "b-w")


def _mix(ground: Any, colors: Sequence[Any], alpha: Any) -> None:
    """Lay bands, or numbers for whole bands, with alpha on bytes.

    The samples are those of libvips, which takes twice the time.
    """
    rows = max(1, _MIXED_AT_ONCE // ground.shape[1])
    for start in range(0, len(ground), rows):
        part = slice(start, start + rows)
        share = alpha[part].astype("uint16")
        for band, color in enumerate(colors):
            mixed = ground[part, :, band].astype("uint16")
            change = (color if isinstance(color, int) else color[part].astype("uint16")) - mixed
            change *= share  # may be less than 0 in between: the sum is not
            mixed *= 255
            mixed += change
            mixed += 128
            mixed //= 255
            ground[part, :, band] = mixed


def _placed(laid: Laid, drawn: Drawn) -> tuple[pyvips.Image, int, int]:
    """Return what a layer lays over a frame, and left and top of it."""
    layer, top, box = laid.layer, drawn.image, box_of(laid, drawn)
    if layer.rotation % 360:
        top = turned(top, layer.rotation, box.size)
    left, upper, size = box.left, box.top, size_of(top)
    left, upper = left - (size[0] - box.width) // 2, upper - (size[1] - box.height) // 2
    if layer.repeat is not None:
        spacing = layer.repeat.spacing.pixels(min(laid.frame))
        return _repeated(top, left, upper, spacing, layer.repeat.stagger, laid.frame)
    return top, left, upper


def _laid(
    image: pyvips.Image, laid: Laid, color: Color | None, top: pyvips.Image, left: int, upper: int
) -> pyvips.Image:
    if color is not None:
        return color_over(image, top, color, left, upper)
    return mix_over(image, top, left, upper, laid.layer.opacity, laid.layer.blend)


def _written(laid: Laid) -> Drawn:
    drawn = draw_text(laid)
    if not laid.visible:
        return drawn
    drawn = drawn.visible
    if laid.tall is None or drawn.box.height <= laid.tall:
        return drawn
    return draw_text(attrs.evolve(laid, shrink=laid.tall / drawn.box.height)).visible


def box_of(laid: Laid, drawn: Drawn) -> Box:
    """Return where a layer lies on a frame, without its shadow and its copies."""
    size = rotated(drawn.box, laid.layer.rotation)
    return Box(*laid.place(size), *size)


def _plain(laid: Laid) -> pyvips.Image:
    gradient = laid.layer.gradient
    return draw_shape(laid) if gradient is None else draw_gradient(gradient, laid.drawn_size)


def _on_shadow(drawn: Drawn, laid: Laid) -> Drawn:
    """Lay what is drawn over its shadow."""
    assert laid.layer.shadow is not None
    image = drawn.image if drawn.image.hasalpha() else drawn.image.addalpha()
    alpha = image.extract_band(image.bands - 1)
    shadow, left, top = shadow_of(alpha, laid.layer.shadow, min(laid.frame))
    over = max(0, -left, -top, left + shadow.width - image.width, top + shadow.height - image.height)
    drawn = Drawn(image, drawn.margin).widened(over)
    ground = pyvips.Image.black(*size_of(drawn.image), bands=4).copy(interpretation="srgb")
    ground = ground.insert(shadow, over + left, over + top)
    return Drawn(mix_over(ground, drawn.image, 0, 0, 1.0, "normal"), drawn.margin)


def _repeated(
    image: pyvips.Image, left: int, top: int, spacing: int, stagger: float, frame: Size
) -> tuple[pyvips.Image, int, int]:
    """Return copies of a picture that cover a frame, one of them at a place, and where they begin."""
    image = image if image.hasalpha() else image.addalpha()
    across, down = image.width + spacing, image.height + spacing
    tile = image.embed(0, 0, across, down)
    if shift := round(stagger * across) % across:
        tile, down = tile.join(tile.wrap(x=shift, y=0), "vertical"), 2 * down
    left, top = left % across - across, top % down - down
    copies = -((left - frame.width) // across), -((top - frame.height) // down)
    return replicated(tile, *copies), left, top
