"""Filters of libvips and sharp on one frame. They work on 8 bits for each channel."""

from __future__ import annotations

from collections.abc import Callable

import pyvips

from imgsvc_core._runtime.deadline import in_memory
from imgsvc_core.pixels.channels import filtered_premultiplied, in_bytes, join_alpha, split_alpha
from imgsvc_core.spec import vips_filters as vips_specs

_WHITE = 255


def median(image: pyvips.Image, filter: vips_specs.Median) -> pyvips.Image:
    """Replace each pixel by the median of a square around it."""
    return filtered_premultiplied(in_bytes(image), lambda bands: _median(bands, filter.size))


def threshold(image: pyvips.Image, filter: vips_specs.Threshold) -> pyvips.Image:
    """Make pixels white from a level on, and black below it."""

    def compared(color: pyvips.Image) -> pyvips.Image:
        light = (color.colourspace("b-w") if filter.gray else color) >= filter.level
        return light if light.bands == color.bands else light.bandjoin([light, light])

    return _on_color(image, compared)


def morphology(image: pyvips.Image, filter: vips_specs.Morphology) -> pyvips.Image:
    """Join each pixel with a square around it as libvips does, bit by bit."""
    side = 2 * filter.width + 1
    mask = pyvips.Image.new_from_array([[0] * side] * side)
    image = in_bytes(image)
    return image.morph(mask, filter.mode).invert().copy(interpretation=image.interpretation)


def modulate(image: pyvips.Image, filter: vips_specs.Modulate) -> pyvips.Image:
    """Change lightness, chroma and hue of colors in LCh."""
    factors, addends = [filter.brightness, filter.saturation, 1], [filter.lightness, 0, filter.hue]
    return _on_color(image, lambda color: color.colourspace("lch").linear(factors, addends))


def stretch(image: pyvips.Image, filter: vips_specs.Stretch) -> pyvips.Image:
    """Stretch the lightness between two percentiles over its whole range."""

    def stretched(color: pyvips.Image) -> pyvips.Image:
        lab = in_memory(color.colourspace("lab"))
        levels = lab[0].cast("uchar")
        least = levels.min() if filter.lower == 0 else levels.percent(filter.lower)
        most = levels.max() if filter.upper == 100 else levels.percent(filter.upper)
        if most - least <= 1:
            return color
        factor = 100 / (most - least)
        return lab.linear([factor, 1, 1], [-least * factor, 0, 0])

    return _on_color(image, stretched)


def local_equalize(image: pyvips.Image, filter: vips_specs.LocalEqualize) -> pyvips.Image:
    """Equalize each pixel within a window around it."""
    sides = min(filter.width, image.width), min(filter.height, image.height)
    return _on_color(image, lambda color: color.hist_local(*sides, max_slope=filter.slope))


def chroma_tint(image: pyvips.Image, filter: vips_specs.ChromaTint) -> pyvips.Image:
    """Map lightness to colors with the hue of one color, strongest in the middle."""
    one = (pyvips.Image.black(1, 1) + list(filter.color.rgb)).cast("uchar").copy(interpretation="srgb")
    hue = one.colourspace("lab").getpoint(0, 0)[1:]
    levels = pyvips.Image.identity(bands=3).copy(interpretation="srgb").colourspace("lab")[0]
    share = 1 - 4 * (levels / 100 - 0.5) ** 2
    table = levels.bandjoin([share * value for value in hue]).copy(interpretation="lab").colourspace("srgb")
    return _on_color(image, lambda color: color.colourspace("b-w").maplut(table))


def negate(image: pyvips.Image, filter: vips_specs.Negate) -> pyvips.Image:
    """Replace all levels by their opposites."""
    return in_bytes(image).invert() if filter.alpha else _on_color(image, lambda color: color.invert())


def without_white(image: pyvips.Image, _: vips_specs.WithoutWhite) -> pyvips.Image:
    """Make white pixels transparent."""
    image = in_bytes(image)
    color, alpha = split_alpha(image)
    colored = color.colourspace("b-w") < _WHITE
    joined = color.bandjoin(colored if alpha is None else alpha & colored)
    return joined.copy(interpretation=image.interpretation)


def _on_color(image: pyvips.Image, operation: Callable[[pyvips.Image], pyvips.Image]) -> pyvips.Image:
    """Apply an operation to the colors of a picture. The operation may return any color space."""
    color, alpha = split_alpha(in_bytes(image))
    changed = operation(color)
    if changed.interpretation in ("lab", "lch"):
        changed = changed.colourspace("srgb" if color.bands == 3 else "b-w")
    space = "srgb" if changed.bands == 3 else "b-w"
    return join_alpha(changed.cast("uchar").copy(interpretation=space), alpha)


def _median(image: pyvips.Image, size: int) -> pyvips.Image:
    """Return the medians of windows; libvips takes none that is larger than the picture."""
    if min(image.width, image.height) >= size:
        return image.median(size)
    wide = image.embed(size, size, image.width + 2 * size, image.height + 2 * size, extend="copy")
    return wide.median(size).crop(size, size, image.width, image.height)
