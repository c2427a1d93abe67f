"""Tables and matrices from channels of RGB spaces to linear light of sRGB, and from HDR to SDR.

HDR is tone-mapped by the EETF of Report ITU-R BT.2390-11, section 5.4, applied to the largest of red, green
and blue so that hues stay. The white of the result is the reference white of HDR, 203 cd/m2 (Report ITU-R
BT.2408-7).
"""

from __future__ import annotations

import numpy as np

from imgsvc_core.formats.rgb_space import SRGB, Chromaticity, Primaries, RgbSpace

from .curves import FloatArray, decode

REFERENCE_WHITE = 203.0
"""Luminance in cd/m2 that becomes the white of the result."""

HLG_SYSTEM_GAMMA = 1.2
"""Exponent of the luminance of a scene that the OOTF of HLG has for a display with a peak of 1000 cd/m2."""

_PQ_PEAK = 10_000.0
_M1, _M2 = 2610 / 16384, 2523 / 4096 * 128
_C1, _C2, _C3 = 3424 / 4096, 2413 / 4096 * 32, 2392 / 4096 * 32
_HLG_A, _HLG_B, _HLG_C = 0.17883277, 0.28466892, 0.55991073
_CINEMA_PEAK = 52.37 / 48  # cd/m2 of the highest value over those of white
_BRADFORD = np.array([[0.8951, 0.2664, -0.1614], [-0.7502, 1.7135, 0.0367], [0.0389, -0.0685, 1.0296]])


def light(space: RgbSpace, x: FloatArray) -> FloatArray:
    """Return the light of channel values in [0, 1].

    That is 1 for the white of SDR, cd/m2 over the reference white for PQ, and the scene's light for HLG,
    which `HLG_SYSTEM_GAMMA` turns into that of a display.
    """
    match space.transfer:
        case "pq":
            return pq_luminance(x) / REFERENCE_WHITE
        case "hlg":
            return np.where(x <= 0.5, x**2 / 3, (np.exp((x - _HLG_C) / _HLG_A) + _HLG_B) / 12)
        case "gamma":
            return np.asarray(x**space.gamma)
        case "log100":
            return np.where(x > 0, 10 ** (2 * (x - 1)), 0)
        case "log316":
            return np.where(x > 0, 10 ** (2.5 * (x - 1)), 0)
        case "st428":
            return np.asarray(_CINEMA_PEAK * x**2.6)
        case _:
            return decode(x)


def matrix(space: RgbSpace) -> FloatArray:
    """Return the matrix from linear light of a space to that of sRGB, white to white."""
    source = _to_xyz(space.primaries)
    return np.linalg.inv(_to_xyz(SRGB)) @ _adaptation(space.primaries[3], SRGB[3]) @ source


def luminance_weights(space: RgbSpace) -> FloatArray:
    """Return the weights of red, green and blue in the luminance of a space."""
    weights: FloatArray = _to_xyz(space.primaries)[1]
    return weights


def pq_luminance(x: FloatArray) -> FloatArray:
    """Return cd/m2 of values encoded by the PQ curve (SMPTE ST 2084)."""
    power = np.maximum(x, 0) ** (1 / _M2)
    return np.asarray(_PQ_PEAK * (np.maximum(power - _C1, 0) / (_C2 - _C3 * power)) ** (1 / _M1))


def pq_encode(luminance: FloatArray) -> FloatArray:
    """Encode cd/m2 by the PQ curve (SMPTE ST 2084)."""
    power = (np.asarray(luminance) / _PQ_PEAK) ** _M1
    return np.asarray(((_C1 + _C2 * power) / (1 + _C3 * power)) ** _M2)


def tone_mapped(luminance: FloatArray, peak: float) -> FloatArray:
    """Return luminances up to ``peak`` brought to the range up to the reference white, all in cd/m2."""
    if peak <= REFERENCE_WHITE:
        return np.minimum(luminance, REFERENCE_WHITE)
    source_peak = pq_encode(np.asarray(peak))
    brightest = pq_encode(np.asarray(REFERENCE_WHITE)) / source_peak
    signal = pq_encode(np.minimum(luminance, peak)) / source_peak
    knee = 1.5 * brightest - 0.5
    t = np.maximum(signal - knee, 0) / (1 - knee)
    spline = (
        (2 * t**3 - 3 * t**2 + 1) * knee
        + (t**3 - 2 * t**2 + t) * (1 - knee)
        + (3 * t**2 - 2 * t**3) * brightest
    )
    return pq_luminance(np.where(signal < knee, signal, spline) * source_peak)


def _to_xyz(primaries: Primaries) -> FloatArray:
    """Return the matrix from linear RGB to CIE XYZ, the luminance of white being 1."""
    columns = np.array([(x, y, 1 - x - y) for x, y in primaries[:3]]).T
    return np.asarray(columns * np.linalg.solve(columns, _xyz(primaries[3])))


def _adaptation(source: Chromaticity, target: Chromaticity) -> FloatArray:
    """Return Bradford's matrix from colors under one white to those under another."""
    gains = (_BRADFORD @ _xyz(target)) / (_BRADFORD @ _xyz(source))
    return np.asarray(np.linalg.inv(_BRADFORD) @ np.diag(gains) @ _BRADFORD)


def _xyz(white: Chromaticity) -> FloatArray:
    x, y = white
    return np.array([x / y, 1, (1 - x - y) / y])
