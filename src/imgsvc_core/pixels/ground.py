"""A picture laid on a color, on its own mean, or on a blurred copy of itself."""

from __future__ import annotations

import pyvips

from imgsvc_core._runtime.deadline import in_memory
from imgsvc_core.pixels import resampling
from imgsvc_core.pixels.blending import band_values, fit_for, over
from imgsvc_core.pixels.channels import in_bytes, split_alpha, with_fields_of
from imgsvc_core.pixels.spatial.gaussian import gaussian_blur
from imgsvc_core.plan.geometry import Area, Size, clipped
from imgsvc_core.spec import Color
from imgsvc_core.spec.thumbor_filters import Ground


def lay_on_ground(image: pyvips.Image, ground: Ground) -> pyvips.Image:
    """Lay the picture on a color, or on a ground made of its own pixels."""
    size = Size(ground.width, ground.height)
    if ground.kind in ("copy", "repeat", "mirror"):
        return in_memory(image).embed(ground.left, ground.top, *size, extend=ground.kind)
    part = clipped(size, ground.left, ground.top, image.width, image.height)
    if ground.kind == "blur":
        have = Size(image.width, image.height)
        blurred = in_memory(gaussian_blur(image, ground.sigma, unweighted=True))
        below = in_memory(resampling.resample(blurred, have, *size, Area(0, 0, *have)))
    else:
        color = _mean(image) if ground.kind == "mean" else ground.color
        image = fit_for(image, color)
        below = plain(image, color, size)
    if part is None:
        return with_fields_of(image, below)
    top = image.crop(part.left - ground.left, part.top - ground.top, *part.size)
    if ground.under and top.hasalpha():
        top = over(top, below.crop(*part))
    if top.hasalpha() != below.hasalpha():
        below = below.addalpha() if top.hasalpha() else below
        top = top if top.hasalpha() else top.addalpha()
    return with_fields_of(image, below.insert(top, part.left, part.top))


def plain(like: pyvips.Image, color: Color | None, size: Size) -> pyvips.Image:
    """Return a picture of one color, in the bands and the depth of another one."""
    values = band_values(like, color)
    pixel = pyvips.Image.black(1, 1) + values
    return pixel.cast(like.format).embed(0, 0, *size, extend="copy").copy(interpretation=like.interpretation)


def _mean(image: pyvips.Image) -> Color:
    color, _ = split_alpha(in_bytes(image))
    means = color.stats().numpy()[1:, 4]
    return Color(*(int(value) for value in (means if len(means) == 3 else means[[0, 0, 0]])))
