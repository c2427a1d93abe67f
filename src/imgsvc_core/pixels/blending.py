"""Colors as pixel values, and two pictures mixed or laid over each other with the right alpha."""

from __future__ import annotations

import pyvips

from imgsvc_core.formats.vips import usual_interpretation
from imgsvc_core.pixels.channels import is_deep, split_alpha, white
from imgsvc_core.spec import Color
from imgsvc_core.spec.color import TRANSPARENT


def fit_for(image: pyvips.Image, color: Color | None) -> pyvips.Image:
    """Add the bands that a color needs: RGB unless the color is gray, alpha unless it is opaque."""
    color = color or TRANSPARENT
    if not color.gray:
        image = to_rgb(image)
    return image if color.alpha == 255 or image.hasalpha() else image.addalpha()


def to_rgb(image: pyvips.Image) -> pyvips.Image:
    """Convert a gray picture to RGB. Return any other unchanged."""
    if image.bands >= 3:
        return image
    return image.colourspace(usual_interpretation(3, image.format))


def band_values(image: pyvips.Image, color: Color | None) -> list[int]:
    """Return the values of a color in the bands of a picture that `fit_for` has prepared."""
    color = color or TRANSPARENT
    rgb = color.rgb if split_alpha(image)[0].bands == 3 else color.rgb[:1]
    scale = 257 if is_deep(image) else 1
    return [scale * value for value in (*rgb, *([color.alpha] if image.hasalpha() else []))]


def flat(alpha: pyvips.Image, color: Color) -> pyvips.Image:
    """Return a picture of one color with an alpha band, which the alpha of the color weakens."""
    values = [*(value + 0.5 for value in color.rgb), 0.5]
    return alpha.linear([0, 0, 0, color.alpha / 255], values, uchar=True).copy(interpretation="srgb")


def mix(image: pyvips.Image, color: Color | None, share: pyvips.Image) -> pyvips.Image:
    """Mix a picture with a color: ``share``, a band of 0 to 1, is the picture's part at each pixel.

    The values are mixed premultiplied, so that transparent pixels contribute no color.
    """
    image = fit_for(image, color)
    values = band_values(image, color)
    if not image.hasalpha():
        return _like(image * share + (1 - share) * values, image)
    pixels, alpha = split_alpha(image)
    assert alpha is not None
    *rgb, other = values
    if other == 0:
        return _like(pixels.bandjoin(alpha * share), image)
    rest = (1 - share) * (other / white(image))
    mixed_alpha = alpha / white(image) * share + rest
    mixed = pixels * (alpha / white(image) * share) + rest * rgb
    return _straight(mixed, mixed_alpha, image)


def over(top: pyvips.Image, bottom: pyvips.Image) -> pyvips.Image:
    """Lay a picture with alpha on another of the same size, colors and depth (Porter and Duff's "over")."""
    color, alpha = split_alpha(top)
    assert alpha is not None
    if top.format == bottom.format == "uchar" and not bottom.hasalpha():
        return alpha.ifthenelse(color, bottom, blend=True)
    share = alpha / white(top)
    if not bottom.hasalpha():
        return _like(color * share + bottom * (1 - share), bottom)
    below, below_alpha = split_alpha(bottom)
    assert below_alpha is not None
    rest = below_alpha / white(bottom) * (1 - share)
    laid = _straight(color * share + below * rest, share + rest, bottom)
    return (alpha > 0).ifthenelse(laid, bottom)


def _straight(premultiplied: pyvips.Image, alpha: pyvips.Image, like: pyvips.Image) -> pyvips.Image:
    color = (alpha > 0).ifthenelse(premultiplied / (alpha > 0).ifthenelse(alpha, 1), 0)
    return _like(color.bandjoin(alpha * white(like)), like)


def _like(image: pyvips.Image, other: pyvips.Image) -> pyvips.Image:
    return image.rint().cast(other.format).copy(interpretation=other.interpretation)
