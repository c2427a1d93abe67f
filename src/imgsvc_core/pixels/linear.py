"""Convert RGB of other spaces to sRGB by linear light, in floats: exact for 8 and 16 bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyvips

from imgsvc_core.formats.icc import SRGB_COLORANTS, MatrixProfile
from imgsvc_core.formats.rgb_space import RgbSpace
from imgsvc_core.pixels.channels import is_deep, white
from imgsvc_core.plan.color import light
from imgsvc_core.plan.color.curves import FloatArray

_GAINS = 65_536  # entries of the table of tone mapping, which has the fourth root of luminance as its index


def from_space(color: pyvips.Image, space: RgbSpace) -> pyvips.Image:
    """Convert red, green and blue of a space to sRGB, with HDR tone-mapped to SDR. The depth stays."""
    linear = _linear(color, [light.light(space, _ramp(color))])
    if space.is_hdr:
        linear = _tone_mapped(linear, space)
    return _encoded(linear, light.matrix(space), deep=is_deep(color))


def from_profile(color: pyvips.Image, profile: MatrixProfile) -> pyvips.Image:
    """Convert red, green and blue of a profile to sRGB. The depth stays."""
    matrix = np.linalg.solve(np.transpose(SRGB_COLORANTS), np.transpose(profile.colorants))
    return _encoded(_linear(color, profile.curves), matrix, deep=is_deep(color))


def _ramp(color: pyvips.Image) -> FloatArray:
    return np.linspace(0, 1, white(color) + 1)


def _linear(color: pyvips.Image, curves: Sequence[Sequence[float] | FloatArray]) -> pyvips.Image:
    """Return linear light, by one curve for all channels or by a curve for each."""
    table = np.stack(curves, axis=-1, dtype=np.float32)
    return color.maplut(pyvips.Image.new_from_array(table[None]))


def _encoded(linear: pyvips.Image, matrix: FloatArray, *, deep: bool) -> pyvips.Image:
    encoded = linear.recomb(matrix.tolist()).copy(interpretation="scrgb").colourspace("rgb16")
    # To 8 bits libvips converts with an error of up to .9.
    return encoded if deep else (encoded * (1 / 257)).rint().cast("uchar").copy(interpretation="srgb")


def _tone_mapped(linear: pyvips.Image, space: RgbSpace) -> pyvips.Image:
    peak = space.peak / light.REFERENCE_WHITE
    if space.transfer == "hlg":
        luminance = linear.recomb([light.luminance_weights(space).tolist()])
        linear = linear * luminance ** (light.HLG_SYSTEM_GAMMA - 1) * peak
    red, green, blue = linear.bandsplit()
    brightest = red.maxpair(green).maxpair(blue)
    index = (brightest * (1 / peak)) ** 0.25 * (_GAINS - 1)
    return linear * index.rint().cast("ushort").maplut(_gains(space.peak))


def _gains(peak: float) -> pyvips.Image:
    """Return the factors of tone mapping, by the fourth root of the light's luminance."""
    luminance = np.maximum(np.linspace(0, 1, _GAINS), 1e-3) ** 4 * peak
    gains = light.tone_mapped(luminance, peak) / luminance
    return pyvips.Image.new_from_array(gains[None, :, None].astype(np.float32))
