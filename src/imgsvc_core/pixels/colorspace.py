"""From any color space to sRGB, or to grey for grey pictures."""

from __future__ import annotations

import pyvips

from imgsvc_core.pixels.channels import is_deep, join_alpha, split_alpha
from imgsvc_core.pixels.icc import is_srgb

_PROFILE = "icc-profile-data"
_GRAY = frozenset({"b-w", "grey16"})
_MODELS = {
    "srgb": b"RGB ", "rgb": b"RGB ", "rgb16": b"RGB ", "b-w": b"GRAY", "grey16": b"GRAY", "cmyk": b"CMYK",
}  # fmt: skip
_ONLY_IN_MEMORY = frozenset({"scrgb", "xyz", "yxy", "hsv", "lch", "cmc", "labq", "oklab", "oklch"})


def to_srgb(image: pyvips.Image) -> pyvips.Image:
    """The picture in sRGB, by its embedded profile where it has one.

    A grey picture stays grey, alpha is not touched, 16 bits stay 16 bits. A profile that is sRGB's already is
    kept and costs nothing; one of another color model than the picture's says nothing about its numbers, and
    is dropped.
    """
    depth = 16 if is_deep(image) else 8
    profile = image.get(_PROFILE) if image.get_typeof(_PROFILE) else None
    gray = image.interpretation in _GRAY
    if profile is None or profile[16:20] != _MODELS.get(image.interpretation):
        return _converted(_without_profile(image), gray=gray)
    if is_srgb(profile):
        return image
    color, alpha = split_alpha(image)
    try:
        color = color.icc_transform(
            "srgb", embedded=True, intent="relative", black_point_compensation=True, depth=depth
        )
    except pyvips.Error:
        color = _converted(color, gray=gray)
    if gray:
        color = _without_profile(color.colourspace("grey16" if depth == 16 else "b-w"))
    return join_alpha(color, alpha)


def from_memory(image: pyvips.Image) -> pyvips.Image:
    """A computed picture in a space that files have and that can be resampled: HSV and the like as sRGB."""
    if image.interpretation not in _ONLY_IN_MEMORY:
        return image
    return _converted(_without_profile(image), gray=False)


def _without_profile(image: pyvips.Image) -> pyvips.Image:
    if not image.get_typeof(_PROFILE):
        return image
    image = image.copy()
    image.remove(_PROFILE)
    return image


def _converted(image: pyvips.Image, *, gray: bool) -> pyvips.Image:
    if image.interpretation in ("srgb", "rgb16", *_GRAY):
        return image
    space = ("grey16" if is_deep(image) else "b-w") if gray else ("rgb16" if is_deep(image) else "srgb")
    return image.colourspace(space)
