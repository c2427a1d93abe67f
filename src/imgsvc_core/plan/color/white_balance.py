"""Gains of temperature and tint on linear red, green and blue.

The white of a black body at some temperature is divided by the white at 6504 K, so that neutral settings
give gains of 1. A division of the luma-weighted sum keeps the brightness of grays.
"""

from __future__ import annotations

from .constants import LUMA_WEIGHTS, NEUTRAL_MIRED, TINT_DUV

Triple = tuple[float, float, float]

XYZ_TO_LINEAR_SRGB: tuple[Triple, Triple, Triple] = (
    (3.2404542, -1.5371385, -0.4985314),
    (-0.9692660, 1.8760108, 0.0415560),
    (0.0556434, -0.2040259, 1.0572252),
)


def planck_uv(kelvin: float) -> tuple[float, float]:
    """Return the CIE 1960 (u, v) of a black body.

    Krystek's rational approximation (Color Research & Application 10, 1985), good from 1000 K to 15000 K.
    """
    t = kelvin
    u = (0.860117757 + 1.54118254e-4 * t + 1.28641212e-7 * t * t) / (
        1 + 8.42420235e-4 * t + 7.08145163e-7 * t * t
    )
    v = (0.317398726 + 4.22806245e-5 * t + 4.20481691e-8 * t * t) / (
        1 - 2.89741816e-5 * t + 1.61456053e-7 * t * t
    )
    return u, v


def white_uv(mired: float, duv: float) -> tuple[float, float]:
    """Return the CIE 1960 (u, v) at a distance of ``duv`` from the Planckian locus.

    A positive ``duv`` is towards green.
    """
    kelvin = 1e6 / mired
    u, v = planck_uv(kelvin)
    u_warm, v_warm = planck_uv(kelvin * 0.999)
    u_cool, v_cool = planck_uv(kelvin * 1.001)
    du, dv = u_cool - u_warm, v_cool - v_warm
    length = (du * du + dv * dv) ** 0.5
    # The locus runs towards smaller u as it gets cooler, so this normal points to larger v: green.
    return u + duv * dv / length, v - duv * du / length


def linear_rgb(u: float, v: float) -> Triple:
    """Return the linear sRGB of a chromaticity in CIE 1960 (u, v), at luminance 1."""
    scale = 2 * u - 8 * v + 4
    x, y = 3 * u / scale, 2 * v / scale
    xyz = (x / y, 1.0, (1 - x - y) / y)
    red, green, blue = (sum(m * c for m, c in zip(row, xyz, strict=True)) for row in XYZ_TO_LINEAR_SRGB)
    return red, green, blue


def gains(mired_shift: float, duv: float) -> Triple:
    """Return gains that turn the neutral white into the given one and keep the luma of white."""
    target = linear_rgb(*white_uv(NEUTRAL_MIRED + mired_shift, duv))
    neutral = linear_rgb(*white_uv(NEUTRAL_MIRED, 0.0))
    red, green, blue = (t / n for t, n in zip(target, neutral, strict=True))
    luma = sum(w * g for w, g in zip(LUMA_WEIGHTS, (red, green, blue), strict=True))
    return red / luma, green / luma, blue / luma


def temperature_gains(value: float) -> Triple:
    """Return the gains of ``temperature`` 0..100: warmer light with growing value, 3941 K at 100."""
    return gains(value, 0.0)


def tint_gains(value: float) -> Triple:
    """Return the gains of ``tint`` 0..100: from neutral towards magenta."""
    return gains(0.0, -value * TINT_DUV)
