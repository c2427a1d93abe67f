"""A frame laid on its background: a color, a gradient, or what was made of the picture itself."""

from __future__ import annotations

import pyvips

from imgsvc_core._runtime.deadline import in_memory
from imgsvc_core.formats.vips import usual_interpretation
from imgsvc_core.pixels import resampling
from imgsvc_core.pixels.blending import fit_for, over, to_rgb
from imgsvc_core.pixels.channels import in_bytes, is_deep, split_alpha, without_idle_alpha
from imgsvc_core.pixels.ground import plain
from imgsvc_core.pixels.layers.gradient import draw_gradient
from imgsvc_core.pixels.shapes import flatten
from imgsvc_core.pixels.spatial.gaussian import gaussian_blur
from imgsvc_core.pixels.steps import Run, ScaledFrame
from imgsvc_core.plan.geometry import Area, Size, covering
from imgsvc_core.plan.steps import LayOnBackground, MakeBackdrop
from imgsvc_core.spec import Color
from imgsvc_core.spec.color import WHITE

_DEEPER = 257  # from 8 to 16 bits


def make_backdrop(frame: ScaledFrame, step: MakeBackdrop, run: Run) -> ScaledFrame:
    """Keep a blurred copy of a frame, or the average color of the first frame, for its background."""
    part = without_idle_alpha(frame.image.crop(*step.part))  # space around it may have brought the alpha
    if step.background.kind == "average":
        run.backdrop = run.once(step, lambda: average(part))
    else:
        run.backdrop = _blurred(part, step)
    return frame


def lay_on_background(frame: ScaledFrame, step: LayOnBackground, run: Run) -> ScaledFrame:
    """Lay a frame on its background. A frame without alpha stays as it is."""
    image = frame.image
    if not image.hasalpha():
        return frame
    gradient, below = step.background.gradient, step.background.color or run.backdrop
    if gradient is not None:
        below = draw_gradient(gradient, _of(image))
        below = split_alpha(below)[0] if step.traits.removes_alpha else below
    elif isinstance(below, pyvips.Image):
        have = _of(below)
        below = resampling.resample(below, have, *_of(image), Area(0, 0, *have))
    assert below is not None
    return ScaledFrame.whole(_laid(image, below))


def average(image: pyvips.Image) -> Color:
    """Return the mean color of a picture. A pixel counts by its alpha. Without visible ones it is white."""
    image = in_bytes(image)
    color, alpha = split_alpha(image)
    visible = 255.0 if alpha is None else alpha.avg()
    if not visible:
        return WHITE
    weighted = color if alpha is None else split_alpha(image.premultiply())[0]
    means = [weighted.extract_band(band).avg() * 255 / visible for band in range(weighted.bands)]
    return Color(*(min(255, round(mean)) for mean in (means if len(means) == 3 else means * 3)))


def _blurred(part: pyvips.Image, step: MakeBackdrop) -> pyvips.Image:
    """Return a blurred copy of a part that covers the frame, as small as `MakeBackdrop` says.

    It has 16 bits, so that levels of the enlarged copy show no edges. Transparent parts have the average
    color below them.
    """
    have, size = _of(part), step.made
    small = in_memory(resampling.resample(part, have, *size, covering(have, step.size)))
    ground = average(small)
    if not is_deep(small):
        small = _deeper(small)
    blurred = gaussian_blur(small, step.sigma * size.width / step.size.width)
    return in_memory(flatten(blurred, ground))


def _laid(image: pyvips.Image, below: pyvips.Image | Color) -> pyvips.Image:
    if isinstance(below, Color):
        if below.alpha == 255:
            return flatten(image, below)
        image = fit_for(image, below)
        return over(image, plain(image, below, _of(image)))
    if split_alpha(below)[0].bands == 3:
        image = to_rgb(image)
    elif split_alpha(image)[0].bands == 3:
        below = to_rgb(below)
    if is_deep(image) and not is_deep(below):
        below = _deeper(below)
    elif is_deep(below) and not is_deep(image):
        below = (below / _DEEPER).rint().cast("uchar")
    return over(image, below.copy(interpretation=image.interpretation))


def _deeper(image: pyvips.Image) -> pyvips.Image:
    """Return a picture of 8 bits in 16."""
    interpretation = usual_interpretation(image.bands, "ushort")
    return (image * _DEEPER).cast("ushort").copy(interpretation=interpretation)


def _of(image: pyvips.Image) -> Size:
    return Size(image.width, image.height)
