"""Colors of two pictures mixed as CSS mixes them (Compositing and Blending Level 1)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import pyvips

from imgsvc_core.pixels.blending import over
from imgsvc_core.pixels.channels import split_alpha, white
from imgsvc_core.spec.layers.layer import Mixing

_Mix = Callable[[pyvips.Image, pyvips.Image], pyvips.Image]
_LUMA = (0.3, 0.59, 0.11)  # as CSS has it


def mixed(top: pyvips.Image, bottom: pyvips.Image, mixing: Mixing) -> pyvips.Image:
    """Lay a picture with alpha on another of the same size, colors and depth, by a mode of blending."""
    if mixing == "normal":
        return over(top, bottom)
    if mixing == "plus-lighter":
        added = bottom.composite2(top, "add").cast(bottom.format).copy(interpretation=bottom.interpretation)
        return added if bottom.hasalpha() else split_alpha(added)[0]
    # libvips' modes are right for opaque pictures only, so alpha is left to `over`.
    above, alpha = split_alpha(top)
    below, below_alpha = split_alpha(bottom)
    assert alpha is not None
    own = _OWN.get(mixing)
    if own is not None and above.bands == 3:
        both = own(below / white(top), above / white(top)) * white(top)
    elif own is not None:
        both = above if mixing == "luminosity" else below
    else:
        both = _opaque(below, above, mixing)
    if below_alpha is not None:
        share = below_alpha / white(bottom)
        both = above * (1 - share) + both * share
    both = both.rint().cast(top.format).bandjoin(alpha)
    return over(both.copy(interpretation=top.interpretation), bottom)


def _opaque(below: pyvips.Image, above: pyvips.Image, mixing: Mixing) -> pyvips.Image:
    """Mix colors without alpha by a mode of libvips. Samples are floats, which it does not round down."""
    space = below.interpretation
    float_below, float_above = (image.cast("float").copy(interpretation=space) for image in (below, above))
    mode = mixing.replace("color", "colour")  # codespell:ignore colour
    both = split_alpha(float_below.composite2(float_above, mode, compositing_space=space))[0]
    if mixing == "color-dodge":  # libvips makes black white
        return (below > 0).ifthenelse(both, 0)
    if mixing == "color-burn":  # libvips makes white below black black
        return (below < white(below)).ifthenelse(both, white(below))
    return both


def _luma(color: pyvips.Image) -> pyvips.Image:
    return color.recomb([list(_LUMA)])


def _ends(color: pyvips.Image) -> tuple[pyvips.Image, pyvips.Image]:
    """Return the least and the largest band of each pixel."""
    bands = color.bandsplit()
    return (functools.reduce(pyvips.Image.minpair, bands), functools.reduce(pyvips.Image.maxpair, bands))


def _with_luma(color: pyvips.Image, luma: pyvips.Image) -> pyvips.Image:
    """Move a color to a luma, and toward its gray as far as it leaves the range."""
    moved = color + (luma - _luma(color))
    least, most = _ends(moved)
    from_gray = moved - luma
    moved = (least < 0).ifthenelse(luma + from_gray * (luma / (luma - least)), moved)
    from_gray = moved - luma
    return (most > 1).ifthenelse(luma + from_gray * ((1 - luma) / (most - luma)), moved)


def _with_saturation(color: pyvips.Image, like: pyvips.Image) -> pyvips.Image:
    """Give a color the distance between the largest and the least band of another one."""
    least, most = _ends(color)
    low, high = _ends(like)
    return (color - least) * ((high - low) / (most - least))  # libvips divides by zero to zero


_OWN: Mapping[str, _Mix] = {
    "hue": lambda below, above: _with_luma(_with_saturation(above, below), _luma(below)),
    "saturation": lambda below, above: _with_luma(_with_saturation(below, above), _luma(below)),
    "color": lambda below, above: _with_luma(above, _luma(below)),
    "luminosity": lambda below, above: _with_luma(below, _luma(above)),
}
"""The modes that libvips lacks, for colors from 0 to 1."""
