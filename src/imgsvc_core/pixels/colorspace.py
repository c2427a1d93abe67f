"""Convert any color space to sRGB, or to gray for gray pictures."""

from __future__ import annotations

import attrs
import pyvips

from imgsvc_core._runtime.vipsimage import PROFILE, has, has_profile, space_of
from imgsvc_core.formats.icc import is_srgb, matrix_profile
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.raster import Raster
from imgsvc_core.formats.rgb_space import RgbSpace
from imgsvc_core.formats.vips import usual_interpretation
from imgsvc_core.pixels.channels import ImageFunction, is_deep, join_alpha, split_alpha, white

_GRAY = frozenset({"b-w", "grey16"})
_RGB_OR_GRAY = frozenset({"srgb", "rgb", "rgb16", *_GRAY})
_ONLY_IN_MEMORY = frozenset({"scrgb", "xyz", "yxy", "hsv", "lch", "cmc", "labq", "oklab", "oklch"})


def to_srgb(image: pyvips.Image, stated: RgbSpace | None = None, *, cmyk: str | None = None) -> pyvips.Image:
    """Return the picture in sRGB, converted from its embedded profile or the space in its header.

    A gray picture stays gray, alpha is not touched, 16 bits stay 16 bits. A profile of sRGB is kept, and
    nothing is converted. A profile of another color model is dropped, because it does not apply to the
    picture. ``cmyk`` is another way to convert inks; see `Orient`.
    """
    if cmyk is not None and image.interpretation == "cmyk":
        return _by_libvips(image) if cmyk == "libvips" else _without_inks(_without_profile(image))
    gray = image.interpretation in _GRAY
    if stated is not None and image.interpretation in _RGB_OR_GRAY:
        from imgsvc_core.pixels.linear import from_space  # few pictures need it

        color, alpha = split_alpha(_without_profile(image))
        return join_alpha(_as_rgb(color, lambda rgb: from_space(rgb, stated), gray=gray), alpha)
    if not has_profile(image):
        return _converted(_without_profile(image), gray=gray)
    profile = image.get(PROFILE)
    if is_srgb(profile):
        return image
    color, alpha = split_alpha(image)
    try:
        color = _by_profile(color, profile, gray=gray)
    except pyvips.Error:
        color = _converted(_without_profile(color), gray=gray)
    return join_alpha(color, alpha)


def told_by_pixels(info: ImageInfo, image: pyvips.Image | Raster) -> ImageInfo:
    """Return the facts of a picture with alpha and color space corrected by its pixels.

    Decoders deliver a palette of grays as a gray picture.
    """
    if isinstance(image, Raster):
        return info
    alpha, gray = info.alpha or bool(image.hasalpha()), space_of(image) in _GRAY
    if alpha == info.alpha and gray == (info.colorspace == "gray"):
        return info
    known = "gray" if gray else "srgb" if info.colorspace == "gray" else info.colorspace
    return attrs.evolve(info, alpha=alpha, colorspace=known)


def _without_inks(image: pyvips.Image) -> pyvips.Image:
    """Convert inks to light without a profile: each ink takes its share of white away."""
    inks, alpha = split_alpha(image)
    rest = white(inks) - inks
    light = rest.extract_band(0, n=3) * rest.extract_band(3) / white(inks)
    color = light.rint().cast(inks.format).copy(interpretation=usual_interpretation(3, inks.format))
    return join_alpha(color, alpha)


def from_memory(image: pyvips.Image) -> pyvips.Image:
    """Convert a computed picture to a space that files support and that can be resampled.

    HSV and similar spaces become sRGB.
    """
    if image.interpretation not in _ONLY_IN_MEMORY:
        return image
    return _converted(_without_profile(image), gray=False)


def _without_profile(image: pyvips.Image) -> pyvips.Image:
    if not has(image, PROFILE):
        return image
    image = image.copy()
    image.remove(PROFILE)
    return image


def _by_libvips(image: pyvips.Image) -> pyvips.Image:
    if has_profile(image):
        try:
            return _without_profile(image.icc_import(embedded=True).colourspace("srgb"))
        except pyvips.Error:
            image = _without_profile(image)
    return _without_profile(image.colourspace("srgb"))


def _by_profile(color: pyvips.Image, profile: bytes, *, gray: bool) -> pyvips.Image:
    """Return the picture in sRGB, with its profile, or in gray.

    LittleCMS is exact enough for colors of 8 bits, but not for 16 bits or dark grays.
    """
    matrix = matrix_profile(profile, white(color) + 1) if gray or is_deep(color) else None
    if matrix is None:
        color = _by_lcms(color, "relative", embedded=True)
        return _without_profile(color.colourspace(usual_interpretation(1, color.format))) if gray else color
    from imgsvc_core.pixels.linear import from_profile

    converted = _as_rgb(_without_profile(color), lambda rgb: from_profile(rgb, matrix), gray=gray)
    if not gray:
        converted = converted.copy()
        converted.set_type(pyvips.GValue.blob_type, PROFILE, pyvips.Operation.call("profile_load", "srgb"))
    return converted


def _as_rgb(color: pyvips.Image, convert: ImageFunction, *, gray: bool) -> pyvips.Image:
    """Return a picture converted by an operation on RGB. Gray stays gray."""
    if not gray:
        return convert(color)
    converted = convert(color.bandjoin([color, color])).extract_band(1)
    return converted.copy(interpretation=color.interpretation)


def _by_lcms(color: pyvips.Image, intent: str, **source: object) -> pyvips.Image:
    """Return the picture converted by LittleCMS with black point compensation.

    Pictures of 16 bits are converted in two steps. In one step LittleCMS interpolates in a coarse grid, and
    is up to 26 of 255 levels off.
    """
    options = {"intent": intent, "black_point_compensation": True}
    if not is_deep(color):
        return color.icc_transform("srgb", depth=8, **source, **options)
    lab = color.icc_import(pcs="lab", **source, **options)
    return lab.icc_export(output_profile="srgb", depth=16)


def _converted(image: pyvips.Image, *, gray: bool) -> pyvips.Image:
    if image.interpretation in ("srgb", "rgb16", *_GRAY):
        return image
    if image.interpretation == "cmyk":
        color, alpha = split_alpha(image)
        return join_alpha(_without_profile(_by_lcms(color, "perceptual", input_profile="cmyk")), alpha)
    return image.colourspace(usual_interpretation(1 if gray else 3, image.format))
